"""When a job that waits will probably start, in words, and how right such words were. Reads only."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, FilteredRelation, Q, QuerySet

from apps.jobs.models import Job, WaitEstimate
from yardmaster.lifecycle.phases import Phase

COUNTED = 300
FEWEST = 20
"""Waits that ended, before it is said how many of the estimates were right."""
_STEPS = (
    (60, 60, "minute"),
    (3_600, 60, "minute"),
    (172_800, 3_600, "hour"),
    (float("inf"), 86_400, "day"),
)


@dataclass(frozen=True)
class Estimate:
    """`until` None: no end can be said."""

    starts_from: datetime
    until: datetime | None
    words: str


def estimate_of(job: Job, now: datetime) -> Estimate | None:
    """When the job starts; None where it does not wait, or nothing can be said."""
    if job.phase != Phase.QUEUED.value:
        return None
    if hasattr(job, "starts_from"):  # read with the job (`with_estimates`): its page asks nothing more
        return estimate_beside(job, now)
    found = WaitEstimate.objects.filter(job=job, attempt=job.attempt).first()
    return _shown(found.starts_from, found.starts_until, now) if found else None


def with_estimates(jobs: QuerySet[Job]) -> QuerySet[Job]:
    """The same jobs, each with what `estimate_beside` reads: no statement more."""
    mine = FilteredRelation("wait_estimates", condition=Q(wait_estimates__attempt=F("attempt")))
    return jobs.annotate(
        estimate=mine, starts_from=F("estimate__starts_from"), starts_until=F("estimate__starts_until")
    )


def estimate_beside(job: Job, now: datetime) -> Estimate | None:
    """When a job of `with_estimates` that waits starts."""
    found: Any = job
    return _shown(found.starts_from, found.starts_until, now)


def _shown(begin: datetime | None, end: datetime | None, now: datetime) -> Estimate | None:
    return None if begin is None else Estimate(begin, end, words_of(begin, end, now))


def words_of(begin: datetime, end: datetime | None, now: datetime) -> str:
    """`in 5 to 20 minutes`, `within 10 minutes`, `in more than 2 hours`, `soon`."""
    low = max(0.0, (begin - now).total_seconds())
    if end is None:
        return f"in more than {_span(low)}" if low >= 60 else "at an unknown time"
    high = (end - now).total_seconds()
    if high < 60:
        return "within a minute" if high > 0 else "soon; it waits longer than was estimated"
    if low < 60:
        return f"within {_span(high, up=True)}"
    first, last = _span(low), _span(high, up=True)
    if first == last:
        return f"in about {first}"
    (number, unit), (_, other) = first.split(), last.split()
    return f"in {number} to {last}" if unit.rstrip("s") == other.rstrip("s") else f"in {number} {unit} to {last}"


def right_of(engine: str) -> tuple[int, int] | None:
    """Of the last waits for this engine that ended, how many did so within the range that was shown first, and of how
    many. None: too few have ended."""
    rows = WaitEstimate.objects.filter(engine=engine, started_at__isnull=False).order_by("-said_at")
    found = list(rows.values_list("said_at", "said_low", "said_high", "started_at")[:COUNTED])
    if len(found) < FEWEST:
        return None
    waits = [((started - said).total_seconds(), low, high) for said, low, high, started in found if started]
    # A second either way: the ranges are whole minutes where they are read.
    return sum(low - 1 <= waited and (high is None or waited <= high + 1) for waited, low, high in waits), len(found)


def _span(seconds: float, *, up: bool = False) -> str:
    """In one unit: down, or `up`, to a whole one."""
    size, unit = next((size, unit) for below, size, unit in _STEPS if seconds < below)
    whole = timedelta(seconds=seconds) // timedelta(seconds=size)
    number = max(1, whole + (up and whole * size < seconds))
    return f"{number} {unit}{'' if number == 1 else 's'}"
