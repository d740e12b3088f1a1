"""How many sessions a namespace may have at once, and has. Not here: how many one user may (`services`)."""

from __future__ import annotations

import uuid

from django.db import transaction
from django.db.models import Count, QuerySet

from apps.errors import QuotaExceeded
from apps.hosting.selectors import NOT_ENDED
from apps.jobs.services import job_stop_unused
from apps.namespaces.models import Namespace
from apps.namespaces.selectors import quota_of
from apps.workbench.models import WorkbenchSession
from yardmaster.errors import Problem
from yardmaster.lifecycle.phases import Wanted


def sessions_by_namespace() -> dict[uuid.UUID, int]:
    """How many every namespace has that has any, those that wait or stop included. One statement."""
    rows = WorkbenchSession.objects.filter(NOT_ENDED).order_by().values("namespace_id")
    return dict(rows.annotate(count=Count("pk")).values_list("namespace_id", "count"))


def refuse_full(session: WorkbenchSession) -> None:
    """Raises `QuotaExceeded` where the session's namespace has as many others as its quota allows."""
    bound = quota_of(session.namespace).sessions
    if bound is None:
        return
    others = _others(session).count()
    if others >= bound:
        raise _full(session.namespace, others, bound)


def stop_above_quota(session: WorkbenchSession) -> None:
    """Starts at once do not see each other: counted again, one start of the namespace after the other. Raises, and has
    the session stopped, where it is one too many."""
    bound = quota_of(session.namespace).sessions
    if bound is None:
        return
    with transaction.atomic():
        Namespace.objects.select_for_update(no_key=True).get(pk=session.namespace_id)
        others = _others(session).filter(job__wanted=Wanted.RUN.value).count()
        if others >= bound and session.job is not None:
            job_stop_unused(session.job, f"Stopped: its namespace has {bound} sessions, as many as its quota allows.")
    if others >= bound:
        raise _full(session.namespace, others, bound)


def _others(session: WorkbenchSession) -> QuerySet[WorkbenchSession]:
    return WorkbenchSession.objects.filter(NOT_ENDED, namespace=session.namespace_id).exclude(pk=session.pk)


def _full(namespace: Namespace, count: int, bound: int) -> QuotaExceeded:
    detail = f"The quota of {namespace.slug} allows {bound} sessions at once, and it has {count}."
    remedy = "Stop one on the page Workbench, or ask an administrator for more sessions."
    problem = Problem("sessions", "quota_full", f"At most {bound} are allowed.", remedy, str(count))
    return QuotaExceeded(detail, remedy=remedy, errors=[problem])
