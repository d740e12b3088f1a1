"""Keep the latest, lowest and highest value of each metric of a job as its points arrive: for lists and comparisons.

Not here: what is kept of points (`yardmaster.job.metrics`), and the curves (`curves`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from apps.jobs.models import Job, JobMetric
from yardmaster.job.metrics import MOST_METRICS, Kept, points_by_name, with_points

_VALUES = ("step", "latest", "not_finite", "lowest", "highest")


def metrics_take(job: Job, points: Sequence[Mapping[str, Any]]) -> None:
    """Keep what these points of the current attempt say. In the transaction of their report; may be repeated."""
    found = points_by_name(points)
    if not found:
        return
    rows = {row.name: row for row in _locked(job)}
    if found.keys() - rows.keys() and len(rows) < MOST_METRICS:
        rows = _begun(job, found)
    mine = [rows[name] for name in found if name in rows]
    for row in mine:
        kept = Kept(**{name: getattr(row, name) for name in _VALUES})
        if row.attempt != job.attempt:
            kept = kept.of_next_attempt() if row.attempt >= job.resumes_from else Kept()
        for name, value in vars(with_points(kept, found[row.name])).items():
            setattr(row, name, value)
        row.attempt = job.attempt
    JobMetric.objects.bulk_create([row for row in mine if row.pk is None])
    JobMetric.objects.bulk_update([row for row in mine if row.pk is not None], [*_VALUES, "attempt"])


def _begun(job: Job, found: Collection[str]) -> dict[str, JobMetric]:
    """All rows, with a new one for each new name as far as there is room. The job's row is locked, so that tasks that
    report at once begin no name twice and no more than are kept."""
    Job.objects.select_for_update(no_key=True).filter(pk=job.pk).values_list("pk").first()
    rows = {row.name: row for row in _locked(job)}
    for name in found:
        if name not in rows and len(rows) < MOST_METRICS:
            rows[name] = JobMetric(job=job, namespace_id=job.namespace_id, name=name, attempt=job.attempt)
    return rows


def _locked(job: Job) -> QuerySet[JobMetric]:
    return JobMetric.objects.select_for_update().filter(job=job).order_by("name")


def metrics_of(job_ids: Collection[UUID], names: Collection[str] | None = None) -> dict[UUID, dict[str, JobMetric]]:
    """The metrics of each of these jobs by name (None: all of them). One query; none without jobs."""
    rows = JobMetric.objects.filter(job__in=job_ids)
    rows = rows if names is None else rows.filter(name__in=names)
    found: dict[UUID, dict[str, JobMetric]] = {}
    for row in rows if job_ids else ():
        found.setdefault(row.job_id, {})[row.name] = row
    return found
