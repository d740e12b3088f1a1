"""What an engine had, and what was held and used of it, over the last day or week: for a picture and its table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from apps.api.plots import Lines, lines
from apps.jobs.engines.snapshots import SAMPLE_EVERY
from apps.jobs.models import EngineSample

SPANS = {"day": ("Last 24 hours", timedelta(days=1)), "week": ("Last 7 days", timedelta(days=7))}
ROWS = 24
"""In the table beside the picture, at most about as many."""


@dataclass(frozen=True)
class Row:
    at: datetime
    total: float
    reserved: float
    used: float | None


@dataclass(frozen=True)
class Plot:
    """`resource`: the one that it shows; `resources`: all that was there or held in the time; `rows`: some of the
    samples, evenly."""

    resource: str
    picture: Lines
    resources: Sequence[str]
    rows: Sequence[Row]


def plot_of(engine: str, resource: str, span: timedelta, now: datetime) -> Plot:
    """Of this resource, or of CPU where there was none of it. One statement, of some hundred samples at most."""
    samples = list(EngineSample.objects.filter(engine=engine, at__gte=now - span, at__lte=now).order_by("at"))
    names = dict.fromkeys(
        name for one in samples for held in (one.total, one.reserved) for name, amount in held.items() if amount
    )
    resource = resource if resource in names else "cpu"
    is_measured = resource in ("cpu", "memory")
    rows = [
        Row(
            one.at, one.total.get(resource, 0), one.reserved.get(resource, 0),
            one.used.get(resource) if is_measured else None,
        )
        for one in samples
    ]  # fmt: skip
    series = {
        "capacity": [(one.at, one.total) for one in rows],
        "reserved": [(one.at, one.reserved) for one in rows],
    }
    if is_measured:
        series["used"] = [(one.at, one.used) for one in rows]  # type: ignore[misc]
    picture = lines(series, now - span, now, longest_gap=3 * SAMPLE_EVERY)
    step = max(1, -(-len(rows) // ROWS))
    return Plot(resource, picture, list(names), rows[::-step])
