"""Which ended jobs sweeps refer to: the trials of those that have not ended, whose curves decide what comes next."""

from __future__ import annotations

import uuid
from typing import Any

from django.db.models import QuerySet
from django.dispatch import receiver

from apps.jobs.models import jobs_in_use
from apps.sweeps.models import Sweep, SweepTrial
from yardmaster.sweeps.decision import SweepState


@receiver(jobs_in_use)
def _of_sweeps(**_: Any) -> QuerySet[SweepTrial, uuid.UUID | None]:
    running = Sweep.objects.exclude(state=SweepState.ENDED.value)
    return SweepTrial.objects.filter(sweep__in=running, job__isnull=False).values_list("job", flat=True)
