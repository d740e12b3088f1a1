"""Which ended jobs schedules refer to: the newest of each that is not paused and has a next time."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery
from django.dispatch import receiver

from apps.jobs.models import jobs_in_use
from apps.schedules.models import Schedule, TemplateJob


@receiver(jobs_in_use)
def _of_schedules(job_ids: Collection[uuid.UUID] | None = None, **_: Any) -> QuerySet[Schedule, uuid.UUID | None]:
    newest = TemplateJob.objects.filter(schedule=OuterRef("pk")).order_by("-job_id").values("job_id")[:1]
    running = Schedule.objects.filter(next_at__isnull=False).annotate(newest=Subquery(newest))
    if job_ids is not None:  # a job came from one schedule at most
        theirs = TemplateJob.objects.filter(job__in=job_ids, schedule__isnull=False)
        running = running.filter(pk__in=theirs.values("schedule"), newest__in=job_ids)
    return running.filter(newest__isnull=False).values_list("newest", flat=True)
