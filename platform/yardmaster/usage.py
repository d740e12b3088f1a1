"""What a task used over time, in a bounded number of samples: enough for a picture, cheap enough to keep in one row.

A sample has the cpu seconds used since the task's start, so that dropping samples loses no use, only detail; of memory
the peaks are kept. Not here: where samples are kept, and how they look.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

MOST_SAMPLES = 240
SHORTEST_STEP = 5.0
"""Seconds between two samples; more once the task has run for long."""


class Sample(NamedTuple):
    """What the task had used at a Unix time."""

    time: float
    cpu_seconds: float
    memory: int


class CpuUse(NamedTuple):
    """How many cores were busy on average until a Unix time, since the sample before."""

    time: float
    cores: float


def is_due(samples: Sequence[Sample], time: float) -> bool:
    """Whether a sample at `time` adds to the picture. Time that runs backwards (another clock) never does."""
    if not samples:
        return True
    step = max(SHORTEST_STEP, (samples[-1].time - samples[0].time) / MOST_SAMPLES)
    return time - samples[-1].time >= step


def with_sample(samples: Sequence[Sample], new: Sample) -> list[Sample]:
    """The samples with one more, thinned where there are too many."""
    return thin([*samples, new])


def thin(samples: Sequence[Sample]) -> list[Sample]:
    """At most `MOST_SAMPLES`: of each two neighbours one, with the larger memory of both. First and last stay."""
    kept = list(samples)
    while len(kept) > MOST_SAMPLES:
        inner = kept[1:-1]
        pairs = zip(inner[::2], inner[1::2], strict=False)
        merged = [Sample(second.time, second.cpu_seconds, max(one.memory, second.memory)) for one, second in pairs]
        odd = inner[-1:] if len(inner) % 2 else []
        kept = [kept[0], *merged, *odd, kept[-1]]
    return kept


def cpu_use(samples: Sequence[Sample]) -> list[CpuUse]:
    """The cores that were busy between each two samples. A stretch over a restart, where counting began again, is left
    out."""
    use = []
    for before, after in pairwise(samples):
        spent, seconds = after.cpu_seconds - before.cpu_seconds, after.time - before.time
        if spent >= 0 and seconds > 0:
            use.append(CpuUse(after.time, spent / seconds))
    return use


_MEMORY_STEP = 256 << 20
_MEMORY_SPARE = 1.25
_CPU_STEP = 0.25


def memory_for(peak: int) -> int:
    """Bytes to ask for where so many were used at most: a quarter more, in whole steps of 256 MiB."""
    return max(1, math.ceil(peak * _MEMORY_SPARE / _MEMORY_STEP)) * _MEMORY_STEP


def cores_for(busy: float) -> float:
    """Cores to ask for where so many were busy at most, in whole steps of a quarter."""
    return max(1, math.ceil(round(busy / _CPU_STEP, 3))) * _CPU_STEP


class Spent(NamedTuple):
    """What a task used while it was measured. `memory_seconds`: bytes times seconds."""

    seconds: float
    cpu_seconds: float
    memory_seconds: float


def spent(samples: Sequence[Sample]) -> Spent | None:
    """All that was used between the samples; None: there are too few to tell. A restart, where counting began again,
    adds what was counted since."""
    seconds = cpu = memory = 0.0
    for before, after in pairwise(samples):
        passed = after.time - before.time
        if passed <= 0:
            continue
        seconds += passed
        used = after.cpu_seconds - before.cpu_seconds
        cpu += used if used >= 0 else after.cpu_seconds
        memory += passed * after.memory
    return Spent(seconds, cpu, memory) if seconds else None
