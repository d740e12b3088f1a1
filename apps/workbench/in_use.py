"""Which ended jobs sessions refer to: the newest of each, and those that an open TensorBoard was asked to show."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from typing import Any

from django.db.models import Q, QuerySet
from django.dispatch import receiver

from apps.jobs.models import Job, jobs_in_use
from apps.jobs.selectors import UNFINISHED
from apps.workbench.models import WorkbenchSession


@receiver(jobs_in_use)
def _of_sessions(
    job_ids: Collection[uuid.UUID] | None = None, **_: Any
) -> QuerySet[WorkbenchSession, uuid.UUID | None]:
    asked = Q(job__isnull=False) if job_ids is None else Q(job__in=job_ids)
    return WorkbenchSession.objects.filter(asked).values_list("job", flat=True)


@receiver(jobs_in_use)
def _shown(job_ids: Collection[uuid.UUID] | None = None, **_: Any) -> list[uuid.UUID]:
    rows = WorkbenchSession.objects.filter(job__phase__in=UNFINISHED)
    if job_ids is not None:  # all jobs of a TensorBoard are of its own namespace
        rows = rows.filter(namespace__in=Job.objects.filter(pk__in=job_ids).values("namespace"))
    shown = [uuid.UUID(one) for ids in rows.values_list("job_ids", flat=True) for one in ids]
    return shown if job_ids is None else [one for one in shown if one in job_ids]
