"""When a job has succeeded or failed: the precedence of `success`, row by row and over anything an engine may show."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.core.generators import NOW, everything, make_spec, observations, plain_specs, task
from yardmaster.job.spec import Role, Strategy, SuccessRule
from yardmaster.job.strategy import leading_task
from yardmaster.lifecycle.failures import REASONS, Blame
from yardmaster.lifecycle.phases import ABSENT, Observation, TaskPhase
from yardmaster.lifecycle.success import (
    SUCCEEDED,
    deadline_verdict,
    job_verdict,
    lost_verdict,
    needed_workers,
    never_started_verdict,
)

CHIEF, WORKER, PS, EVALUATOR = Role.CHIEF, Role.WORKER, Role.PS, Role.EVALUATOR
RUNNING, DONE, FAILED, RELEASED = TaskPhase.RUNNING, TaskPhase.SUCCEEDED, TaskPhase.FAILED, TaskPhase.RELEASED
ALL = {CHIEF: 1, WORKER: 4, PS: 1}


def reason(spec, *others):  # type: ignore[no-untyped-def]
    """The verdict's reason when every other task runs."""
    verdict = job_verdict(spec, everything(spec, RUNNING, *others))
    return None if verdict is None else verdict.reason


def workers(*phases: TaskPhase):  # type: ignore[no-untyped-def]
    return [task(WORKER, index, phase, exit_code=1) for index, phase in enumerate(phases)]


def test_nothing_is_decided_while_the_deciding_tasks_run() -> None:
    for strategy in Strategy:
        assert reason(make_spec(strategy)) is None
    assert job_verdict(make_spec(), ABSENT) is None


def test_a_single_task_decides_its_job() -> None:
    spec = make_spec(Strategy.SINGLE)
    assert reason(spec, task(WORKER, 0, DONE)) == SUCCEEDED
    assert reason(spec, task(WORKER, 0, FAILED, exit_code=3)) == "ScriptFailed"


# trainer#751, trainer#1188: "worker 0 ends it", "all workers" and "x % of the workers" are all needed.


def test_trainer_751_under_the_rule_chief_worker_0_ends_a_job_without_a_chief() -> None:
    spec = make_spec(shape={WORKER: 3, PS: 1}, success_rule=SuccessRule.CHIEF)
    assert reason(spec, *workers(RUNNING, DONE, DONE)) is None
    assert reason(spec, *workers(DONE, RUNNING, RUNNING)) == SUCCEEDED


def test_trainer_751_under_the_rule_chief_the_chief_ends_it_where_there_is_one() -> None:
    spec = make_spec(shape=ALL, success_rule=SuccessRule.CHIEF)
    assert reason(spec, *workers(DONE, DONE, DONE, DONE)) is None
    assert reason(spec, task(CHIEF, 0, DONE)) == SUCCEEDED


def test_trainer_1188_all_workers_and_the_chief_must_end_well_by_default() -> None:
    spec = make_spec(shape=ALL)
    assert reason(spec, *workers(DONE, DONE, DONE, DONE)) is None
    assert reason(spec, task(CHIEF, 0, DONE), *workers(DONE, DONE, DONE, RUNNING)) is None
    assert reason(spec, task(CHIEF, 0, DONE), *workers(DONE, DONE, DONE, DONE)) == SUCCEEDED


@pytest.mark.parametrize(
    ("count", "percent", "needed"), [(4, 50, 2), (4, 51, 3), (3, 67, 3), (3, 66, 2), (3, 1, 1), (1000, 33, 330)]
)
def test_trainer_1188_a_percentage_of_the_workers_is_rounded_up(count: int, percent: int, needed: int) -> None:
    assert needed_workers(make_spec(shape={WORKER: count, PS: 1}, success_percent=percent)) == needed


def test_a_worker_fails_the_job_only_when_the_percentage_can_no_longer_be_reached() -> None:
    spec = make_spec(shape={WORKER: 4, PS: 1}, success_percent=50)
    assert reason(spec, *workers(FAILED, FAILED, RUNNING, RUNNING)) is None
    assert reason(spec, *workers(FAILED, FAILED, DONE, DONE)) == SUCCEEDED
    assert reason(spec, *workers(FAILED, FAILED, FAILED, RUNNING)) == "ScriptFailed"


def test_trainer_1059_one_failed_worker_does_not_stop_the_healthy_ones_where_the_job_allows_it() -> None:
    assert reason(make_spec(shape={WORKER: 4, PS: 1}, success_percent=75), *workers(FAILED, RUNNING, RUNNING)) is None


def test_trainer_657_a_job_has_succeeded_although_its_parameter_servers_never_end() -> None:
    assert reason(make_spec(), *workers(DONE, DONE)) == SUCCEEDED


def test_the_chief_alone_decides_under_parameter_server_for_its_workers_never_end() -> None:
    spec = make_spec(Strategy.PARAMETER_SERVER)
    assert needed_workers(spec) == 0
    assert reason(spec, task(CHIEF, 0, DONE)) == SUCCEEDED
    assert reason(spec, *workers(DONE, DONE)) is None


def test_kubeflow_1853_a_chief_that_succeeded_ends_the_job_whatever_still_runs() -> None:
    spec = make_spec(Strategy.PARAMETER_SERVER, {CHIEF: 1, WORKER: 2, PS: 2, EVALUATOR: 1})
    assert reason(spec, task(CHIEF, 0, DONE)) == SUCCEEDED


def test_success_wins_over_every_failure_that_is_seen_with_it() -> None:
    spec = make_spec(Strategy.PARAMETER_SERVER)
    late = task(PS, 0, FAILED, exit_code=1, finished_at=NOW)
    early = task(WORKER, 0, FAILED, exit_code=1, finished_at=NOW - timedelta(days=1))
    assert reason(spec, task(CHIEF, 0, DONE, finished_at=NOW), late, early) == SUCCEEDED


def test_the_evaluator_never_fails_the_job() -> None:
    for strategy, shape in ((Strategy.PARAMETER_SERVER, {CHIEF: 1, WORKER: 1, PS: 1, EVALUATOR: 1}),):
        spec = make_spec(strategy, shape)
        for phase in (FAILED, RELEASED, DONE):
            assert reason(spec, task(EVALUATOR, 0, phase, exit_code=1)) is None


def test_a_parameter_server_that_ends_well_means_nothing_and_one_that_fails_fails_the_job() -> None:
    spec = make_spec()
    assert reason(spec, task(PS, 0, DONE)) is None
    assert reason(spec, task(PS, 0, FAILED, reason="OutOfMemory", exit_code=137)) == "OutOfMemory"


def test_a_worker_that_fails_fails_the_job_under_the_rule_chief_too() -> None:
    spec = make_spec(success_rule=SuccessRule.CHIEF)
    assert reason(spec, task(WORKER, 1, FAILED, exit_code=1)) == "ScriptFailed"


def test_of_several_failures_the_first_in_time_is_the_verdict() -> None:
    spec = make_spec(Strategy.MULTI_WORKER_MIRRORED, {WORKER: 3})
    seen = everything(
        spec,
        RUNNING,
        task(WORKER, 0, FAILED, exit_code=1, finished_at=NOW + timedelta(seconds=2)),
        task(WORKER, 1, FAILED, reason="OutOfMemory", exit_code=137, finished_at=NOW),
        task(WORKER, 2, FAILED, reason="Lost"),
    )
    verdict = job_verdict(spec, seen)
    assert verdict is not None
    assert (verdict.reason, verdict.role, verdict.index, verdict.exit_code) == ("OutOfMemory", WORKER, 1, 137)


def test_a_deciding_task_that_was_stopped_from_outside_does_not_leave_the_job_undecided() -> None:
    verdict = job_verdict(make_spec(), everything(make_spec(), RUNNING, task(WORKER, 1, RELEASED)))
    assert verdict is not None
    assert verdict.reason == "StoppedOutside"
    assert "Worker 1" in verdict.message
    assert reason(make_spec(), task(PS, 0, RELEASED)) is None


def test_tasks_that_the_spec_does_not_have_do_not_count() -> None:
    assert reason(make_spec(), task(WORKER, 7, FAILED), task(CHIEF, 0, DONE)) is None
    seen = everything(make_spec(), RUNNING)
    assert job_verdict(make_spec(), Observation(True, (*seen.tasks, task(EVALUATOR, 3, FAILED)))) is None


@given(st.data())
def test_success_is_never_said_while_the_deciding_task_has_not_succeeded(data: st.DataObject) -> None:
    spec = data.draw(plain_specs())
    seen = data.draw(observations(spec))
    verdict = job_verdict(spec, seen)
    if verdict is None:
        return
    ended_well = {(one.role, one.index) for one in seen.tasks if one.phase is DONE}
    if verdict.reason == SUCCEEDED:
        if spec.success_rule is SuccessRule.CHIEF or CHIEF in spec.roles:
            assert leading_task(spec) in ended_well
        assert sum(role is WORKER for role, _ in ended_well) >= needed_workers(spec)
    else:
        assert verdict.reason in REASONS
        assert verdict.role is not EVALUATOR
        assert verdict.message
        assert verdict.remedy


@given(st.data())
def test_the_order_in_which_tasks_are_shown_changes_nothing(data: st.DataObject) -> None:
    spec = data.draw(plain_specs())
    seen = data.draw(observations(spec))
    shuffled = Observation(seen.exists, tuple(data.draw(st.permutations(seen.tasks))), seen.message)
    assert job_verdict(spec, shuffled) == job_verdict(spec, seen)


@given(st.data())
def test_once_every_task_has_ended_there_is_a_verdict(data: st.DataObject) -> None:
    spec = data.draw(plain_specs())
    phases = st.sampled_from([DONE, FAILED, RELEASED])
    seen = Observation(True, tuple(task(*key, data.draw(phases)) for key in spec.tasks()))
    assert job_verdict(spec, seen) is not None


def test_the_deadline_verdict_blames_the_limit_and_names_it() -> None:
    verdict = deadline_verdict(make_spec(max_runtime=timedelta(minutes=2)))
    assert (verdict.reason, verdict.blame) == ("DeadlineExceeded", Blame.LIMIT)
    assert "120 s" in verdict.message


def test_a_lost_job_is_the_platforms() -> None:
    assert (lost_verdict().reason, lost_verdict().blame) == ("Lost", Blame.PLATFORM)


def test_what_the_engine_misses_of_a_run_was_stopped_outside():
    verdict = lost_verdict("The Job j-1-worker is not on the cluster.")
    assert (verdict.reason, verdict.blame) == ("StoppedOutside", Blame.PLATFORM)
    assert verdict.message.startswith("The Job j-1-worker is not on the cluster.")
    assert "relaunch" in verdict.remedy


def test_trainer_2001_a_job_that_never_starts_says_what_held_it_up() -> None:
    spec = make_spec()
    stuck = task(WORKER, 1, TaskPhase.PENDING, reason="ImagePull", message="no such tag")
    verdict = never_started_verdict(spec, everything(spec, RUNNING, stuck), timedelta(minutes=30))
    assert (verdict.reason, verdict.role, verdict.index) == ("ImagePull", WORKER, 1)
    assert "1 of 3 tasks" in verdict.message
    assert "30 minutes" in verdict.message
    assert verdict.message.endswith("No such tag.")


def test_a_job_that_never_starts_without_a_known_cause_repeats_the_engines_words() -> None:
    verdict = never_started_verdict(make_spec(), Observation(True, (), "waiting for node"), timedelta(minutes=30))
    assert verdict.reason == "StartTimeout"
    assert "3 of 3 tasks" in verdict.message
    assert "waiting for node" in verdict.message
