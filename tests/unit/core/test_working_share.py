"""Which part of the limits of the working folder each task of a job has."""

from __future__ import annotations

from uuid import UUID

import pytest

from yardmaster.job.spec import Role, RoleSpec, Strategy, TrainingSpec
from yardmaster.job.working_share import share_of


def spec(strategy: Strategy, **replicas: int) -> TrainingSpec:
    roles = {Role(role): RoleSpec(count) for role, count in replicas.items()}
    return TrainingSpec("x", strategy, roles, UUID(int=1), "train.py")


def test_a_task_alone_has_all_of_it_beside_parameter_servers_too():
    assert share_of(spec(Strategy.SINGLE, worker=1), Role.WORKER, 0) == 1
    assert share_of(spec(Strategy.BETWEEN_GRAPH, worker=1, ps=2), Role.WORKER, 0) == 1


@pytest.mark.parametrize(
    ("strategy", "replicas", "leads"),
    [
        (Strategy.MULTI_WORKER_MIRRORED, {"worker": 3}, (Role.WORKER, 0)),
        (Strategy.PARAMETER_SERVER, {"chief": 1, "worker": 2, "ps": 1, "evaluator": 1}, (Role.CHIEF, 0)),
    ],
)
def test_the_deciding_task_has_half_and_all_together_have_no_more_than_all(strategy, replicas, leads):
    one = spec(strategy, **replicas)
    shares = {task: share_of(one, *task) for task in one.tasks() if task[0] is not Role.PS}
    assert shares[leads] == 0.5
    assert sum(shares.values()) == pytest.approx(1)


def test_independent_tasks_have_equal_parts():
    assert share_of(spec(Strategy.BATCH, worker=4), Role.WORKER, 0) == 0.25
