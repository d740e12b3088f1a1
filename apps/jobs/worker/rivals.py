"""The other jobs that an engine has no place for, as `plan` is told of them. Only reads."""

from __future__ import annotations

from django.db.models import Max, Q

from apps.jobs.models import Job
from yardmaster.lifecycle.hindrances import NO_RIVALS, Rivals
from yardmaster.lifecycle.phases import Observation, Phase
from yardmaster.lifecycle.placing_words import SCALING_UP
from yardmaster.lifecycle.success import UNSCHEDULABLE


def of(job: Job, seen: Observation | None) -> Rivals:
    """Of a job that starts and is refused; nothing is read for any other."""
    if job.phase != Phase.STARTING.value or job.admitted_at is None or seen is None or seen.refused is None:
        return NO_RIVALS
    others = Job.objects.filter(engine=job.engine).exclude(pk=job.pk)
    refused = others.filter(phase=Phase.STARTING.value, reason__in=(UNSCHEDULABLE, SCALING_UP))
    same = Q(admitted_at=job.admitted_at)
    later = Q(admitted_at__gt=job.admitted_at) | same & (
        Q(queued_at__gt=job.queued_at) | Q(queued_at=job.queued_at, pk__gt=job.pk)
    )
    made = others.filter(refused_at__gte=job.admitted_at).aggregate(at=Max("refused_at"))["at"]
    return Rivals(is_last=not refused.filter(later).exists(), room_made_at=made)
