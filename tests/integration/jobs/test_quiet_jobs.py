"""Running jobs to which nothing happens cost a few statements for all of them, and no worker a look."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.db import models

from apps.jobs.models import Job, Reservation, TaskFact
from apps.jobs.state import task_facts
from apps.jobs.worker import sweep as sweeping
from apps.jobs.worker.sweep import sweep
from yardmaster.errors import Unavailable
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import Wanted


@pytest.fixture
def woken(monkeypatch) -> list[uuid.UUID]:
    """Who was sent to a worker."""
    found: list[uuid.UUID] = []
    monkeypatch.setattr(sweeping, "enqueue_now", lambda task, job_id: found.append(job_id))
    return found


@pytest.fixture
def running(world, ada) -> list[Job]:
    jobs = [world.launch(ada) for _ in range(4)]
    world.settle()
    for job in jobs:
        world.look(job)
    world.now += timedelta(seconds=60)
    assert {world.again(job).phase for job in jobs} == {"RUNNING"}
    return jobs


def test_quiet_jobs_are_put_off_together_and_looked_at_by_nobody(world, running, woken, django_assert_max_num_queries):
    with django_assert_max_num_queries(12):
        assert sweep(world.now) == len(running)
    assert woken == []
    for job in running:
        found = world.again(job)
        assert found.next_look_at == world.now + timedelta(seconds=15)
        assert (found.lease_until, found.phase) == (None, "RUNNING")
    assert sweep(world.now) == 0


def _ends(world, job):
    world.engine.succeed(job)


def _fails(world, job):
    world.engine.end(job.key, Role.WORKER, 0, 1)


def _is_lost(world, job):
    world.engine.lose(job.key)


def _is_to_stop(world, job):
    Job.objects.filter(pk=job.pk).update(wanted=Wanted.STOP.value)


def _is_asked_for(world, job):
    Job.objects.filter(pk=job.pk).update(wake_again=True)


def _has_an_unknown_task(world, job):
    TaskFact.objects.filter(job=job, index=0).delete()


def _had_a_setback(world, job):
    Job.objects.filter(pk=job.pk).update(setbacks=1)


def _says_something(world, job):
    Job.objects.filter(pk=job.pk).update(reason="EngineUnavailable", message="It was away.")


def _cannot_be_read(world, job):
    Job.objects.filter(pk=job.pk).update(spec={"version": 99})


@pytest.mark.parametrize(
    "happens",
    [_ends, _fails, _is_lost, _is_to_stop, _is_asked_for, _has_an_unknown_task, _had_a_setback, _says_something,
     _cannot_be_read],
)  # fmt: skip
def test_a_job_to_which_something_happened_is_looked_at_and_the_others_are_not(world, running, woken, happens):
    happens(world, running[1])
    sweep(world.now)
    assert woken == [running[1].pk]
    assert world.again(running[1]).next_look_at == world.now + sweeping.AGAIN_AFTER


def test_a_job_past_its_time_limit_is_looked_at(world, ada, woken):
    job = world.launch(ada, max_runtime=90)
    world.settle()
    world.look(job)
    world.now += timedelta(seconds=60)
    sweep(world.now)
    assert woken == []
    assert world.again(job).next_look_at < world.now + timedelta(seconds=31)
    world.now += timedelta(seconds=40)
    sweep(world.now)
    assert woken == [job.pk]


def test_a_job_that_is_being_looked_at_is_left_alone(world, running, woken):
    until = world.now + timedelta(seconds=30)
    Job.objects.filter(pk=running[0].pk).update(lease_until=until)
    sweep(world.now)
    assert woken == [running[0].pk]
    assert world.again(running[0]).lease_until == until


def test_jobs_of_an_engine_that_does_not_answer_are_looked_at_one_by_one(world, running, woken):
    world.engine.fail_next("observe", Unavailable("away"))
    sweep(world.now)
    assert sorted(woken) == sorted(job.pk for job in running)


def test_a_change_between_the_look_and_the_write_is_not_put_off(world, running, woken, monkeypatch):
    observe = world.engine.observe

    def meanwhile(keys):
        Job.objects.filter(pk=running[2].pk).update(wake_again=True, next_look_at=world.now)
        return observe(keys)

    monkeypatch.setattr(world.engine, "observe", meanwhile)
    sweep(world.now)
    assert running[2].pk in woken
    assert world.again(running[2]).wake_again


def test_a_job_that_cannot_be_decided_is_looked_at_and_the_others_are_not(world, running, woken, monkeypatch):
    unchanged = task_facts.unchanged

    def broken(job, seen, facts):
        if any(fact.job_id == running[1].pk for fact in facts):
            raise ValueError("a bug")
        return unchanged(job, seen, facts)

    monkeypatch.setattr(task_facts, "unchanged", broken)
    sweep(world.now)
    assert woken == [running[1].pk]


def test_a_role_and_a_strategy_of_another_release_keep_no_job_from_being_looked_at(world, running, woken):
    Job.objects.filter(pk=running[1].pk).update(strategy="tpu_pods", spec={})
    models.QuerySet.update(models.QuerySet(Reservation).filter(job=running[1], role="ps"), role="sidecar")
    sweep(world.now)
    assert woken == [running[1].pk]


def test_jobs_are_woken_where_the_shortcut_itself_fails(world, running, woken, monkeypatch):
    def broken(*_):
        raise ValueError("a bug")

    monkeypatch.setattr(sweeping, "quiet_put_off", broken)
    sweep(world.now)
    assert sorted(woken) == sorted(job.pk for job in running)
