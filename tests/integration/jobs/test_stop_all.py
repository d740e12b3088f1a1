"""Ending every job of a machine, as its operator does without any page."""

from __future__ import annotations

from apps.audit.models import AuditEvent
from apps.jobs.models import JobEvent
from apps.jobs.services import jobs_stop_all
from yardmaster.phases import TaskPhase
from yardmaster.spec import Role


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
