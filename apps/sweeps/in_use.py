"""Which ended jobs sweeps refer to: the trials of those that have not ended, whose curves decide what comes next."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from datetime import timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.dispatch import receiver
from django.utils import timezone

from apps.jobs.models import jobs_in_use
from apps.sweeps.models import SweepTrial
from yardmaster.sweeps.decision import SweepState

PAUSED_FOR = timedelta(days=30)
"""For so long after its end a trial of a sweep that is paused counts as one of a running sweep: else what is paused and
forgotten would be kept for ever."""


@receiver(jobs_in_use)
def _of_sweeps(job_ids: Collection[uuid.UUID] | None = None, **_: Any) -> QuerySet[SweepTrial, uuid.UUID | None]:
    running = Q(sweep__state__in=[SweepState.RUNNING.value, SweepState.STOPPING.value])
    paused = Q(sweep__state=SweepState.PAUSED.value, ended_at__gt=timezone.now() - PAUSED_FOR)
    asked = Q(job__isnull=False) if job_ids is None else Q(job__in=job_ids)
    return SweepTrial.objects.filter(asked, running | paused).values_list("job", flat=True)
