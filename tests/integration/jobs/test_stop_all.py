"""Ending every job of a machine, as its operator does without any page."""

from __future__ import annotations

import pytest

from apps.accounts.models import User
from apps.audit.models import AuditEvent
from apps.errors import Forbidden
from apps.jobs.models import Job, JobEvent
from apps.jobs.services import jobs_stop_all, jobs_stop_of
from apps.namespaces.models import Membership
from apps.namespaces.models import Role as Rank
from apps.namespaces.services import team_create
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import TaskPhase


def test_every_unfinished_job_of_the_machine_is_to_stop_and_is_told_by_whom(world, admin):
    over = world.launch(admin, strategy="single", roles={"worker": {"cpu": 1, "memory": "1Gi"}})
    world.until_running(over)
    world.engine.succeed(over)
    world.until_quiet()
    runs, waits = world.launch(admin), world.launch(admin)
    world.until_running(runs)

    assert {job.pk for job in jobs_stop_all(engines=["staged"])} == {runs.pk, waits.pk}
    assert jobs_stop_all(engines=["staged"]) == []
    world.until_quiet()
    assert [world.again(job).phase for job in (over, runs, waits)] == ["SUCCEEDED", "STOPPED", "STOPPED"]
    told = JobEvent.objects.get(job=runs, kind="stop_asked")
    assert "operator" in told.message
    assert AuditEvent.objects.filter(action="job.stop", actor_id=None).count() == 2


def test_jobs_of_other_engines_go_on(world, admin):
    job = world.launch(admin)
    assert jobs_stop_all(engines=["local"]) == []
    assert world.again(job).wanted == "RUN"


def test_tasks_that_the_operator_ended_on_the_engine_itself_make_a_stopped_job(world, admin):
    job = world.launch(admin)
    world.until_running(job)
    jobs_stop_all(engines=["staged"])
    for role, index in ((Role.WORKER, 0), (Role.WORKER, 1), (Role.PS, 0)):
        world.engine.set(job, role, index, TaskPhase.RELEASED)
    world.until_quiet()
    assert (world.again(job).phase, world.again(job).reason) == ("STOPPED", "Stopped")
    assert not world.engine.has(job)


def test_whoever_is_locked_out_while_the_code_is_read_launches_nothing(world, ada):
    """The lock counts as it is when the row is written, so that "Lock and stop jobs" finds every job or refuses it."""
    job = world.launch(ada)
    User.objects.filter(pk=ada.pk).update(is_active=False)
    with pytest.raises(Forbidden):
        world.launch(ada)
    assert list(Job.objects.all()) == [job]


def test_the_jobs_of_one_owner_are_stopped_in_every_namespace(world, ada, bob, admin):
    team = team_create(slug="vision", title="", manager=ada, actor=admin)
    Membership.objects.create(namespace=team, user=bob, role=Rank.MEMBER)
    mine = [world.launch(ada), world.launch(ada, namespace=team)]
    other = world.launch(bob, namespace=team)
    assert [job.pk for job in jobs_stop_of(ada, admin)] == [job.pk for job in mine]
    assert jobs_stop_of(ada, admin) == []
    assert [Job.objects.get(pk=job.pk).wanted for job in (*mine, other)] == ["STOP", "STOP", "RUN"]
