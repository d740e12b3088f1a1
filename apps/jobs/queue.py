"""The jobs that wait for room: in which order, and waking them when there may be some."""

from __future__ import annotations

import uuid
from datetime import datetime

from django.conf import settings
from django.db.models import Q, QuerySet

from apps.api.problems import Conflict
from apps.jobs.models import Job
from apps.jobs.wake import wake
from apps.namespaces.models import Namespace
from yardmaster.ledger import Code
from yardmaster.phases import Phase, Wanted

WOKEN_AT_ONCE = 20
"""Room that is freed rarely takes more; whoever is further back looks again by itself."""


def waiting() -> QuerySet[Job]:
    """Every job that waits, first first: by priority, then by when it came."""
    return Job.objects.filter(phase=Phase.QUEUED.value, wanted=Wanted.RUN.value, deleted_at__isnull=True).order_by(
        "-priority", "queued_at", "id"
    )


def refuse_full(namespace: Namespace) -> None:
    """Raises the conflict `queue_full` where the namespace has as many queued jobs as it may. In the transaction that
    queues another one, with the namespace's row locked: of two requests at once the second sees the first one's job."""
    most: int = settings.YARDMASTER_QUEUED_JOBS
    count = waiting().filter(namespace=namespace).count()
    if count >= most:
        raise Conflict(
            f"The namespace {namespace.slug} may have {most} jobs in the queue, and has {count}.",
            "queue_full",
            remedy="Wait until some have started, or stop some; or ask an administrator to raise "
            "YARDMASTER_QUEUED_JOBS.",
        )


def wake_waiting(job: Job, now: datetime) -> None:
    """Something that this job held is free: wake those who wait for its engine or its namespace's quota."""
    _wake(waiting().filter(Q(engine=job.engine) | Q(namespace_id=job.namespace_id)).exclude(pk=job.pk), now)


def wake_passed(job: Job, now: datetime) -> None:
    """This job has started: wake those who were only told to let it go first."""
    turn = waiting().filter(engine=job.engine, reason=Code.WAITING_FOR_TURN.value)
    _wake(turn.exclude(pk=job.pk), now)


def wake_namespace(namespace_id: uuid.UUID, now: datetime) -> None:
    """The namespace's quota has changed: wake those who wait for it."""
    _wake(waiting().filter(namespace_id=namespace_id), now)


def _wake(jobs: QuerySet[Job], now: datetime) -> None:
    ids = list(jobs.values_list("pk", flat=True)[:WOKEN_AT_ONCE])
    Job.objects.filter(pk__in=ids).update(next_look_at=now, wake_again=True)
    for job_id in ids:
        wake(job_id)
