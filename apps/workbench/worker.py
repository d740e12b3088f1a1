"""Stop sessions that no one uses, start those again whose restart waits for the end of their job, and forget what
lets no one in any more. Called by Celery's workers."""

from __future__ import annotations

import logging
import uuid
from datetime import datetime

from apps.accounts.models import User
from apps.errors import DomainError
from apps.hosting.state import use_of
from apps.hosting.sweeping import sweep
from apps.workbench.activity import last_use
from apps.workbench.credentials import tokens_clean
from apps.workbench.entrances import entrances_clean
from apps.workbench.models import Kind, WorkbenchSession
from apps.workbench.services import session_start
from yardmaster.errors import YardmasterError
from yardmaster.lifecycle.idleness import Idle, idle_step

log = logging.getLogger(__name__)


def sessions_sweep(now: datetime) -> int:
    """Returns how many sessions were stopped or started."""
    changed = sweep(WorkbenchSession, now, may_be_decided=_ask_jupyter)
    for session in WorkbenchSession.objects.filter(again__isnull=False).select_related("job", "namespace", "owner"):
        changed += _start_again(session)
    tokens_clean()
    entrances_clean(now)
    return changed


def _ask_jupyter(session: WorkbenchSession, now: datetime, is_time: bool) -> bool:
    """Look, before a Jupyter is stopped, whether a kernel or a terminal was used since the last request: that counts.
    Returns whether its idle time may be decided now."""
    if session.kind != Kind.JUPYTER or session.job is None or session.ready_at is None:
        return True
    if idle_step(use_of(session, session.job), now) is Idle.LEAVE:
        return True
    used = last_use(session, now) if is_time else None
    if used is not None and (session.last_used_at is None or used > session.last_used_at):
        WorkbenchSession.objects.filter(pk=session.pk, last_used_at=session.last_used_at).update(last_used_at=used)
        session.last_used_at = used
    return is_time


def _start_again(session: WorkbenchSession) -> bool:
    if session.job is not None and session.job.deleted_at is None and not session.job.is_over:
        return False
    again = session.again or {}
    WorkbenchSession.objects.filter(pk=session.pk).update(again=None)
    user = User.objects.filter(pk=uuid.UUID(again["by"]), is_active=True).first()
    if user is None:
        return False
    try:
        session_start(user=user, session=session, size=again.get("size"), engine=again.get("engine"))
    except (DomainError, YardmasterError) as error:
        log.info("Session %s was not started again: %s", session.pk, error)
        return False
    return True
