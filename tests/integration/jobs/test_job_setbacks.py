"""Looks at a job that fail: nothing sticks, and people see why."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest
from django.db import DataError, OperationalError, connection

from apps.jobs.models import Job, QueuePass, Reservation, TaskFact
from apps.jobs.services import job_stop
from apps.jobs.state import ledger, task_facts
from apps.jobs.worker.reconcile import reconcile
from yardmaster.errors import Misconfigured, Problem, QuotaFull, SpecRejected, Unavailable
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import TaskPhase, Wanted


def test_an_engine_that_is_away_is_said_and_asked_again_later_and_later(world, ada):
    job = world.launch(ada)
    world.engine.error = Unavailable("The engine does not answer.", remedy="Wait.")
    job = world.look(job)
    assert (job.reason, job.message, job.remedy) == ("EngineUnavailable", "The engine does not answer.", "Wait.")
    pauses = []
    for _ in range(9):
        due = QueuePass.objects.get(engine="staged").next_at
        pauses.append((due - world.now).total_seconds())
        world.now = due
        job = world.look(job)
    assert pauses == [2, 4, 8, 16, 32, 64, 120, 120, 120]
    world.engine.error = None
    world.now = QueuePass.objects.get(engine="staged").next_at
    world.settle()
    job = world.again(job)
    assert (job.phase, job.reason, job.setbacks) == ("RUNNING", "", 0)
    assert QueuePass.objects.get(engine="staged").setbacks == 0


def test_a_running_job_says_that_its_engine_is_away_and_then_no_longer(world, ada):
    job = world.launch(ada)
    world.settle()
    world.engine.error = Unavailable("The engine does not answer.")
    assert world.look(job).reason == "EngineUnavailable"
    world.engine.error = None
    job = world.look(job)
    assert (job.phase, job.reason, job.message) == ("RUNNING", "", "")


def test_a_verdict_is_never_covered_by_a_setback(world, ada):
    job = world.launch(ada)
    world.settle()
    world.engine.succeed(job)
    world.look(job)
    world.engine.error = Unavailable("The engine does not answer.")
    assert world.look(job).reason == "Succeeded"
    world.engine.error = None
    world.until_quiet()
    assert world.again(job).is_over


def test_a_specification_that_the_engine_rejects_fails_the_job_with_every_problem(world, ada):
    job = world.launch(ada)
    world.engine.fail_next(
        "submit", SpecRejected([Problem("roles.worker.gpus", "no_gpus", "No results.", "Ask for none.")])
    )
    job = world.look(job)
    assert (job.phase, job.reason, job.remedy) == ("FAILED", "SpecRejected", "Ask for none.")
    assert "roles.worker.gpus" in job.message
    world.until_quiet()
    assert world.again(job).is_over


def test_the_engines_own_quota_is_waited_for_and_named(world, ada):
    """kubeflow/notebooks#64: a quota refusal was shown as a generic message."""
    job = world.launch(ada)
    world.engine.fail_next("submit", QuotaFull("exceeded quota: pods=3, used 10, limited 10"))
    job = world.look(job)
    assert (job.phase, job.reason) == ("STARTING", "EngineQuotaFull")
    assert "exceeded quota" in job.message
    world.now = job.next_look_at
    world.settle()
    assert world.again(job).phase == "RUNNING"


def test_what_only_the_operator_can_mend_stays_with_its_reason(world, ada):
    job = world.launch(ada)
    world.engine.error = Misconfigured("YARDMASTER_X is wrong.", remedy="Set it.")
    job = world.look(job)
    assert (job.phase, job.reason, job.remedy) == ("QUEUED", "Misconfigured", "Set it.")
    assert (QueuePass.objects.get(engine="staged").next_at - world.now).total_seconds() == 60


def test_an_engine_that_is_no_longer_set_up_keeps_its_jobs_with_a_reason(world, ada, settings):
    job = world.launch(ada)
    Job.objects.filter(pk=job.pk).update(engine="gone")
    job = world.look(job)
    assert job.reason == "Misconfigured"
    assert "gone" in job.message


def test_a_bug_is_logged_with_its_traceback_and_the_job_goes_on(world, ada, caplog):
    job = world.launch(ada)
    world.engine.fail_next("observe", ZeroDivisionError("a bug"))
    with caplog.at_level(logging.ERROR):
        world.settle()
    assert "ZeroDivisionError" in caplog.text
    job = world.again(job)
    assert not job.lease_owner
    world.now = job.next_look_at
    world.settle()
    assert world.again(job).phase == "RUNNING"


HOSTILE = ["a\x00b", "a\ud800b"]


@pytest.mark.parametrize("message", HOSTILE)
def test_a_task_whose_last_words_no_database_takes_fails_its_job_which_then_holds_nothing(world, ada, message):
    job = world.launch(ada, retries=0)
    world.until_running(job)
    world.engine.set(job, Role.WORKER, 0, TaskPhase.FAILED, exit_code=1, reason="ScriptFailed", message=message)
    world.until_quiet()
    job = world.again(job)
    assert (job.phase, job.reason, job.is_over) == ("FAILED", "ScriptFailed", True)
    assert not ledger.held_roles(job)
    assert "\x00" not in TaskFact.objects.get(job=job, role="worker", index=0).message


def test_a_stop_ends_a_job_that_can_never_be_observed_within_the_patience(world, ada, settings, caplog):
    job = world.launch(ada)
    world.until_running(job)

    def broken(verb: str) -> None:
        if verb == "observe":
            raise KeyError("phase")

    world.engine.before_verb = broken
    world.passes(30)
    job_stop(user=ada, job=job)
    world.passes(settings.YARDMASTER_TIMING.engine_patience.total_seconds() + 130)
    assert world.again(job).phase == "STOPPED"
    assert "KeyError" in caplog.text
    world.passes(settings.YARDMASTER_TIMING.engine_patience.total_seconds() + 130)
    assert not ledger.held_roles(world.again(job))
    world.engine.before_verb = lambda verb: None
    world.until_quiet()
    assert world.again(job).is_over
    assert not world.engine.has(job)


def test_a_job_whose_tasks_cannot_be_written_down_is_stopped_all_the_same(world, ada, settings, monkeypatch):
    job = world.launch(ada)
    world.until_running(job)

    def broken(*_):
        raise DataError("a value that the database does not take")

    monkeypatch.setattr(task_facts, "record", broken)
    job_stop(user=ada, job=job)
    assert world.look(job).phase == "STOPPING"
    since = world.now - settings.YARDMASTER_TIMING.engine_patience
    Job.objects.filter(pk=job.pk).update(failing_since=since, lease_until=None)
    assert world.look(job).phase == "STOPPED"


def test_a_run_that_was_seen_counts_as_taken_although_the_answer_was_lost(world, ada):
    world.engine.begin_at_once = False
    job = world.launch(ada)

    def lose(verb: str) -> None:
        if verb == "submit":
            raise Unavailable("The connection broke before the engine had answered.")

    world.engine.after_verb = lose
    assert world.look(job).submitted_at is None
    world.engine.after_verb = lambda verb: None
    assert world.look(job).submitted_at == world.now
    world.engine.error = Unavailable("The engine does not answer.")
    world.passes(360)
    job = world.again(job)
    assert (job.phase, job.returns) == ("STARTING", 0)
    assert ledger.held_roles(job)
    world.engine.error = None
    world.engine.begin(job.key)
    world.until_running(job)


def test_a_database_that_fails_in_the_middle_gives_the_job_back(world, ada, caplog):
    job = world.launch(ada)

    def broken(execute, sql, params, many, context):
        if sql.startswith("INSERT") and "reservation" in sql:
            raise OperationalError("the connection was closed")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(broken), caplog.at_level(logging.ERROR):
        world.look(job)
    assert "the connection was closed" in caplog.text
    assert (world.again(job).phase, Reservation.objects.count()) == ("QUEUED", 0)
    world.until_running(job)


def test_an_answer_that_was_lost_is_asked_for_again_and_nothing_is_done_twice(world, ada):
    job = world.launch(ada)
    done = []

    def lose(verb: str) -> None:
        if verb not in done and verb != "observe":
            done.append(verb)
            raise Unavailable("The connection broke before the engine had answered.")

    world.engine.after_verb = lose
    world.until_running(job)
    world.engine.succeed(job)
    world.until_quiet()
    assert world.again(job).is_over
    assert world.engine.submits == [job.key]
    assert {"capacity", "submit", "release", "clean_up"} <= set(done)


def test_a_submission_whose_answer_was_lost_is_given_up_with_its_quota_and_removed_before_the_next(world, ada):
    """An engine that took the job and then was away: what it has of it appears again when it is back."""
    job = world.launch(ada)

    def away_from_now_on(verb: str) -> None:
        if verb == "submit":
            world.engine.error = Unavailable("The connection broke.")
            raise world.engine.error

    world.engine.after_verb = away_from_now_on
    while world.again(job).returns == 0:
        world.look(job)
        world.now = world.again(job).next_look_at
        assert world.again(job).phase in ("QUEUED", "STARTING")
    job = world.again(job)
    assert (job.phase, job.reason, ledger.held_roles(job)) == ("QUEUED", "EngineUnavailable", frozenset())
    assert world.engine.observe_quietly(job.key).exists
    queued_at = job.queued_at
    world.engine.after_verb, world.engine.error = (lambda verb: None), None
    world.engine.calls.clear()
    world.until_running(job)
    assert [verb for verb, _ in world.engine.calls][:2] == ["clean_up", "submit"]
    assert world.again(job).queued_at == queued_at


def test_an_engine_that_takes_nothing_fails_the_job_after_its_returns(world, ada, settings):
    settings.YARDMASTER_TIMING = replace(settings.YARDMASTER_TIMING, most_returns=2)
    job = world.launch(ada)

    def refuse(verb: str) -> None:
        if verb == "submit":
            raise Unavailable("No room on the disk.")

    world.engine.before_verb = refuse
    while world.again(job).phase != "FAILED":
        world.look(job)
        world.now = world.again(job).next_look_at
    job = world.again(job)
    assert (job.reason, job.returns, ledger.held_roles(job)) == ("EngineUnavailable", 2, frozenset())
    assert "3 times" in job.message
    assert Reservation.objects.filter(job=job, released_at__isnull=False).values("reserved_at").distinct().count() == 3


def test_a_job_that_is_stopped_while_its_engine_is_away_ends_and_returns_its_quota(world, ada):
    job = world.launch(ada)
    world.until_running(job)
    world.engine.error = Unavailable("The engine does not answer.")
    job_stop(user=ada, job=world.again(job))
    for _ in range(20):
        world.look(job)
        world.now = world.again(job).next_look_at
    job = world.again(job)
    assert (job.phase, job.cleaned_up_at, ledger.held_roles(job)) == ("STOPPED", None, frozenset())
    assert "removed later" in job.message
    world.engine.error = None
    world.look(job)
    world.until_quiet()
    assert world.again(job).is_over
    assert not world.engine.observe_quietly(job.key).exists


def test_a_run_that_the_engine_has_lost_fails_and_says_so(world, ada):
    job = world.launch(ada)
    world.settle()
    world.engine.lose(job.key)
    job = world.look(job)
    assert (job.phase, job.reason) == ("FAILED", "Lost")


def test_the_tasks_of_a_lost_run_are_lost_and_not_running(world, ada, client):
    job = world.launch(ada)
    world.until_running(job)
    TaskFact.objects.filter(job=job).update(state="running")
    world.engine.set(job, Role.WORKER, 1, TaskPhase.SUCCEEDED, exit_code=0)
    world.look(job)
    world.engine.lose(job.key)
    job = world.look(job)
    assert (job.phase, job.reason) == ("FAILED", "Lost")
    client.force_login(ada)
    tasks = {
        f"{one['role']}-{one['index']}": one for one in client.get(f"/api/v1/jobs/{job.pk}/tasks/").json()["results"]
    }
    assert {name: (one["phase"], one["reason"], one["state"]) for name, one in tasks.items()} == {
        "worker-0": ("FAILED", "Lost", ""),
        "worker-1": ("SUCCEEDED", "", "running"),
        "ps-0": ("FAILED", "Lost", ""),
    }
    assert tasks["ps-0"]["finished_at"] is not None
    assert "disappeared" in tasks["ps-0"]["message"]
    page = client.get(f"/jobs/{job.pk}/").content.decode()
    assert 'data-phase="RUNNING"' not in page


def test_no_task_of_a_run_that_was_removed_is_shown_to_run(world, ada):
    """An engine that was away for days ends its jobs; what it still has is removed when it is back."""
    job = world.launch(ada)
    world.until_running(job)
    Job.objects.filter(pk=job.pk).update(wanted=Wanted.STOP.value)
    world.engine.error = Unavailable("away")
    for _ in range(30):
        world.look(job)
        world.now = world.again(job).next_look_at
    assert world.again(job).phase == "STOPPED"
    world.engine.error = None
    world.engine.lose(job.key)
    world.look(job)
    world.until_quiet()
    assert world.again(job).is_over
    assert set(TaskFact.objects.filter(job=job).values_list("phase", flat=True)) == {"RELEASED"}


def test_a_log_store_that_is_full_does_not_hold_quota(world, ada, settings, tmp_path):
    job = world.launch(ada)
    world.settle()
    (tmp_path / "no-folder").write_text("a file where the logs should be")
    settings.YARDMASTER_LOGS_ROOT = tmp_path / "no-folder"
    world.engine.kept_output[Role.WORKER, 0] = ["a line"]
    world.engine.succeed(job)
    world.until_quiet()
    assert world.again(job).is_over


@pytest.mark.parametrize("unknown", ["00000000-0000-0000-0000-000000000000"])
def test_a_job_that_no_longer_exists_is_looked_at_in_vain(world, unknown):
    import uuid

    reconcile(uuid.UUID(unknown), clock=world.clock)
    assert world.engine.calls == []
