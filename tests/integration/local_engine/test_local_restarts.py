"""Which tasks the supervisor starts anew when one is lost, strategy by strategy; what it must not start again."""

from __future__ import annotations

import os

import pytest

from tests.contract.engine_harness import SMALL, LocalHarness, has_phase, spec_of, task_in, wait_until
from yardmaster.job.spec import Role, RoleSpec, Strategy
from yardmaster.lifecycle.phases import TaskPhase

CHIEF, WORKER, PS, EVALUATOR = Role.CHIEF, Role.WORKER, Role.PS, Role.EVALUATOR
COORDINATED = {CHIEF: 1, WORKER: 1, PS: 1, EVALUATOR: 1}


def shape(counts: dict[Role, int]) -> dict[Role, RoleSpec]:
    return {role: RoleSpec(count, SMALL) for role, count in counts.items()}


def begun(local: LocalHarness, strategy: Strategy, counts: dict[Role, int], retries: int = 1):
    spec = spec_of(strategy, roles=shape(counts), retries=retries)
    key = local.submit(spec)
    local.let_begin(key)
    return spec, key


def restarts_of(local: LocalHarness, key) -> dict[str, int]:
    seen = wait_until(local.engine, key, lambda seen: all(task.phase is TaskPhase.RUNNING for task in seen.tasks))
    return {f"{task.role}-{task.index}": task.restarts for task in seen.tasks}


@pytest.mark.parametrize(
    ("strategy", "counts", "lost", "anew"),
    [
        (Strategy.BETWEEN_GRAPH, {WORKER: 1, PS: 1}, PS, {"ps-0"}),
        (Strategy.BETWEEN_GRAPH, {CHIEF: 1, WORKER: 1, PS: 1}, CHIEF, {"chief-0"}),
        (Strategy.PARAMETER_SERVER, COORDINATED, WORKER, {"worker-0"}),
        (Strategy.PARAMETER_SERVER, COORDINATED, PS, {"chief-0", "worker-0", "ps-0"}),
        (Strategy.PARAMETER_SERVER, COORDINATED, CHIEF, {"chief-0", "worker-0", "ps-0"}),
        (Strategy.PARAMETER_SERVER, COORDINATED, EVALUATOR, {"evaluator-0"}),
    ],
)
def test_what_is_lost_starts_anew_with_those_who_cannot_go_on_without_it(
    local: LocalHarness, strategy: Strategy, counts: dict[Role, int], lost: Role, anew: set[str]
):
    """tensorflow#7767: the restart of a parameter server crashed the whole training."""
    _, key = begun(local, strategy, counts)
    os.kill(local.starts(key, lost, 0)[0], 9)
    wait_until(local.engine, key, lambda seen: task_in(seen, lost, 0).restarts == 1)
    assert {name for name, restarts in restarts_of(local, key).items() if restarts} == anew


def test_a_member_that_is_lost_after_another_ended_well_fails_at_once_kubeflow_147(local: LocalHarness):
    """One worker, started again after the others had finished, waited for them and held its GPUs for ever."""
    _, key = begun(local, Strategy.MULTI_WORKER_MIRRORED, {WORKER: 2}, retries=3)
    local.let_end(key, WORKER, 0, 0)
    wait_until(local.engine, key, has_phase(WORKER, 0, TaskPhase.SUCCEEDED))
    local.let_end(key, WORKER, 1, 5)
    seen = wait_until(local.engine, key, has_phase(WORKER, 1, TaskPhase.FAILED))
    assert [task.restarts for task in seen.tasks] == [0, 0]


def test_a_worker_that_ended_well_is_never_started_again_trainer_1997(local: LocalHarness):
    _, key = begun(local, Strategy.BETWEEN_GRAPH, {WORKER: 2, PS: 1})
    local.let_end(key, WORKER, 0, 0)
    wait_until(local.engine, key, has_phase(WORKER, 0, TaskPhase.SUCCEEDED))
    os.kill(local.starts(key, PS, 0)[0], 9)
    wait_until(
        local.engine,
        key,
        lambda seen: task_in(seen, PS, 0).restarts == 1 and task_in(seen, PS, 0).phase is TaskPhase.RUNNING,
    )
    assert len(local.starts(key, WORKER, 0)) == 1


def test_servers_and_the_evaluator_are_released_when_the_chief_has_ended_well_kubeflow_1853(local: LocalHarness):
    _, key = begun(local, Strategy.PARAMETER_SERVER, COORDINATED)
    local.let_end(key, CHIEF, 0, 0)
    wait_until(local.engine, key, has_phase(CHIEF, 0, TaskPhase.SUCCEEDED))
    local.engine.release(key, [WORKER, PS, EVALUATOR])
    seen = wait_until(local.engine, key, lambda seen: all(task.phase.is_ended for task in seen.tasks))
    assert {task.role: task.phase for task in seen.tasks} == {
        CHIEF: TaskPhase.SUCCEEDED,
        WORKER: TaskPhase.RELEASED,
        PS: TaskPhase.RELEASED,
        EVALUATOR: TaskPhase.RELEASED,
    }
