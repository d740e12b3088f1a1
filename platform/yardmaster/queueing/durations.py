"""How long jobs hold what they have: from those that ended, how long one like them may still take.

What is alike is said by groups, the narrowest first: jobs of one name in a namespace, jobs of one owner, all. A group
counts once enough of its jobs ended. A job that has run for some time is compared only with those that ran longer.

Pure. Not here: when a job that waits will start (`waits`).
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

ENOUGH = 5
"""Ended jobs of a group before it counts."""
ENOUGH_IN_ALL = 10
"""Ended jobs on an engine before anything is estimated there."""


@dataclass(frozen=True)
class Lasting:
    """What is known of how long a job takes. `groups`: narrowest first. `limit`: the most it may run, in seconds."""

    groups: tuple[str, ...]
    limit: float | None = None


class History:
    """Durations of jobs that ended, in seconds."""

    def __init__(self, ended: Iterable[tuple[Sequence[str], float]]) -> None:
        """Each with its groups and how long it held what it had."""
        found: defaultdict[str, list[float]] = defaultdict(list)
        self._all: list[float] = []
        for groups, seconds in ended:
            self._all.append(seconds)
            for group in groups:
                found[group].append(seconds)
        self._all.sort()
        self._of = {group: sorted(each) for group, each in found.items() if len(each) >= ENOUGH}

    @property
    def is_enough(self) -> bool:
        """Whether anything can be said from it."""
        return len(self._all) >= ENOUGH_IN_ALL

    def like(self, one: Lasting, ran: float = 0.0) -> Sequence[float]:
        """How long jobs like this one took that ran longer than `ran`, sorted; empty where none did."""
        for known in (*(self._of.get(group, ()) for group in one.groups), self._all):
            first = bisect_right(known, ran)
            if len(known) - first >= ENOUGH:
                return known[first:]
        return self._all[bisect_right(self._all, ran) :]


def remaining(like: Sequence[float], limit: float | None, ran: float, chance: random.Random) -> float:
    """Seconds that a job which ran for `ran` may still take, drawn from how long those like it took in all. One that
    outlasts all of them is expected to take about as long again."""
    whole = chance.choice(like) if like else ran / (1 - 0.9 * chance.random())
    if limit is not None:
        whole = min(whole, limit)
    return max(whole - ran, 1.0)
