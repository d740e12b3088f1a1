"""TensorBoards of chosen jobs: each choice of a member has a row. They are bounded in number, and go when they were not
started for long; a namespace's own TensorBoard and its Jupyters stay."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet

from apps.errors import QuotaExceeded
from apps.hosting.selectors import NOT_ENDED
from apps.jobs.services import job_delete_unused
from apps.namespaces.models import Namespace
from apps.workbench.models import WorkbenchSession

KEPT = timedelta(days=30)
"""After its last start; the link to it leads nowhere from then on."""
MOST = 200
"""In one namespace."""
_AT_ONCE = 500
_CHOSEN = "job"
"""Subjects `job:ID` and `jobs:DIGEST` begin so."""


def is_chosen(subject: str) -> bool:
    """Whether it is the subject of a session of chosen jobs."""
    return subject.startswith(_CHOSEN)


def oldest_drop(namespace: Namespace) -> None:
    """Remove the oldest stopped ones where there are as many as a namespace may have. Raises `QuotaExceeded` where all
    of them run."""
    count = WorkbenchSession.objects.filter(namespace=namespace, subject__startswith=_CHOSEN).count()
    if count < MOST:
        return
    oldest = list(_stopped().filter(namespace=namespace)[: count - MOST + 1])
    if not oldest:
        message = f"The namespace {namespace.slug} has {MOST} TensorBoards of chosen jobs, and all of them run."
        raise QuotaExceeded(message, remedy="Stop one, or use the TensorBoard of the namespace.")
    for session in oldest:
        _remove(session)


def chosen_clean(now: datetime) -> None:
    """Remove those that were not started for long."""
    for session in _stopped().filter(started_at__lt=now - KEPT)[:_AT_ONCE]:
        _remove(session)


def _stopped() -> QuerySet[WorkbenchSession]:
    """The longest ago first."""
    chosen = WorkbenchSession.objects.filter(subject__startswith=_CHOSEN, again__isnull=True).exclude(NOT_ENDED)
    return chosen.select_related("job__namespace").order_by("started_at")


def _remove(session: WorkbenchSession) -> None:
    """With the job of its last start: it has no page but its session's. What was started since it was read stays."""
    same = WorkbenchSession.objects.filter(pk=session.pk, starts=session.starts, again__isnull=True)
    with transaction.atomic():
        # Locked first: what is deleted is found by its key alone.
        found = same.select_for_update().first()
        if found is None:
            return
        found.delete()
    if session.job is not None:
        job_delete_unused(session.job)
