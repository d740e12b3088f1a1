"""What jobs of a list have in the further columns that were asked for. Two queries at most, whatever their number.

The GPU time of a list comes with its jobs (`list_sort.with_gpu_time`). Not here: which columns there are
(`yardmaster.job.list_columns`), sorting by them (`list_sort`).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from apps.api.display import duration
from apps.jobs.models import Job, JobMetric
from apps.jobs.state.list_sort import with_gpu_time
from apps.jobs.state.metrics import metrics_of
from yardmaster.job.list_columns import GPU_HOURS, PARAMETER, Column

_NOT_FINITE = {"nan": "NaN", "inf": "∞", "-inf": "-∞"}


@dataclass(frozen=True)
class Value:
    """What one job has in one column. None: nothing. Times are in seconds."""

    column: Column
    value: float | str | None
    words: str
    """As people read it; empty: nothing."""


def values_of(jobs: Sequence[Job], columns: Sequence[Column], now: datetime) -> dict[uuid.UUID, list[Value]]:
    """By job, in the order of the columns."""
    if not columns:
        return {}
    ids = [job.pk for job in jobs]
    names = {one.name for one in columns if one.field}
    metrics = metrics_of(ids, names) if names else {}
    if GPU_HOURS in columns:
        _gpu_time(jobs, now)
    return {job.pk: [_value(job, column, metrics.get(job.pk, {}), now) for column in columns] for job in jobs}


def _gpu_time(jobs: Sequence[Job], now: datetime) -> None:
    """Ask it for those that were read without it."""
    without = [job for job in jobs if not hasattr(job, "gpu_seconds")]
    rows = Job.objects.filter(pk__in=[job.pk for job in without])
    found = (
        {job.pk: getattr(job, "gpu_seconds", None) for job in with_gpu_time(rows.only("pk"), now)} if without else {}
    )
    for job in without:
        job.gpu_seconds = found.get(job.pk)  # type: ignore[attr-defined]  # as the annotation would


def _value(job: Job, column: Column, metrics: Mapping[str, JobMetric], now: datetime) -> Value:
    if column.field:
        return _of_metric(column, metrics.get(column.name))
    match column.kind:
        case "duration":
            return _time(column, job.started_at, job.decided_at or now)
        case "queue_time":
            return _time(column, job.queued_at, job.admitted_at or job.decided_at or now)
        case "gpu_hours":
            seconds = getattr(job, "gpu_seconds", None) or 0
            return Value(column, round(seconds / 3_600, 4), _number(round(seconds / 3_600, 2)))
        case "tags":
            words = ", ".join(job.tags)
            return Value(column, words or None, words)
        case kind if kind == PARAMETER:
            found = job.named_values.get(column.name)
            return Value(column, found, "" if found is None else _number(found))
    return Value(column, job.steps_per_second, "" if job.steps_per_second is None else _number(job.steps_per_second))


def _of_metric(column: Column, metric: JobMetric | None) -> Value:
    found = None if metric is None else getattr(metric, column.field)
    if metric is not None and found is None and column.field == "latest":
        return Value(column, None, _NOT_FINITE.get(metric.not_finite, ""))
    return Value(column, found, "" if found is None else _number(found))


def _time(column: Column, since: datetime | None, until: datetime) -> Value:
    if since is None:
        return Value(column, None, "")
    seconds = max(0.0, round((until - since).total_seconds(), 1))
    return Value(column, seconds, duration(timedelta(seconds=seconds)))


def _number(value: float | str) -> str:
    """With four significant digits, as a curve's end is read; a whole number in full."""
    if isinstance(value, str):
        return value
    return str(int(value)) if abs(value) < 1e15 and value == int(value) else f"{value:.4g}"
