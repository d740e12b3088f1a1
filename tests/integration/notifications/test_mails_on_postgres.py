"""What only a real database shows of mails and of browsers: several at once."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.core import mail
from django.core.cache import caches
from django.db import connection
from django.test import Client
from django.utils import timezone

from apps.accounts.models import Browser, User
from apps.notifications.choosing import choices_set
from apps.notifications.models import Notice
from apps.notifications.services import verdicts_note
from apps.notifications.worker import notice_send, notices_sweep
from tests.integration.accounts.test_accounts_on_postgres import at_once
from tests.integration.jobs.conftest import engine_settings, postgres_world, stores
from tests.real.postgres import postgres_cluster, postgres_db
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import TaskPhase

__all__ = ["engine_settings", "postgres_cluster", "postgres_db", "postgres_world", "stores"]

pytestmark = pytest.mark.postgres


@pytest.fixture
def ada(postgres_world) -> User:
    return User.objects.create_user("ada", "ada@example.org")


def test_of_workers_that_are_woken_at_once_one_sends(postgres_world, ada):
    job = postgres_world.launch(ada)
    postgres_world.settle()
    postgres_world.engine.set(job, Role.WORKER, 0, TaskPhase.FAILED, reason="ScriptFailed", exit_code=1)
    postgres_world.until_quiet()
    at_once(lambda number: verdicts_note())
    notice = Notice.objects.get()
    at_once(lambda number: notice_send(notice.pk, clock=postgres_world.clock))
    assert len(mail.outbox) == 1
    notice.refresh_from_db()
    assert (notice.tries, notice.due_at) == (1, None)


def test_of_sweeps_at_once_one_writes_that_a_job_waits(postgres_world, ada):
    choices_set(
        user=ada, on_success=False, on_failure=False, on_stop=False, on_wait=True, wait_minutes=15, with_log=True
    )
    postgres_world.launch(ada)
    later = postgres_world.now + timedelta(hours=1)
    at_once(lambda number: notices_sweep(later))
    assert Notice.objects.count() == 1


def test_requests_of_one_browser_at_once_note_it_once(postgres_db):
    user = User.objects.create_user("bob")
    client = Client()
    client.force_login(user)
    Browser.objects.all().delete()
    key = client.session.session_key
    gate, codes = threading.Barrier(6), []

    def look(number: int) -> None:
        other = Client(REMOTE_ADDR=f"10.0.0.{number}")
        other.cookies["yardmaster_session"] = key
        caches["browsers"].clear()  # as in several web processes
        gate.wait()
        codes.append(other.get("/api/v1/me/").status_code)
        connection.close()

    threads = [threading.Thread(target=look, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [200] * 6
    assert Browser.objects.get().seen_at <= timezone.now()
