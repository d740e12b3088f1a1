"""The jobs that wait for capacity, and asking for a pass that decides them all at once.

One `QueuePass` per engine says whether a pass was asked for. Asking twice before it begins sends one message: a
thousand launches are decided by a few passes. A message that was lost is sent again by the sweep.
"""

from __future__ import annotations

import logging
import uuid
from datetime import datetime, timedelta

from django.db import DatabaseError, transaction
from django.db.models import Q
from django.utils import timezone

from apps.dispatch.messages import ADMIT, enqueue_now
from apps.jobs.models import AdmissionLock, Job, QueuePass

log = logging.getLogger(__name__)

LOOK_AGAIN = timedelta(minutes=30)
"""Nothing becomes of a look at a job that waits, but what a lost message has left undone."""
AGAIN_AFTER = timedelta(seconds=10)
"""A pass that was sent for and not begun is sent for again after this long."""


def ask(engine: str) -> None:
    """Have the engine's queue decided soon, once the running transaction is committed. Never raises."""
    transaction.on_commit(lambda: _ask(engine))


def ask_for_capacity_of(job: Job) -> None:
    """Something that this job held is free: have those decided who wait for its engine or its namespace's quota."""
    transaction.on_commit(lambda: _ask(job.engine))
    _ask_for(job.namespace_id, but=job.engine)


def ask_for_namespace(namespace_id: uuid.UUID) -> None:
    """The namespace's quota has changed: have its waiting jobs decided."""
    _ask_for(namespace_id)


def ask_for_all() -> None:
    """Something of many namespaces has changed: have every queue decided that jobs wait in."""

    def ask_each() -> None:
        try:
            found = list(Job.objects.waiting().values_list("engine", flat=True).distinct())
        except DatabaseError as error:
            log.warning("All queues are decided at the next sweep: %s", error)
            return
        for engine in found:
            _ask(engine)

    transaction.on_commit(ask_each)


def lock_admissions() -> None:
    """Keep every pass from deciding, and be kept by one that does, until the running transaction ends."""
    if not AdmissionLock.objects.select_for_update().filter(pk=1).exists():
        AdmissionLock.objects.get_or_create(pk=1)
        AdmissionLock.objects.select_for_update().get(pk=1)


def sweep_queues(now: datetime) -> int:
    """Send for a pass over every queue that is due, and not by any worker yet. Returns how many."""
    engines = set(Job.objects.waiting().values_list("engine", flat=True).distinct())
    known = set(QueuePass.objects.filter(engine__in=engines).values_list("engine", flat=True))
    QueuePass.objects.bulk_create([QueuePass(engine=one) for one in engines - known], ignore_conflicts=True)
    due = QueuePass.objects.filter(Q(next_at__isnull=True) | Q(next_at__lte=now), engine__in=engines)
    sent = 0
    for engine in sorted(due.values_list("engine", flat=True)):
        if due.filter(engine=engine).update(next_at=now + AGAIN_AFTER):
            enqueue_now(ADMIT, engine)
            sent += 1
    return sent


def _ask_for(namespace_id: uuid.UUID, *, but: str = "") -> None:
    def ask_each() -> None:
        waiting = Job.objects.waiting().filter(namespace_id=namespace_id).exclude(engine=but)
        try:
            found = list(waiting.values_list("engine", flat=True).distinct())
        except DatabaseError as error:
            log.warning("The queues of namespace %s are decided at the next sweep: %s", namespace_id, error)
            return
        for engine in found:
            _ask(engine)

    transaction.on_commit(ask_each)


def _ask(engine: str) -> None:
    """After the commit, so that a pass which begins after this has seen what changed. What fails here is found by the
    sweep."""
    now = timezone.now()
    try:
        asked = QueuePass.objects.filter(engine=engine, asked=False).update(asked=True, next_at=now + AGAIN_AFTER)
        if not asked:
            _, asked = QueuePass.objects.get_or_create(
                engine=engine, defaults={"asked": True, "next_at": now + AGAIN_AFTER}
            )
    except DatabaseError as error:
        log.warning("The queue of %s is decided at the next sweep: %s", engine, error)
        return
    if asked:
        enqueue_now(ADMIT, engine)
