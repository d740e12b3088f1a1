"""Which ended jobs sessions refer to: the newest of each, and those that an open TensorBoard was asked to show."""

from __future__ import annotations

import uuid
from typing import Any

from django.db.models import QuerySet
from django.dispatch import receiver

from apps.jobs.models import jobs_in_use
from apps.jobs.selectors import UNFINISHED
from apps.workbench.models import WorkbenchSession


@receiver(jobs_in_use)
def _of_sessions(**_: Any) -> QuerySet[WorkbenchSession, uuid.UUID | None]:
    return WorkbenchSession.objects.filter(job__isnull=False).values_list("job", flat=True)


@receiver(jobs_in_use)
def _shown(**_: Any) -> list[uuid.UUID]:
    rows = WorkbenchSession.objects.filter(job__phase__in=UNFINISHED).values_list("job_ids", flat=True)
    return [uuid.UUID(one) for ids in rows for one in ids]
