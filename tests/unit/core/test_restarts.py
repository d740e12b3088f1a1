"""What follows a task's end: one row per strategy, role and way to end."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.core.generators import make_spec, plain_specs
from yardmaster.job.spec import Role, Strategy
from yardmaster.lifecycle.failures import REASONS
from yardmaster.lifecycle.restarts import SAME_FAILURE, Restart, Trace, after_exit, restart_delay, tasks_to_restart

CHIEF, WORKER, PS, EVALUATOR = Role.CHIEF, Role.WORKER, Role.PS, Role.EVALUATOR
SHAPES = {
    Strategy.SINGLE: {WORKER: 1},
    Strategy.BETWEEN_GRAPH: {CHIEF: 1, WORKER: 2, PS: 1},
    Strategy.PARAMETER_SERVER: {CHIEF: 1, WORKER: 2, PS: 1, EVALUATOR: 1},
    Strategy.MULTI_WORKER_MIRRORED: {CHIEF: 1, WORKER: 2, EVALUATOR: 1},
}


@pytest.mark.parametrize(
    ("strategy", "role", "outcome"),
    [
        (Strategy.SINGLE, WORKER, Restart.TASK),
        (Strategy.BETWEEN_GRAPH, CHIEF, Restart.TASK),
        (Strategy.BETWEEN_GRAPH, WORKER, Restart.TASK),
        (Strategy.BETWEEN_GRAPH, PS, Restart.TASK),
        (Strategy.PARAMETER_SERVER, CHIEF, Restart.CLUSTER),
        (Strategy.PARAMETER_SERVER, WORKER, Restart.TASK),
        (Strategy.PARAMETER_SERVER, PS, Restart.CLUSTER),
        (Strategy.PARAMETER_SERVER, EVALUATOR, Restart.TASK),
        (Strategy.MULTI_WORKER_MIRRORED, CHIEF, Restart.CLUSTER),
        (Strategy.MULTI_WORKER_MIRRORED, WORKER, Restart.CLUSTER),
        (Strategy.MULTI_WORKER_MIRRORED, EVALUATOR, Restart.TASK),
    ],
)
def test_what_starts_anew_depends_on_the_strategy_and_the_role(
    strategy: Strategy, role: Role, outcome: Restart
) -> None:
    spec = make_spec(strategy, SHAPES[strategy], retries=1)
    assert after_exit(spec, role, 0, 1, "", 0) is outcome
    assert after_exit(spec, role, 0, None, "", 0) is outcome
    assert after_exit(spec, role, 0, 1, "", 1) is Restart.NONE_FAILED
    assert after_exit(spec, role, 0, 0, "", 0) is Restart.NONE_SUCCEEDED


def test_tensorflow_7767_a_lost_parameter_server_does_not_end_the_whole_training() -> None:
    spec = make_spec(Strategy.PARAMETER_SERVER, SHAPES[Strategy.PARAMETER_SERVER])
    assert after_exit(spec, PS, 0, 139, "", 0) is Restart.CLUSTER
    assert tasks_to_restart(spec, Restart.CLUSTER, PS, 0) == [(CHIEF, 0), (WORKER, 0), (WORKER, 1), (PS, 0)]


@pytest.mark.parametrize(
    ("exit_code", "reason"),
    [
        (90, ""),
        (92, ""),
        (90, "CorruptInput"),
        (1, "ScriptNotFound"),
        (1, "ImportFailed"),
        (1, "SyntaxError"),
        (137, "OutOfMemory"),
        (None, "OutOfMemory"),
    ],
)
def test_skypilot_9758_what_cannot_get_better_is_not_retried(exit_code: int | None, reason: str) -> None:
    assert after_exit(make_spec(retries=100), WORKER, 0, exit_code, reason, 0) is Restart.NONE_FAILED


@pytest.mark.parametrize(
    ("exit_code", "reason"), [(1, ""), (137, ""), (139, "Killed"), (91, ""), (90, "ScriptFailed"), (1, "NoSuchWord")]
)
def test_what_may_get_better_is_retried(exit_code: int, reason: str) -> None:
    assert after_exit(make_spec(), WORKER, 0, exit_code, reason, 0) is Restart.TASK


def test_the_same_failure_again_without_a_step_of_progress_is_final() -> None:
    before = Trace("a", 40)
    assert Trace("a", 40).reason_after(before, "ScriptFailed") == SAME_FAILURE
    assert Trace("a", 12).reason_after(before, "ScriptFailed") == SAME_FAILURE
    assert Trace("a", 41).reason_after(before, "ScriptFailed") == "ScriptFailed"
    assert Trace("b", 40).reason_after(before, "ScriptFailed") == "ScriptFailed"
    assert Trace("", 0).reason_after(Trace("", 0), "ScriptFailed") == "ScriptFailed"
    assert Trace("a", 0).reason_after(Trace("a", 0), "ImportFailed") == "ImportFailed"
    assert after_exit(make_spec(retries=9), WORKER, 0, 1, SAME_FAILURE, 1) is Restart.NONE_FAILED


@pytest.mark.parametrize("note", [{}, {"signature": 5}, {"signature": "a", "reached": "x"}, {"signature": "a" * 65}])
def test_a_note_that_says_something_else_is_no_trace(note: dict[str, object]) -> None:
    assert Trace.in_note(note) == Trace()
    assert Trace.in_note({"signature": "a", "reached": 3}) == Trace("a", 3)


def test_the_budget_is_one_for_all_tasks() -> None:
    spec = make_spec(retries=2)
    assert [after_exit(spec, WORKER, 0, 1, "", spent) for spent in (0, 1, 2, 3)] == [
        Restart.TASK,
        Restart.TASK,
        Restart.NONE_FAILED,
        Restart.NONE_FAILED,
    ]


def test_trainer_1997_a_worker_that_has_succeeded_is_not_started_again_with_the_cluster() -> None:
    spec = make_spec(Strategy.PARAMETER_SERVER)
    assert (WORKER, 1) not in tasks_to_restart(spec, Restart.CLUSTER, PS, 0, {(WORKER, 1)})


def test_kubeflow_147_a_collective_that_lost_a_finished_member_fails_instead_of_waiting_for_ever() -> None:
    spec = make_spec(Strategy.MULTI_WORKER_MIRRORED, SHAPES[Strategy.MULTI_WORKER_MIRRORED])
    assert after_exit(spec, WORKER, 0, 1, "", 0, {(WORKER, 1)}) is Restart.NONE_FAILED
    assert after_exit(spec, WORKER, 0, 1, "", 0, {(EVALUATOR, 0)}) is Restart.CLUSTER
    assert after_exit(spec, EVALUATOR, 0, 1, "", 0, {(WORKER, 1)}) is Restart.TASK


@given(st.data())
def test_a_task_that_has_succeeded_is_never_started_again(data: st.DataObject) -> None:
    spec = data.draw(plain_specs())
    tasks = spec.tasks()
    succeeded = data.draw(st.sets(st.sampled_from(tasks)))
    lost = data.draw(st.sampled_from(tasks))
    if lost in succeeded:
        return
    reason = data.draw(st.sampled_from(["", *REASONS, "NoSuchWord"]))
    spent = data.draw(st.integers(0, 5))
    outcome = after_exit(spec, *lost, data.draw(st.none() | st.integers(-64, 255)), reason, spent, succeeded)
    again = tasks_to_restart(spec, outcome, *lost, succeeded)
    assert not succeeded & set(again)
    assert set(again) <= set(tasks)
    assert bool(again) == (outcome in (Restart.TASK, Restart.CLUSTER))
    assert lost in again or not again
    if again:
        assert spent < spec.retries


def test_the_delay_doubles_and_is_never_more_than_a_minute() -> None:
    assert [restart_delay(n).total_seconds() for n in (0, 1, 2, 5, 6, 10**9)] == [1, 2, 4, 32, 60, 60]
    assert restart_delay(-1) == timedelta(seconds=1)
