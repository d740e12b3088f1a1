"""Days of a portal with one engine: people launch jobs by day and less by night, the real `decide_queue` starts them,
and every job that must wait is given an estimate from what had ended until then. Pure and seeded.

The estimates know nothing of what is drawn here: not when jobs come, nor how long they take.
"""

from __future__ import annotations

import math
import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from heapq import heappop, heappush

from tests.unit.core.generators import NOW, one_task
from yardmaster.job.spec import NOTHING, Resources
from yardmaster.queueing.admission import Candidate, EngineCapacity, Fit, Holder, Ledger, Quota, Usage
from yardmaster.queueing.durations import History, Lasting
from yardmaster.queueing.order import Order
from yardmaster.queueing.pools import Pools
from yardmaster.queueing.queue_decision import decide_queue
from yardmaster.queueing.waits import Past, Range, Runs, Waits, correction, estimates

Key = uuid.UUID
PATIENCE = timedelta(minutes=10)


@dataclass(frozen=True)
class Person:
    """Launches jobs of a few sorts, each with its size and its usual duration in seconds."""

    namespace: Key
    sorts: tuple[tuple[float, float, float], ...]
    """Cores, median of the duration, and how widely it is spread (the sigma of a lognormal distribution)."""


@dataclass
class Said:
    """What one job was told when it was queued, in seconds, and how long it then waited."""

    raw: Range
    told: Range
    at: float
    waited: float | None = None


@dataclass
class Portal:
    """Of `load` times as many core hours as the engine has, launched over each day."""

    cores: int = 32
    people: int = 12
    load: float = 0.9
    seed: int = 1
    now: float = 0
    said: dict[Key, Said] = field(default_factory=dict)
    queue: dict[Key, Candidate] = field(default_factory=dict)
    running: dict[Key, tuple[Candidate, float]] = field(default_factory=dict)
    ended: list[tuple[tuple[str, ...], float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        spaces = [uuid.UUID(int=n + 1) for n in range(max(1, self.people // 3))]
        self._people = [Person(spaces[n % len(spaces)], tuple(self._sorts())) for n in range(self.people)]
        self._quotas = {one: Quota(cpu=self._chance.choice([None, self.cores / 2])) for one in spaces}
        self._ends: list[tuple[float, Key]] = []
        self._groups: dict[Key, tuple[str, ...]] = {}
        self._lasts: dict[Key, float] = {}
        self._count = 0

    def run(self, days: float) -> None:
        """Play so many days."""
        for at, person in self._launches(days * 86_400):
            while self._ends and self._ends[0][0] <= at:
                self._end()
            self.now = at
            self._launch(person)
        self.now = days * 86_400

    def past(self) -> list[Past]:
        """The last estimates, with what is known of each by now."""
        last = list(self.said.values())[-300:]
        return [
            Past(one.raw, self.now - one.at if one.waited is None else one.waited, one.waited is not None)
            for one in last
        ]

    def _sorts(self) -> Iterator[tuple[float, float, float]]:
        for _ in range(self._chance.randint(1, 4)):
            cores = self._chance.choice([1, 1, 2, 4, 8, 16])
            yield (
                float(cores),
                math.exp(self._chance.uniform(math.log(60), math.log(3600))),
                self._chance.choice([0.2, 0.5, 1.0]),
            )

    def _launches(self, until: float) -> Iterator[tuple[float, Person]]:
        """Three times as many by day as by night; often several in a row."""
        mean = sum(
            cores * median * math.exp(sigma**2 / 2)
            for one in self._people
            for cores, median, sigma in one.sorts
            for _ in range(1)
        ) / sum(len(one.sorts) for one in self._people)
        pace, at = mean / (self.cores * self.load), 0.0
        while True:
            is_day = 8 <= at / 3600 % 24 < 20
            at += self._chance.expovariate((1.5 if is_day else 0.5) / (pace * 2))
            if at >= until:
                return
            person = self._chance.choice(self._people)
            for _ in range(self._chance.choice([1, 1, 1, 2, 5])):
                yield at, person

    def _launch(self, person: Person) -> None:
        self._count += 1
        sort = self._chance.randrange(len(person.sorts))
        cores, median, sigma = person.sorts[sort]
        key, size = uuid.UUID(int=1_000 + self._count), Resources(cores, 0)
        owner = self._people.index(person)
        self._groups[key] = (f"job {owner}/{sort}", f"owner {owner}")
        self._lasts[key] = max(5.0, self._chance.lognormvariate(math.log(median), sigma))
        one = Candidate(key, person.namespace, self._time(), 0, size, one_task(size))
        self.queue[key] = one
        self._decide()
        if key in self.queue:
            self._estimate(one)

    def _end(self) -> None:
        self.now, key = heappop(self._ends)
        _one, since = self.running.pop(key)
        self.ended.append((self._groups[key], self.now - since))
        self._decide()

    def _decide(self) -> None:
        found = decide_queue(self.queue.values(), self._ledger(), self._time(), PATIENCE).decisions
        for key, decision in found.items():
            if decision.fit is Fit.FITS_NOW:
                self.running[key] = self.queue.pop(key), self.now
                heappush(self._ends, (self.now + self._lasts[key], key))
                if key in self.said:
                    self.said[key].waited = self.now - self.said[key].at

    def _estimate(self, one: Candidate) -> None:
        ledger = self._ledger()
        pools = Pools(ledger)
        order = [place.candidate for place in Order(self.queue.values(), ledger, pools).turns]
        waits = [Waits(pools.needs(each).units, Lasting(self._groups[each.job_id]), self._age(each)) for each in order]
        runs = [
            Runs(pools.needs(each).units, Lasting(self._groups[key]), self.now - since)
            for key, (each, since) in self.running.items()
        ]
        found = estimates(History(self.ended[-2_000:]), runs, waits, pools.remaining(), PATIENCE.total_seconds())
        raw = found[order.index(one)]
        if raw is not None:
            self.said[one.job_id] = Said(raw, raw.corrected(correction(self.past())), self.now)

    def _age(self, one: Candidate) -> float:
        return (self._time() - one.queued_at).total_seconds()

    def _time(self):
        return NOW + timedelta(seconds=self.now)

    def _ledger(self) -> Ledger:
        total, held = Resources(self.cores, 1), dict.fromkeys(self._quotas, Usage())
        for one, _ in self.running.values():
            before = held[one.namespace_id]
            held[one.namespace_id] = Usage(before.resources + one.total, before.running_jobs + 1)
        holders = tuple(Holder(key, one.namespace_id, one.total) for key, (one, _) in self.running.items())
        reserved = sum((one.resources for one in holders), NOTHING)
        return Ledger(EngineCapacity(total, total, total, reserved), self._quotas, held, holders)
