"""The list of jobs sorted by something else than their age: by a metric, a time, a parameter.

A sorted list is read by its place (the first 50, the next 50), for values change while one reads; the time of the first
page goes along, so that what still runs does not move. A metric's own index gives its order; everything else sorts what
the filters leave. Not here: the filters, and who sees what (`job_list`).
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db.models import BigIntegerField, Exists, F, OuterRef, QuerySet, Subquery, Sum, Value
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import Cast, Coalesce, Greatest

from apps.jobs.models import Job, JobMetric, Reservation
from apps.jobs.state.whole_seconds import WholeSeconds
from yardmaster.job.list_columns import PARAMETER, SIGNS, Column, Condition, Ordering

_SECONDS = BigIntegerField()


def with_conditions(jobs: QuerySet[Job], conditions: Sequence[Condition]) -> QuerySet[Job]:
    """Those jobs whose metrics meet all of these."""
    for one in conditions:
        meets = {"name": one.column.name, f"{one.column.field}__{SIGNS[one.sign]}": one.value}
        jobs = jobs.filter(Exists(JobMetric.objects.filter(job=OuterRef("pk"), **meets)))
    return jobs


def sorted_ids(
    jobs: QuerySet[Job],
    namespaces: Sequence[uuid.UUID] | None,
    order: Ordering,
    now: datetime,
    start: int,
    end: int,
) -> list[uuid.UUID]:
    """The ids at these places. `jobs` are those that the filters leave, `namespaces` where to look (None:
    everywhere)."""
    mine = jobs if namespaces is None else jobs.filter(namespace_id__in=namespaces)
    if order.column.field:
        return _by_metric(mine, namespaces, order, start, end)
    if order.column.kind == "gpu_hours":
        return _by_gpu_time(mine, order, now, start, end)
    value = F("pk") if order.column.kind == "created" else _value(order.column, now)
    by = value.desc(nulls_last=True) if order.descending else value.asc(nulls_last=True)
    return list(mine.order_by(by, "-pk").values_list("pk", flat=True)[start:end])


def _by_metric(
    jobs: QuerySet[Job], namespaces: Sequence[uuid.UUID] | None, order: Ordering, start: int, end: int
) -> list[uuid.UUID]:
    """From the metric's index; after those that have a value the others, the newest first."""
    field, sign = order.column.field, "-" if order.descending else ""
    known = JobMetric.objects.filter(name=order.column.name, **{f"{field}__isnull": False})
    rows = known if namespaces is None else known.filter(namespace_id__in=namespaces)
    rows = rows.filter(job__in=jobs.order_by().values("pk"))
    found = rows.order_by(f"{sign}{field}", f"{sign}job").values_list("job_id", flat=True)
    return _and_the_others(found, jobs.exclude(Exists(known.filter(job=OuterRef("pk")))), start, end)


def _by_gpu_time(jobs: QuerySet[Job], order: Ordering, now: datetime, start: int, end: int) -> list[uuid.UUID]:
    """One sum over the reservations with GPUs, which most jobs lack: a subquery for each of 100,000 jobs takes
    seconds."""
    rows = Reservation.objects.filter(gpus__gt=0, job__in=jobs.order_by().values("pk")).order_by().values("job")
    sums = rows.annotate(seconds=_held_for(now)).order_by("-seconds" if order.descending else "seconds", "-job")
    none = jobs.exclude(Exists(Reservation.objects.filter(job=OuterRef("pk"), gpus__gt=0)))
    return _and_the_others(sums.values_list("job", flat=True), none, start, end)


def _and_the_others(known: QuerySet[Any], others: QuerySet[Job], start: int, end: int) -> list[uuid.UUID]:
    """The places from `start` to `end` of those that have a value, in order, and then of those that have none, the
    newest first."""
    found = list(known[start:end])
    if len(found) == end - start:
        return found
    count = start + len(found) if found or not start else known.count()
    rest = others.order_by("-pk").values_list("pk", flat=True)
    return found + list(rest[max(0, start - count) : end - count])


def _value(column: Column, now: datetime) -> Any:
    """What the jobs are sorted by; NULL for a job that has none."""
    at = Value(now)
    match column.kind:
        case "duration":
            return WholeSeconds(Coalesce(F("decided_at"), at)) - WholeSeconds(F("started_at"))
        case "queue_time":
            return WholeSeconds(Coalesce(F("admitted_at"), F("decided_at"), at)) - WholeSeconds(F("queued_at"))
        case "tags":
            return KeyTextTransform(0, "tags")
        case kind if kind == PARAMETER:
            return KeyTransform(column.name, "named_values")
    return F(column.kind)


def with_gpu_time(jobs: QuerySet[Job], now: datetime) -> QuerySet[Job]:
    """The jobs with `gpu_seconds`: for how long their tasks held GPUs, once for each GPU; None: they held none."""
    return jobs.annotate(gpu_seconds=_gpu_seconds(now))


def _gpu_seconds(now: datetime) -> Subquery:
    rows = Reservation.objects.filter(job=OuterRef("pk"), gpus__gt=0).order_by().values("job")
    return Subquery(rows.annotate(seconds=_held_for(now)).values("seconds"), output_field=_SECONDS)


def _held_for(now: datetime) -> Sum:
    """Seconds, once for each GPU, of some reservations."""
    until = WholeSeconds(Coalesce(F("released_at"), Value(now)))
    held = Greatest(Cast(until - WholeSeconds(F("reserved_at")), _SECONDS), Value(0, output_field=_SECONDS))
    return Sum(held * Cast(F("gpus"), _SECONDS), output_field=_SECONDS)
