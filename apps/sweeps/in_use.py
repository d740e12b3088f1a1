"""Which ended jobs sweeps refer to: the trials of those that have not ended, whose curves decide what comes next."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from typing import Any

from django.db.models import Q, QuerySet
from django.dispatch import receiver

from apps.jobs.models import jobs_in_use
from apps.sweeps.models import Sweep, SweepTrial
from yardmaster.sweeps.decision import SweepState


@receiver(jobs_in_use)
def _of_sweeps(job_ids: Collection[uuid.UUID] | None = None, **_: Any) -> QuerySet[SweepTrial, uuid.UUID | None]:
    running = Sweep.objects.exclude(state=SweepState.ENDED.value)
    asked = Q(job__isnull=False) if job_ids is None else Q(job__in=job_ids)
    return SweepTrial.objects.filter(asked, sweep__in=running).values_list("job", flat=True)
