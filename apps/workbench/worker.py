"""What the portal does with sessions by itself. It stops those that are not used, run for too long, or whose owner may
no longer run them. It starts those whose restart waited for the end of their job. It removes tokens and entrances of
sessions that have ended, and TensorBoards of chosen jobs that were not started for long. Called by Celery's workers."""

from __future__ import annotations

import contextlib
import logging
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.cache import cache

from apps.accounts.models import User
from apps.errors import DomainError, Forbidden, words_of
from apps.hosting.selectors import running
from apps.hosting.state import use_of
from apps.hosting.sweeping import sweep
from apps.jobs.services import job_stop_unused
from apps.workbench.access import without_role
from apps.workbench.activity import NotAnswered, last_use
from apps.workbench.chosen import chosen_clean
from apps.workbench.credentials import tokens_clean
from apps.workbench.entrances import entrances_clean
from apps.workbench.models import Kind, WorkbenchSession
from apps.workbench.services import limit_of, session_start
from yardmaster.errors import YardmasterError
from yardmaster.lifecycle.idleness import Idle, idle_step, stops_by_age
from yardmaster.quantity import format_duration

log = logging.getLogger(__name__)

LONGEST_WITHOUT_ANSWER = timedelta(minutes=30)
"""How long a Jupyter whose limit is over may not answer, before it counts as unused: it may be busy with a cell."""

ASKED_EVERY = timedelta(minutes=5)
"""How often a Jupyter is asked at most when it was used, while that decides nothing yet."""
_LOOKED_AT = 20


def sessions_sweep(now: datetime) -> int:
    """Returns how many sessions were stopped or started. What fails is in the log, and does not keep the rest from its
    turn."""
    changed = _guarded(_stop_longest, now) + _guarded(_stop_without_role)
    changed += _guarded(lambda: sweep(WorkbenchSession, now, may_be_decided=_may_be_idle))
    _guarded(_ask_one, now)
    for session in WorkbenchSession.objects.filter(again__isnull=False).select_related("job", "namespace", "owner"):
        changed += _guarded(_start_again, session)
    for clean in (tokens_clean, lambda: entrances_clean(now), lambda: chosen_clean(now)):
        _guarded(clean)
    return changed


def _guarded(step: Callable[..., int | None], *given: Any) -> int:
    """What it returns; 0 where it fails."""
    try:
        return step(*given) or 0
    except Exception:  # one must not keep the others from their turn
        log.exception("A step of the sweep of sessions failed: %s", given)
        return 0


def _may_be_idle(session: WorkbenchSession, now: datetime, is_time: bool) -> bool:
    """Whether the idle time of a session may be decided now. Before a Jupyter is stopped, it is asked whether a kernel
    or a terminal was used since the last request, which counts; as long as it has not said, it may not."""
    if session.job is None or stops_by_age(use_of(session, session.job)):
        return False  # `_stop_longest` stops it, and says why
    if session.kind != Kind.JUPYTER:
        return True
    if idle_step(use_of(session, session.job), now) is Idle.LEAVE:
        return True
    if not is_time:
        return False
    try:
        _note(session, last_use(session, now))
    except NotAnswered:
        return now - _unanswered_since(session, now) >= LONGEST_WITHOUT_ANSWER
    return True


def _ask_one(now: datetime) -> None:
    """Ask one Jupyter when it was used, long before its limit is over: pages say until when it runs. One in a sweep,
    since one that hangs takes seconds."""
    rows = running(WorkbenchSession).filter(kind=Kind.JUPYTER, ready_at__isnull=False).order_by("?")
    for session in rows[:_LOOKED_AT]:
        if cache.add(f"workbench-asked:{session.pk}", True, timeout=ASKED_EVERY.total_seconds()):
            with contextlib.suppress(NotAnswered):  # it is asked again
                _note(session, last_use(session, now))
            return


def _note(session: WorkbenchSession, used: datetime | None) -> None:
    if used is not None and (session.last_used_at is None or used > session.last_used_at):
        WorkbenchSession.objects.filter(pk=session.pk, last_used_at=session.last_used_at).update(last_used_at=used)
        session.last_used_at = used


def _unanswered_since(session: WorkbenchSession, now: datetime) -> datetime:
    """When this worker first had no answer, since the session was used or answered last. Kept in memory: a worker that
    starts again waits from then on."""
    key = f"workbench-unanswered:{session.pk}:{session.last_used_at}:{session.ready_at}".replace(" ", "T")
    found: datetime | None = cache.get_or_set(key, now, timeout=2 * LONGEST_WITHOUT_ANSWER.total_seconds())
    return found or now


def _stop_longest(now: datetime) -> int:
    """Stop those that run for longer than any may, however much they are used."""
    longest = settings.YARDMASTER_WORKBENCH["LONGEST"]
    words = f"It was stopped after {format_duration(int(longest.total_seconds()))}, the longest that a session may run."
    old = running(WorkbenchSession).filter(job__started_at__lte=now - longest)
    return sum(_guarded(_stop, session, words) for session in old.select_related("job__namespace"))


def _stop_without_role() -> int:
    """Stop Jupyters whose owner has left the namespace, or may no longer launch there: no one else there may."""
    words = "It was stopped: its owner may no longer start sessions in this namespace."
    return sum(_guarded(_stop, session, words) for session in without_role())


def _stop(session: WorkbenchSession, words: str) -> bool:
    """Of which the page says `words`."""
    if session.job is None or not job_stop_unused(session.job, words):
        return False
    WorkbenchSession.objects.filter(pk=session.pk, job=session.job).update(problem=words)
    return True


def _start_again(session: WorkbenchSession) -> bool:
    """Start it where its job has ended. `again` stays until the start is written down, or is refused: meanwhile those
    who look see a restart, and one that was interrupted is tried in the next sweep."""
    if session.job is not None and session.job.deleted_at is None and not session.job.is_over:
        return False
    again = session.again or {}
    same = WorkbenchSession.objects.filter(pk=session.pk, starts=session.starts, again=again)
    if not same.exists():
        return False  # called off since it was read
    user = User.objects.filter(pk=uuid.UUID(again["by"]), is_active=True).first()
    try:
        if user is None:
            raise Forbidden("The account of the user who restarted it is locked.", "Start it on its page.")
        asked = {name: value for name, value in again.items() if name != "by"}
        return session_start(user=user, session=session, idle_limit=limit_of(session), **asked)[1]
    except (DomainError, YardmasterError) as error:
        log.info("Session %s was not started again: %s", session.pk, error)
        same.update(again=None, problem=f"It was not started again. {words_of(error)}"[:500])
        return False
