"""When will a job that waits start? A range, from how long jobs took so far, checked against what happened.

The queue is played forward many times: each job takes as long as one like it took, drawn by chance, and what it held
goes to the next in the queue's order, with passing and patience as in `admission`. The middle of the outcomes is a
range. How far such ranges were off is known from the jobs that have started since, and those that still wait: the
range is widened (or narrowed) by as much as would have made `AIM` of them right. This is conformalized quantile
regression (Romano, Patterson, Candès 2019), on a logarithmic scale.

What it leaves out, nodes and jobs that are launched later, is in that correction. Pure; the same seed gives the same
answer. Not here: how long jobs take (`durations`), who may start (`admission`).
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from yardmaster.queueing.durations import History, Lasting, remaining
from yardmaster.queueing.pools import PoolKey

LOW, HIGH = 0.1, 0.9
"""The quantiles of the outcomes that make the range."""
AIM = 0.88
"""Of the ranges that were given, so many shall have been right: more than the four of five that are promised."""
ENOUGH_WAITS = 20
"""Waits that ended, before the correction is taken from them; until then every range is widened by `UNTRIED`."""
UNTRIED = math.log(2)
OFFSET = 30.0
"""Seconds. Differences of less mean little, however short the wait."""
LOOKED_AT = 64
"""Jobs that do not fit, before the rest of the queue is left until something is free again: as few would pass them."""
MOST_STARTS = 20_000
"""Jobs that are started in all the rounds together: a long queue is played fewer times."""
MOST_ROUNDS, FEWEST_ROUNDS = 100, 20

Units = Mapping[PoolKey, int]


@dataclass(frozen=True)
class Runs:
    """An admitted job: what it holds of which pools, and for how long already, in seconds."""

    holds: Units
    lasting: Lasting
    ran: float


@dataclass(frozen=True)
class Waits:
    """A job that waits: what it takes of which pools, and how long it has waited, in seconds."""

    needs: Units
    lasting: Lasting
    waited: float = 0.0


@dataclass(frozen=True)
class Range:
    """Seconds from now. `high` is infinite where no end can be said."""

    low: float
    high: float

    def corrected(self, by: float) -> Range:
        """Widened by this much on the scale of `_scale`; narrowed where it is negative, at most to its middle."""
        low, high = _scale(self.low) - by, _scale(self.high) + by
        if low > high:
            low = high = (low + high) / 2
        return Range(max(0.0, _unscaled(low)), max(0.0, _unscaled(high)))


@dataclass(frozen=True)
class Past:
    """An estimate that was given, uncorrected, and what became of it: seconds until the job started, or that it has
    waited since without starting."""

    said: Range
    waited: float
    has_started: bool = True

    @property
    def is_right(self) -> bool:
        """Whether it started within the range."""
        return self.has_started and self.said.low <= self.waited <= self.said.high


def estimates(
    history: History,
    running: Sequence[Runs],
    queue: Sequence[Waits],
    left: Units,
    patience: float,
    *,
    seed: int = 0,
) -> list[Range | None]:
    """For each job of `queue`, which is in the order in which it is served: when it starts, uncorrected. None where
    that cannot be said: too few jobs have ended, or it never starts as things are. `left` is what is free now."""
    if not history.is_enough or not queue:
        return [None] * len(queue)
    play = _Play(history, running, queue, left, patience)
    rounds = max(FEWEST_ROUNDS, min(MOST_ROUNDS, MOST_STARTS // len(queue)))
    outcomes = [play.once(random.Random(f"{seed}/{n}")) for n in range(rounds)]
    return [_range_of(sorted(each)) for each in zip(*outcomes, strict=True)]


def correction(past: Iterable[Past]) -> float:
    """By how much ranges are to be widened so that `AIM` of the past ones had been right. One that was given for a job
    which waits still counts once its range is over."""
    scores = sorted(
        max(_scale(one.said.low) - _scale(one.waited), _scale(one.waited) - _scale(one.said.high))
        for one in past
        if one.has_started or one.waited > one.said.high
    )
    if len(scores) < ENOUGH_WAITS:
        return UNTRIED
    return scores[min(len(scores), math.ceil((len(scores) + 1) * AIM)) - 1]


def _scale(seconds: float) -> float:
    return math.log(seconds + OFFSET)


def _unscaled(value: float) -> float:
    return math.exp(value) - OFFSET if value < 700 else math.inf


def _range_of(outcomes: Sequence[float]) -> Range | None:
    last = len(outcomes) - 1
    low, high = outcomes[math.floor(LOW * last)], outcomes[math.ceil(HIGH * last)]
    return None if math.isinf(low) else Range(low, high)


class _Play:
    """The queue, played forward. Pools are numbered: a round touches nothing but lists of numbers."""

    def __init__(
        self, history: History, running: Sequence[Runs], queue: Sequence[Waits], left: Units, patience: float
    ) -> None:
        names = sorted({*left, *(key for one in queue for key in one.needs)}, key=str)
        self._number = {name: at for at, name in enumerate(names)}
        self._is_quota = [name.namespace_id is not None for name in names]
        self._left = [left.get(name, 0) for name in names]
        self._running = [
            (self._numbered(one.holds), history.like(one.lasting, one.ran), one.lasting.limit, one.ran)
            for one in running
        ]
        self._queue = [
            (self._numbered(one.needs), history.like(one.lasting), one.lasting.limit, patience - one.waited)
            for one in queue
        ]

    def _numbered(self, units: Units) -> tuple[tuple[int, int], ...]:
        return tuple((self._number[key], amount) for key, amount in units.items() if key in self._number)

    def once(self, chance: random.Random) -> list[float]:
        """When each job of the queue starts, in seconds; infinite where it does not."""
        left = list(self._left)
        ends = [(remaining(like, limit, ran, chance), at, held) for at, (held, like, limit, ran) in
                enumerate(self._running)]  # fmt: skip
        heapify(ends)
        started = [math.inf] * len(self._queue)
        pending, time = list(range(len(self._queue))), 0.0
        while True:
            pending = self._serve(pending, left, ends, started, time, chance)
            if not pending or not ends:
                return started
            time = ends[0][0]
            while ends and ends[0][0] <= time * 1.01:  # what ends at about the same time counts as one
                for at, amount in heappop(ends)[2]:
                    left[at] += amount

    def _serve(
        self, pending: list[int], left: list[int], ends: list[tuple[float, int, tuple[tuple[int, int], ...]]],
        started: list[float], time: float, chance: random.Random,
    ) -> list[int]:  # fmt: skip
        """Start those that fit, in their order. Returns those that still wait."""
        barred: set[int] = set()
        still: list[int] = []
        for place, at in enumerate(pending):
            needs, like, limit, patience = self._queue[at]
            lacking = [pool for pool, amount in needs if amount > left[pool]]
            if not lacking and (not barred or barred.isdisjoint(pool for pool, _ in needs)):
                for pool, amount in needs:
                    left[pool] -= amount
                started[at] = time
                heappush(ends, (time + remaining(like, limit, 0.0, chance), len(self._running) + at, needs))
                continue
            still.append(at)
            if lacking and time > patience:
                barred.update([pool for pool in lacking if self._is_quota[pool]] or lacking)
            if len(still) == LOOKED_AT:
                return still + pending[place + 1 :]
        return still
