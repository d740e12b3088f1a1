"""A job's life from the launch until nothing of it is left, driven by the sweep alone: every event is lost."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest

from apps.jobs import services
from apps.jobs.models import Job, JobAttempt, JobEvent, Reservation, TaskFact
from apps.jobs.selectors import versions_in_use
from apps.jobs.state.ledger import held_roles
from apps.stores import log_store
from yardmaster.engines.fake import FakeEngine
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import Phase, TaskPhase
from yardmaster.logs.keys import StreamKey
from yardmaster_runner.patience import upload_stall


def phases(job) -> list[str]:
    return list(JobEvent.objects.filter(job=job, kind="phase").order_by("pk").values_list("phase_to", flat=True))


def test_a_job_runs_from_the_launch_to_its_end(world, ada):
    job = world.launch(ada)
    world.settle()
    assert world.again(job).phase == "RUNNING"
    world.engine.succeed(job)
    job = world.look(job)
    assert (job.phase, job.reason) == ("SUCCEEDED", "Succeeded")
    world.until_quiet()
    job = world.again(job)
    assert job.is_over
    assert not world.engine.has(job)
    assert phases(job) == ["QUEUED", "STARTING", "RUNNING", "SUCCEEDED"]
    assert not Reservation.objects.filter(released_at__isnull=True).exists()


def test_the_verdict_is_there_at_the_first_look_after_the_deciding_role_has_ended(world, ada):
    """trainer#657: when the workers are completed, the job is."""
    job = world.launch(ada)
    world.settle()
    world.engine.succeed(job)
    before = world.now
    job = world.look(job)
    assert job.decided_at == before


@pytest.mark.parametrize("ends_well", [True, False])
def test_a_job_that_is_over_before_it_was_seen_to_run_has_begun_all_the_same(world, ada, ends_well):
    """Its tasks say when."""
    job = world.launch(ada, strategy="single", roles={"worker": {"replicas": 1, "cpu": 1, "memory": "1Gi"}})
    begun = []

    def quick(verb):
        if verb != "submit" or begun:
            return
        begun.append(world.now + timedelta(seconds=1))
        phase, code = (TaskPhase.SUCCEEDED, 0) if ends_well else (TaskPhase.FAILED, 1)
        facts = {"phase": phase, "exit_code": code, "started_at": begun[0], "finished_at": begun[0]}
        world.engine.set_task(job.key, Role.WORKER, 0, **facts)
        world.now += timedelta(seconds=5)

    world.engine.after_verb = quick
    world.settle()
    world.look(job)
    job = world.again(job)
    assert job.phase == ("SUCCEEDED" if ends_well else "FAILED")
    assert job.started_at == begun[0]
    assert job.attempts.get(number=1).started_at == begun[0]
    assert job.admitted_at < job.started_at < job.decided_at


def test_a_run_that_its_engine_ends_as_a_whole_loses_no_output_and_no_task(world, ada):
    """Then the engine shows nothing of it any more: neither how tasks were, nor what they printed."""
    asked = []

    def finish(key):
        asked.append(key)
        world.engine.kept_output.clear()
        FakeEngine.clean_up(world.engine, key)

    world.engine.finish = finish
    job = world.launch(ada, reclaim_delay=0)
    world.settle()
    world.engine.kept_output[Role.WORKER, 0] = ["said before its runner began"]
    world.engine.succeed(job)
    world.until_quiet()
    job = world.again(job)
    assert (job.phase, job.is_over, set(asked)) == ("SUCCEEDED", True, {job.key})
    assert not Reservation.objects.filter(released_at__isnull=True).exists()
    phases_of = dict(TaskFact.objects.filter(job=job).values_list("role", "phase"))
    assert phases_of == {"worker": "SUCCEEDED", "ps": "RELEASED"}
    assert log_store().next_line(StreamKey(job.pk, job.attempt, Role.WORKER, 0)) == 1


def test_parameter_servers_are_released_after_the_delay_and_not_days_later(world, ada):
    """trainer#774, kubeflow#1334: a PS still ran four days after its job was complete."""
    job = world.launch(ada, reclaim_delay=30)
    world.settle()
    world.engine.succeed(job)
    world.settle()
    world.look(job)
    world.passes(29)
    assert world.engine.alive(job) == ["ps-0"]
    world.passes(2)
    assert world.engine.alive(job) == []
    assert world.again(job).released_at is not None
    world.until_quiet()
    assert world.again(job).is_over


def test_the_quota_of_a_role_is_free_as_soon_as_its_tasks_have_ended(world, ada):
    """kueue#1503: quota was held after pods had completed."""
    job = world.launch(ada)
    world.settle()
    assert held_roles(world.again(job)) == {Role.WORKER, Role.PS}
    world.engine.succeed(job)
    job = world.look(job)
    assert held_roles(job) == {Role.PS}
    world.until_quiet()
    assert held_roles(world.again(job)) == frozenset()


def test_the_quota_of_servers_is_held_until_they_are_gone(world, ada):
    """kueue#1574: quota was released while workers still ran."""
    job = world.launch(ada, reclaim_delay=600)
    world.settle()
    world.engine.succeed(job)
    world.passes(300)
    assert held_roles(world.again(job)) == {Role.PS}


def test_a_failed_worker_fails_the_job_with_its_reason_and_everything_is_stopped(world, ada):
    """trainer#1749: the exit code belongs into the job's state."""
    job = world.launch(ada)
    world.settle()
    world.engine.set(job, Role.WORKER, 1, TaskPhase.FAILED, reason="OutOfMemory", exit_code=137, finished_at=world.now)
    job = world.look(job)
    assert (job.phase, job.reason) == ("FAILED", "OutOfMemory")
    assert "137" in job.message
    assert job.remedy
    attempt = JobAttempt.objects.get(job=job)
    assert (attempt.role, attempt.index, attempt.exit_code, attempt.blame) == ("worker", 1, 137, "limit")
    world.until_quiet()
    assert world.again(job).is_over


def test_a_job_that_never_starts_says_what_holds_it_up_and_fails_in_the_end(world, ada):
    """trainer#2001: a pull that cannot succeed kept a job waiting for ever."""
    world.engine.begin_at_once = False
    job = world.launch(ada)
    world.settle()
    world.engine.set(job, Role.WORKER, 0, TaskPhase.PENDING, reason="ImagePull")
    job = world.look(job)
    assert (job.phase, job.reason) == ("STARTING", "ImagePull")
    assert job.remedy
    world.until_quiet()
    job = world.again(job)
    assert (job.phase, job.reason) == ("FAILED", "ImagePull")
    assert timedelta(minutes=5) <= job.decided_at - job.admitted_at < timedelta(minutes=6)
    assert job.is_over


@pytest.mark.parametrize("phase", ["QUEUED", "STARTING", "RUNNING", "SUCCEEDED"])
def test_stop_works_at_every_phase(world, ada, phase):
    job = world.launch(ada)
    if phase == "STARTING":
        world.engine.begin_at_once = False
    if phase != "QUEUED":
        world.settle()
    if phase == "SUCCEEDED":
        world.engine.succeed(job)
        world.settle()
        world.look(job)
    assert world.again(job).phase == phase
    services.job_stop(user=ada, job=world.again(job))
    world.until_quiet()
    job = world.again(job)
    assert job.phase == ("SUCCEEDED" if phase == "SUCCEEDED" else "STOPPED")
    assert job.is_over
    assert not world.engine.has(job)


def test_a_task_that_ignores_the_stop_is_removed_after_the_grace_period_and_the_time_for_uploads(world, ada):
    job = world.launch(ada, grace_period=20)
    world.engine.stubborn = {(role, index) for role in Role for index in range(2)}
    world.settle()
    services.job_stop(user=ada, job=world.again(job))
    world.settle()
    world.passes(20 + int(upload_stall(20)))
    assert world.again(job).phase == "STOPPING"
    world.passes(60)
    job = world.again(job)
    assert job.phase == "STOPPED"
    assert not world.engine.has(job)


def test_a_task_that_uploads_after_a_stop_is_waited_for_as_long_as_it_says_so(world, ada):
    job = world.launch(ada, grace_period=20)
    world.engine.stubborn = {(role, index) for role in Role for index in range(2)}
    world.settle()
    services.job_stop(user=ada, job=world.again(job))
    world.settle()
    for _ in range(10):
        TaskFact.objects.filter(job=job, role="worker", index=0).update(state="uploading", reported_at=world.now)
        world.passes(60)
        assert world.again(job).phase == "STOPPING"
    world.passes(int(upload_stall(20)) + 60)
    assert world.again(job).phase == "STOPPED"


def test_a_stop_is_asked_for_once_however_often(world, ada):
    job = world.launch(ada)
    world.settle()
    for _ in range(3):
        services.job_stop(user=ada, job=world.again(job))
    world.until_quiet()
    assert [verb for verb, _ in world.engine.calls].count("stop") == 1
    assert JobEvent.objects.filter(job=job, kind="stop_asked").count() == 1


def test_a_retry_is_a_new_attempt_and_the_old_verdict_is_kept(world, ada):
    job = world.launch(ada)
    world.settle()
    world.engine.set(job, Role.WORKER, 0, TaskPhase.FAILED, reason="ScriptFailed", exit_code=1)
    world.until_quiet()
    job = services.job_retry(user=ada, job=world.again(job))
    assert (job.phase, job.attempt, job.reason) == ("QUEUED", 2, "")
    world.now = max(world.now, job.next_look_at)
    world.settle()
    assert world.again(job).phase == "RUNNING"
    world.engine.succeed(world.again(job))
    world.until_quiet()
    ended = list(JobAttempt.objects.filter(job=job).order_by("number").values_list("number", "phase", "reason"))
    assert ended == [(1, "FAILED", "ScriptFailed"), (2, "SUCCEEDED", "Succeeded")]


def test_a_restarted_task_is_told_in_the_history(world, ada):
    job = world.launch(ada)
    world.settle()
    world.engine.set(job, Role.WORKER, 0, TaskPhase.RUNNING, restarts=1, reason="OutOfMemory")
    world.look(job)
    world.look(job)
    events = JobEvent.objects.filter(job=job, kind="task_restarted")
    assert [(event.reason, event.facts["restarts"]) for event in events] == [("OutOfMemory", 1)]


def test_that_all_tasks_restart_together_is_one_event_of_the_history(world, ada):
    roles = {"worker": {"replicas": 2, "cpu": 0.1, "memory": "64Mi"}}
    job = world.launch(ada, strategy="multi_worker_mirrored", roles=roles, retries=3)
    world.settle()
    told = JobEvent.objects.filter(job=job, kind="gang_restart")
    for restarts in (1, 2):
        world.engine.said = {"gang_restarts": restarts}
        for index in (1, 0, 1):
            world.engine.set(job, Role.WORKER, index, TaskPhase.PENDING, restarts=restarts, reason="OutOfMemory")
            world.look(job)
        assert told.count() == restarts
    assert "all tasks restart together from the newest checkpoint" in told.latest("pk").message
    world.engine.said = {"gang_restarts": 1 << 31}  # a script has written into the files that the engine reads
    world.engine.set(job, Role.WORKER, 0, TaskPhase.RUNNING, restarts=3)
    world.look(job)
    assert told.count() == 12


def test_the_portal_tells_of_a_restart_that_it_asked_for_only_where_the_engine_does_not_count(world, ada):
    roles = {"worker": {"replicas": 2, "cpu": 0.1, "memory": "64Mi"}}

    def restart(key):
        world.engine.said = {}
        return True

    world.engine.restart = restart
    for counts in (None, 0):
        job = world.launch(ada, strategy="multi_worker_mirrored", roles=roles, retries=3)
        world.settle()
        world.engine.said = {"gang_restarts": counts, "to_restart": True}
        world.look(job)
        assert not world.engine.said
        assert JobEvent.objects.filter(job=job, kind="gang_restart").count() == (1 if counts is None else 0)


def test_what_only_the_engine_kept_of_a_task_is_archived_before_it_is_removed(world, ada):
    """polyaxon#452, kubeflow#1039: fast-failing runs had no log; logs went with the pod."""
    from apps.stores import log_store
    from yardmaster.logs.keys import StreamKey

    job = world.launch(ada)
    world.settle()
    world.engine.kept_output[Role.WORKER, 0] = ["exec format error", "bye"]
    world.engine.set(job, Role.WORKER, 0, TaskPhase.FAILED, reason="StartFailed")
    world.until_quiet()
    page = log_store().read(StreamKey(job.pk, 1, Role.WORKER, 0), 0, 10)
    assert [line.text for line in page.lines] == [b"exec format error", b"bye"]
    assert page.ended


def test_a_job_that_reaches_its_maximum_runtime_fails_is_stopped_and_says_so(world, ada):
    job = world.launch(ada, max_runtime=120)
    world.settle()
    world.passes(110)
    assert world.again(job).phase == "RUNNING"
    world.passes(15)
    job = world.again(job)
    assert (job.phase, job.reason) == ("FAILED", "DeadlineExceeded")
    assert "120 s" in job.message
    assert "max_runtime" in job.remedy
    world.until_quiet()
    assert world.again(job).is_over
    assert not world.engine.has(job)


def test_the_evaluator_and_servers_are_released_when_the_chief_has_ended_well(world, ada):
    """kubeflow#1853: the chief had succeeded, but workers, PS and evaluator stayed up."""
    one = {"replicas": 1, "cpu": 1, "memory": "1Gi"}
    roles = {"chief": one, "worker": one, "ps": one, "evaluator": one}
    job = world.launch(ada, strategy="parameter_server", roles=roles, reclaim_delay=30)
    world.settle()
    world.engine.succeed(job, Role.CHIEF)
    job = world.look(job)
    assert (job.phase, held_roles(job)) == ("SUCCEEDED", {Role.WORKER, Role.PS, Role.EVALUATOR})
    world.passes(35)
    assert world.engine.alive(job) == []
    world.until_quiet()
    assert world.again(job).is_over


def test_versions_that_an_unfinished_job_needs_are_in_use(world, ada):
    job = world.launch(ada)
    code = uuid.UUID(job.spec["code"])
    assert versions_in_use([code, uuid.uuid4()]) == {code}
    Job.objects.filter(pk=job.pk).update(phase=Phase.FAILED.value)
    assert versions_in_use([code]) == set()
