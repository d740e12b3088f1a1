"""What a task is told about its peers: TF_CONFIG, the classic flags, and the variables a strategy needs."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from tests.unit.core.generators import make_spec
from yardmaster.job.spec import Role, Strategy
from yardmaster.job.strategy import classic_flags, server_roles, task_environment, tf_config
from yardmaster_runner import cluster as words

HOSTS = {"chief": ["h:1"], "worker": ["h:2", "h:3"], "ps": ["h:4"]}
NO_CHIEF = {"worker": ["h:2", "h:3"], "ps": ["h:4"]}


def test_tf_config_has_the_cluster_and_the_tasks_own_place() -> None:
    spec = make_spec(Strategy.PARAMETER_SERVER)
    assert tf_config(spec, HOSTS, Role.WORKER, 1) == {
        "cluster": {"chief": ["h:1"], "worker": ["h:2", "h:3"], "ps": ["h:4"]},
        "task": {"type": "worker", "index": 1},
        "environment": "cloud",
    }


def test_the_evaluator_is_told_what_it_is_but_is_not_in_the_cluster() -> None:
    spec = make_spec(Strategy.PARAMETER_SERVER, {Role.CHIEF: 1, Role.WORKER: 2, Role.PS: 1, Role.EVALUATOR: 1})
    config = tf_config(spec, {**HOSTS, "evaluator": ["h:9"]}, Role.EVALUATOR, 0)
    assert config is not None
    assert config["task"] == {"type": "evaluator", "index": 0}
    assert "evaluator" not in config["cluster"]
    assert Role.EVALUATOR not in server_roles(spec)


@pytest.mark.parametrize(
    ("strategy", "shape"),
    [(Strategy.SINGLE, {Role.WORKER: 1}), (Strategy.MULTI_WORKER_MIRRORED, {Role.WORKER: 1})],
)
def test_a_job_of_one_task_has_no_tf_config(strategy: Strategy, shape: dict[Role, int]) -> None:
    spec = make_spec(strategy, shape)
    assert tf_config(spec, {"worker": ["h:2"]}, Role.WORKER, 0) is None
    assert "TF_CONFIG" not in task_environment(spec, Role.WORKER, 0, {"worker": ["h:2"]})


def test_without_a_chief_role_the_worker_list_stays_as_it_is() -> None:
    spec = make_spec(Strategy.BETWEEN_GRAPH)
    config = tf_config(spec, NO_CHIEF, Role.WORKER, 0)
    assert config is not None
    assert config["cluster"] == NO_CHIEF


def test_classic_flags_name_every_host_and_the_tasks_own_place() -> None:
    spec = make_spec(Strategy.BETWEEN_GRAPH)
    assert classic_flags(spec, NO_CHIEF, Role.PS, 0) == [
        "--ps_hosts=h:4",
        "--worker_hosts=h:2,h:3",
        "--job_name=ps",
        "--task_index=0",
    ]


def test_a_chief_is_worker_0_of_the_classic_flags_and_the_workers_move_up() -> None:
    spec = make_spec(Strategy.BETWEEN_GRAPH, {Role.CHIEF: 1, Role.WORKER: 2, Role.PS: 1})
    places = {key: classic_flags(spec, HOSTS, *key) for key in spec.tasks()}
    assert {tuple(flags[:2]) for flags in places.values()} == {("--ps_hosts=h:4", "--worker_hosts=h:1,h:2,h:3")}
    assert places[Role.CHIEF, 0][2:] == ["--job_name=worker", "--task_index=0"]
    assert places[Role.WORKER, 0][2:] == ["--job_name=worker", "--task_index=1"]
    assert places[Role.WORKER, 1][2:] == ["--job_name=worker", "--task_index=2"]
    assert places[Role.PS, 0][2:] == ["--job_name=ps", "--task_index=0"]


@pytest.mark.parametrize("strategy", [one for one in Strategy if one is not Strategy.BETWEEN_GRAPH])
def test_only_between_graph_gets_classic_flags(strategy: Strategy) -> None:
    assert classic_flags(make_spec(strategy), HOSTS, Role.WORKER, 0) == []


@pytest.mark.parametrize(
    ("strategy", "names"),
    [
        (Strategy.SINGLE, set()),
        (Strategy.BETWEEN_GRAPH, set()),
        (Strategy.PARAMETER_SERVER, {"TF_USE_LEGACY_KERAS", "GRPC_FAIL_FAST"}),
        (Strategy.MULTI_WORKER_MIRRORED, {"TF_USE_LEGACY_KERAS"}),
    ],
)
def test_each_strategy_gets_the_variables_it_needs(strategy: Strategy, names: set[str]) -> None:
    found = task_environment(make_spec(strategy), Role.WORKER, 0, HOSTS)
    assert set(found) - {"TF_CONFIG", "PYTHONUNBUFFERED"} == names
    assert found["PYTHONUNBUFFERED"] == "1"
    if "TF_CONFIG" in found:
        assert json.loads(found["TF_CONFIG"])["task"] == {"type": "worker", "index": 0}


def test_a_variable_that_the_user_has_set_is_left_alone() -> None:
    spec = make_spec(Strategy.PARAMETER_SERVER, environment={"TF_USE_LEGACY_KERAS": "0", "PYTHONUNBUFFERED": ""})
    assert set(task_environment(spec, Role.CHIEF, 0, HOSTS)) == {"TF_CONFIG", "GRPC_FAIL_FAST"}


def test_the_words_that_both_sides_use_are_the_strategies_values() -> None:
    assert {words.BETWEEN_GRAPH, words.PARAMETER_SERVER, words.MULTI_WORKER_MIRRORED} < {one.value for one in Strategy}


def test_the_shared_module_can_be_read_by_python_3_8() -> None:
    ast.parse(Path(words.__file__).read_text(), feature_version=(3, 8))
