"""What only a real database shows of sessions: several orders, starts, stops and revocations at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from apps.accounts.models import PersonalToken, User
from apps.accounts.services import tokens_revoke_all
from apps.errors import DomainError, QuotaExceeded
from apps.hosting.selectors import NOT_ENDED
from apps.jobs.models import Job
from apps.workbench import services
from apps.workbench.credentials import _signed_in
from apps.workbench.models import WorkbenchSession
from tests.integration.jobs.conftest import postgres_world
from tests.integration.workbench.conftest import changed, jupyter_of, ready
from tests.real.postgres import postgres_cluster, postgres_db

__all__ = ["postgres_cluster", "postgres_db", "postgres_world"]

pytestmark = pytest.mark.postgres


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """What each of these calls gave in a thread of its own, or the problem that it met, all begun together."""
    gate, found = threading.Barrier(len(calls)), []

    def run(call: Callable[[], Any]) -> None:
        gate.wait()
        try:
            found.append(call())
        except DomainError as problem:
            found.append(problem)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == len(calls), "a call met another error than one of its rules"
    return found


@pytest.fixture
def carl(postgres_world) -> User:
    return User.objects.create_user("carl", "carl@example.org", "correct horse battery")


def test_orders_at_once_leave_one_token_and_a_stop_among_them_none(carl):
    session = ready(jupyter_of(carl))
    at_once(*[lambda: _signed_in(session.job)] * 6)
    assert PersonalToken.objects.filter(user=carl).count() == 1
    orders = [lambda: _signed_in(session.job)] * 4
    at_once(*orders, lambda: services.session_stop(user=carl, session=changed(session)), *orders)
    assert not PersonalToken.objects.filter(user=carl).exists()


def test_a_revocation_among_orders_is_the_last_word(carl):
    session = ready(jupyter_of(carl))
    assert _signed_in(session.job)
    at_once(*[lambda: _signed_in(session.job)] * 4, lambda: tokens_revoke_all(user=carl, actor=carl))
    assert not PersonalToken.objects.filter(user=carl).exists()
    assert _signed_in(session.job) == []


def test_starts_at_once_run_no_more_sessions_than_allowed(carl, postgres_world, settings):
    settings.YARDMASTER_WORKBENCH = settings.YARDMASTER_WORKBENCH | {"SESSIONS": 2}
    jobs = [postgres_world.launch(carl).pk for _ in range(4)]

    def start(job: Any) -> Any:
        return services.tensorboard_start(user=carl, namespace=carl.personal_namespace, job_ids=[job])

    found = at_once(*[lambda one=job: start(one) for job in jobs])
    assert sum(isinstance(one, QuotaExceeded) for one in found) == 2
    assert WorkbenchSession.objects.filter(NOT_ENDED, job__wanted="RUN").count() == 2


def test_starts_and_stops_at_once_leave_no_job_without_its_session(carl):
    session = jupyter_of(carl)

    def start() -> Any:
        return services.session_start(user=carl, session=changed(session))

    def stop() -> Any:
        return services.session_stop(user=carl, session=changed(session))

    for _ in range(10):
        at_once(start, stop, start, stop)
        wanted = Job.objects.filter(strategy="service", wanted="RUN", deleted_at__isnull=True)
        assert set(wanted.exclude(phase="STOPPED").values_list("pk", flat=True)) <= {changed(session).job_id}
        stop()
        Job.objects.filter(strategy="service").update(phase="STOPPED", cleaned_up_at="2026-01-01T00:00Z")
