"""A pass that is short of time, or meets what fails, leaves nothing out for ever; and it goes by the rules as they are
when it decides."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from apps.audit.models import AuditEvent
from apps.jobs.models import Job, JobCleared, RetentionRule
from apps.jobs.worker import retention
from apps.jobs.worker.retention import retention_continue, retention_sweep
from apps.namespaces.models import Namespace
from tests.integration.jobs.test_retention_pass import MONTH, ended, lines, rule
from yardmaster.errors import Unavailable
from yardmaster.lifecycle.retention import Kind

PASS = timedelta(minutes=5)


class Clock:
    """Stands in for `time`: it goes on when told."""

    def __init__(self) -> None:
        self.at = 0.0

    def monotonic(self) -> float:
        return self.at


@pytest.fixture
def clock(monkeypatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(retention, "time", made)
    return made


@pytest.fixture
def broken(monkeypatch):
    """Let removing a log fail."""

    def away(*_: object) -> None:
        raise Unavailable("The disk does not answer.")

    with monkeypatch.context() as changed:
        changed.setattr(retention, "attempts_delete", away)
        yield changed


def test_bytes_of_earlier_decisions_go_although_deciding_takes_all_the_time(
    world, ada, bob, clock, broken, monkeypatch
):
    job = ended(world, ada, files=False)
    rule("logs")
    assert retention_sweep(world.now + MONTH) == 1
    broken.undo()

    def takes_long(*_: object) -> int:
        clock.at += 1_000
        return 0

    monkeypatch.setattr(retention, "_decide", takes_long)
    ended(world, bob, files=False)
    retention_sweep(world.now + MONTH)
    assert clock.at > 0
    assert not lines(job)


def test_each_kind_and_each_namespace_is_the_first_in_some_pass(world, ada, bob, clock, monkeypatch):
    for owner in (ada, bob):
        ended(world, owner)
    for kind in Kind:
        rule(kind.value)
    first = set()

    def takes_all(namespace: Namespace, kind: Kind, *_: object) -> int:
        first.add((namespace.owner_id, kind))
        clock.at += 1_000
        return 0

    monkeypatch.setattr(retention, "_decide", takes_all)
    for number in range(6):
        retention_sweep(world.now + MONTH + number * PASS)
    assert first == {(owner.pk, kind) for owner in (ada, bob) for kind in Kind}


def test_a_namespace_that_fails_does_not_keep_the_others(world, ada, bob, monkeypatch, caplog):
    jobs = [ended(world, owner, files=False) for owner in (ada, bob)]
    rule("logs")
    decide = retention._decide

    def fails(namespace: Namespace, *given) -> int:
        if namespace.owner == ada:
            raise ValueError("a fault")
        return decide(namespace, *given)

    monkeypatch.setattr(retention, "_decide", fails)
    for number in range(2):  # whichever is the first
        retention_sweep(world.now + MONTH + number * 3 * PASS)
    assert [bool(lines(job)) for job in jobs] == [True, False]
    assert "a fault" in caplog.text


@pytest.mark.parametrize("turn", [0, 2])
def test_rows_that_fail_do_not_keep_those_after_them(world, ada, broken, monkeypatch, caplog, turn):
    jobs = [ended(world, ada, files=False, name=f"job {number}") for number in range(4)]
    rule("logs")
    retention_sweep(world.now + MONTH)
    broken.undo()
    order = list(JobCleared.objects.order_by("pk").values_list("pk", flat=True))
    failing = order[1:3]
    delete = retention.attempts_delete

    def fails(store, job_id, last) -> None:
        if job_id in failing:
            raise ValueError("a fault")
        delete(store, job_id, last)

    monkeypatch.setattr(retention, "attempts_delete", fails)
    monkeypatch.setattr(retention, "PAGE", 1)
    retention_continue(float("inf"), turn)
    assert {job.pk for job in jobs if lines(job)} == set(failing)
    assert "a fault" in caplog.text


def test_a_whole_job_that_cannot_be_deleted_does_not_keep_the_others(world, ada, monkeypatch):
    jobs = [ended(world, ada, files=False, name=f"job {number}") for number in range(3)]
    rule("jobs")
    delete = retention.job_delete_unused

    def fails(job: Job) -> bool:
        if job.pk == jobs[0].pk:
            raise ValueError("a fault")
        return delete(job)

    monkeypatch.setattr(retention, "job_delete_unused", fails)
    assert retention_sweep(world.now + MONTH) == 2
    assert AuditEvent.objects.get(action="retention.remove").facts["jobs"] == 2
    assert world.again(jobs[0]).deleted_at is None


def resets(_: Job) -> None:
    RetentionRule.objects.all().delete()


def keeps_longer(job: Job) -> None:
    rule("logs", 365, namespace=job.namespace)


def closes(job: Job) -> None:
    Namespace.objects.filter(pk=job.namespace_id).update(closed_at=timezone.now())


@pytest.mark.parametrize("act", [resets, keeps_longer, closes])
def test_what_changes_after_a_pass_has_begun_counts(world, ada, monkeypatch, act):
    job = ended(world, ada, files=False)
    rule("logs")
    locked = retention.rules_locked

    def meanwhile(*given):
        act(job)
        return locked(*given)

    monkeypatch.setattr(retention, "rules_locked", meanwhile)
    assert retention_sweep(world.now + MONTH) == 0
    assert lines(job)
