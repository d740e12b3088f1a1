"""Removing what is old while others work on the same jobs: what only a real database shows."""

from __future__ import annotations

import threading
import time

import pytest
from django.db import connection, transaction
from django.utils import timezone

from apps.accounts.models import User
from apps.administration.retention import RuleFacts, rule_reset, rule_set
from apps.audit.models import AuditEvent
from apps.errors import NotFound
from apps.jobs.labels import job_change, job_pin
from apps.jobs.models import Job, JobCleared, JobPin, RetentionRule
from apps.jobs.services import job_retry
from apps.jobs.state.retention import fates_of
from apps.jobs.worker import retention
from apps.jobs.worker.retention import retention_sweep
from apps.namespaces.models import Namespace
from tests.integration.jobs.test_jobs_on_postgres import at_once
from tests.integration.jobs.test_retention_pass import MONTH, ended, rule
from yardmaster.lifecycle.retention import Kind, Spared

pytestmark = pytest.mark.postgres


@pytest.fixture
def carl(postgres_world) -> User:
    return User.objects.create_user("carl", "carl@example.org", "correct horse battery")


class Meanwhile:
    """Begins `act` in another thread as soon as a pass has written its decision, and lets the pass commit that when the
    thread waits for a lock."""

    def __init__(self, monkeypatch, act) -> None:
        self._act, self._write = act, retention._write
        self._thread = threading.Thread(target=self._run)
        self._raised: list[BaseException] = []
        monkeypatch.setattr(retention, "_write", self._written)

    def _run(self) -> None:
        try:
            self._act()
        except BaseException as error:  # noqa: BLE001 - given to the test
            self._raised.append(error)
        finally:
            connection.close()

    def _written(self, *given) -> int:
        count = self._write(*given)
        self._thread.start()
        ends = time.monotonic() + 30
        while not _someone_waits():
            assert time.monotonic() < ends, "no one waits for the locked job"
        return count

    def raised(self) -> list[BaseException]:
        self._thread.join(30)
        assert not self._thread.is_alive()
        return self._raised


def _someone_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return cursor.fetchone()[0] > 0


def test_a_pin_that_is_being_made_keeps_the_job_from_a_pass_that_comes_meanwhile(postgres_world, carl):
    job = ended(postgres_world, carl, files=False)
    rule("logs")
    made, may_end = threading.Event(), threading.Event()

    def pin() -> None:
        with transaction.atomic():
            job_pin(user=carl, job=job)
            made.set()
            assert may_end.wait(30)

    def a_pass() -> None:
        assert made.wait(30)
        try:
            assert retention_sweep(postgres_world.now + MONTH) == 0, "the job is locked: it is passed over"
        finally:
            may_end.set()

    at_once(pin, a_pass)
    assert retention_sweep(postgres_world.now + MONTH) == 0, "now the pin is seen"
    assert not JobCleared.objects.exists()


def test_a_pin_that_comes_after_the_decision_waits_and_finds_a_whole_job_gone(postgres_world, carl, monkeypatch):
    job = ended(postgres_world, carl, files=False)
    rule("jobs")
    other = Meanwhile(monkeypatch, lambda: job_pin(user=carl, job=job))
    assert retention_sweep(postgres_world.now + MONTH) == 1
    assert [type(one) for one in other.raised()] == [NotFound]
    assert not JobPin.objects.exists()


def test_a_retry_that_comes_after_the_decision_waits_and_its_attempt_keeps_what_it_writes(
    postgres_world, carl, monkeypatch
):
    job = ended(postgres_world, carl)
    rule("files")
    other = Meanwhile(monkeypatch, lambda: job_retry(user=carl, job=job))
    assert retention_sweep(postgres_world.now + MONTH) == 1
    assert other.raised() == []
    assert Job.objects.get(pk=job.pk).attempt == 2
    assert JobCleared.objects.get(job=job).files_attempt == 1


def test_two_passes_at_once_remove_and_count_each_job_once(postgres_world, carl):
    for number in range(6):
        ended(postgres_world, carl, files=False, name=f"job {number}")
    rule("logs")
    at_once(*[lambda: retention_sweep(postgres_world.now + MONTH)] * 3)
    retention_sweep(postgres_world.now + MONTH)
    assert sum(one.facts["jobs"] for one in AuditEvent.objects.filter(action="retention.remove")) == 6
    assert JobCleared.objects.filter(logs_done_at__isnull=False).count() == 6


def test_the_newest_and_every_exception_are_read_the_same_way_there(postgres_world, carl):
    jobs = [ended(postgres_world, carl, files=False, name=f"job {number}") for number in range(3)]
    job_pin(user=carl, job=jobs[0])
    job_change(user=carl, job=jobs[1], tags=["paper"])
    made = rule("logs", newest=1, tags=["paper"])
    rule("jobs", days=60, only_archived=True)
    assert retention_sweep(postgres_world.now + MONTH) == 0
    spared = [fates_of(job, postgres_world.now)[Kind.LOGS].spared for job in jobs]
    assert spared == [Spared.PINNED, Spared.TAGGED, Spared.NEWEST]
    made.tags = ["base"]
    made.save()
    assert retention_sweep(postgres_world.now + MONTH) == 1
    assert JobCleared.objects.get().job_id == jobs[1].pk


def resets(_: Job, actor: User) -> None:
    rule_reset(found=RetentionRule.objects.get(), reason="wrong", actor=actor)


def makes_its_own(job: Job, actor: User) -> None:
    rule_set(said=RuleFacts(Kind.LOGS, None, job.namespace), reason="keep", actor=actor)


def closes(job: Job, _: User) -> None:
    Namespace.objects.filter(pk=job.namespace_id).update(closed_at=timezone.now())


ACTS = pytest.mark.parametrize("act", [resets, makes_its_own, closes])


@ACTS
def test_who_changes_what_counts_waits_for_a_decision_that_is_being_written(postgres_world, carl, monkeypatch, act):
    job = ended(postgres_world, carl, files=False)
    rule("logs")
    other = Meanwhile(monkeypatch, lambda: act(job, carl))
    assert retention_sweep(postgres_world.now + MONTH) == 1
    assert other.raised() == []
    JobCleared.objects.all().delete()
    assert retention_sweep(postgres_world.now + MONTH) == 0


@ACTS
def test_a_pass_waits_for_who_changes_what_counts_and_goes_by_it(postgres_world, carl, act):
    job = ended(postgres_world, carl, files=False)
    rule("logs")
    made = threading.Event()

    def changes() -> None:
        with transaction.atomic():
            act(job, carl)
            made.set()
            ends = time.monotonic() + 30
            while not _someone_waits():
                assert time.monotonic() < ends, "the pass does not wait"

    def a_pass() -> None:
        assert made.wait(30)
        assert retention_sweep(postgres_world.now + MONTH) == 0

    at_once(changes, a_pass)
    assert not JobCleared.objects.exists()
