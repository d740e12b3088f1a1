"""What was used within a time: hours of processors, memory and GPUs, from who held how much from when to when. Pure.

What counts is what was reserved, not what was busy: no other job could have it. Not here: where it is written down.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, TypeVar
from uuid import UUID

K = TypeVar("K")
_HOUR = 3600.0
_GIB = float(1 << 30)


@dataclass(frozen=True)
class Held(Generic[K]):
    """What one role of one job held. `until` None: it still does. `key` is what it is summed by."""

    key: K
    job_id: UUID
    since: datetime
    until: datetime | None
    cpu: float
    memory: int
    gpus: int


@dataclass
class Hours:
    """`memory` in GiB·h."""

    cpu: float = 0.0
    memory: float = 0.0
    gpus: float = 0.0
    job_ids: set[UUID] = field(default_factory=set)

    @property
    def jobs(self) -> int:
        return len(self.job_ids)

    def add(self, one: Held[K], hours: float) -> None:
        self.cpu += hours * one.cpu
        self.memory += hours * one.memory / _GIB
        self.gpus += hours * one.gpus
        self.job_ids.add(one.job_id)


def hours_used(held: Iterable[Held[K]], begin: datetime, end: datetime) -> dict[K, Hours]:
    """The hours that fall between `begin` and `end`, by key. A clock that was set back makes none negative."""
    sums: defaultdict[K, Hours] = defaultdict(Hours)
    for one in held:
        seconds = (min(end, one.until or end) - max(begin, one.since)).total_seconds()
        if seconds > 0:
            sums[one.key].add(one, seconds / _HOUR)
    return dict(sums)


def total_of(several: Iterable[Hours]) -> Hours:
    """All of them together; a job that is in several counts once."""
    total = Hours()
    for one in several:
        total.cpu += one.cpu
        total.memory += one.memory
        total.gpus += one.gpus
        total.job_ids |= one.job_ids
    return total
