"""From the times of steps, and of what the runner read beside them, to ratios. Pure: `steps` measures.

All times are seconds of the monotonic clock, which processes of one machine share.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

Span = tuple[float, float]
BUSY = 1 << 20
"""Bytes that a runner which sends files reads between two samples, at least."""


@dataclass(frozen=True)
class Step:
    """One step of the script: when it began and ended, and its processor time."""

    began: float
    ended: float
    processor: float


@dataclass(frozen=True)
class Sample:
    """What the runner had read by then, in bytes, and used of processors, in seconds."""

    at: float
    read: int
    processor: float


@dataclass(frozen=True)
class Ratios:
    """Of steps during uploads to steps without them; `share`: of one processor, what the runner used meanwhile."""

    median: float
    p99: float
    processor_median: float
    processor_p99: float
    share: float
    steps: int


def busy_spans(samples: Sequence[Sample]) -> list[Span]:
    """When the runner was sending files: between samples of which the later one has read `BUSY` more."""
    spans: list[Span] = []
    for one, two in itertools.pairwise(samples):
        if two.read - one.read >= BUSY:
            begun = spans.pop()[0] if spans and spans[-1][1] == one.at else one.at
            spans.append((begun, two.at))
    return spans


def within(steps: Sequence[Step], spans: Sequence[Span]) -> list[Step]:
    """The steps that touch one of the spans, which do not overlap and are in order, as the steps are. A step that is
    held up for longer than a span counts, too."""
    left = iter(spans)
    span = next(left, None)
    found = []
    for step in steps:
        while span is not None and span[1] <= step.began:
            span = next(left, None)
        if span is not None and step.ended > span[0]:
            found.append(step)
    return found


def ratios(quiet: Sequence[Step], busy: Sequence[Step], samples: Sequence[Sample], spans: Sequence[Span]) -> Ratios:
    """Raises `ValueError` where there are too few steps of a kind for a 99th percentile."""
    if min(len(quiet), len(busy)) < 100:
        raise ValueError(f"{len(quiet)} steps without uploads and {len(busy)} during them: at least 100 are needed")

    return Ratios(
        median=ratio(busy, quiet, 0.5, taken),
        p99=ratio(busy, quiet, 0.99, taken),
        processor_median=ratio(busy, quiet, 0.5, used),
        processor_p99=ratio(busy, quiet, 0.99, used),
        share=_used(samples, spans) / sum(end - begun for begun, end in spans),
        steps=len(busy),
    )


def taken(step: Step) -> float:
    return step.ended - step.began


def used(step: Step) -> float:
    return step.processor


def ratio(some: Sequence[Step], others: Sequence[Step], part: float, of: Callable[[Step], float]) -> float:
    """A quantile of some steps over that of the others."""
    return quantile(map(of, some), part) / quantile(map(of, others), part)


def quantile(values: Iterator[float], part: float) -> float:
    """The least value that `part` of all values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def _used(samples: Sequence[Sample], spans: Sequence[Span]) -> float:
    """Processor seconds of the runner within the spans, whose ends are times of samples."""
    at = {one.at: one.processor for one in samples}
    return sum(at[end] - at[begun] for begun, end in spans)
