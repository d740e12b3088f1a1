"""The JSON form: what is accepted, and that everything else is refused by name, with all its problems at once."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.core.generators import CODE, DATA, specs
from yardmaster.errors import Problem, SpecRejected
from yardmaster.job.spec import Role, Strategy, SuccessRule, TrainingSpec
from yardmaster.job.spec_json import spec_from_json, spec_to_json, stored_size
from yardmaster.job.spec_limits import SpecLimits
from yardmaster.job.spec_reading import MOST_PROBLEMS

ABSENT = object()


def job(**changes: Any) -> dict[str, Any]:
    """A small valid job; a change to ABSENT leaves the key out."""
    data = {
        "name": "digits",
        "strategy": "between_graph",
        "roles": {"worker": {"replicas": 2}, "ps": {}},
        "code": str(CODE),
        "entry_point": "train.py",
        **changes,
    }
    return {key: value for key, value in data.items() if value is not ABSENT}


def read(data: object) -> tuple[TrainingSpec | None, tuple[Problem, ...]]:
    try:
        return spec_from_json(data), ()
    except SpecRejected as refused:
        return None, refused.problems


def problems_of(data: object) -> list[Problem]:
    with pytest.raises(SpecRejected) as caught:
        spec_from_json(data)
    return list(caught.value.problems)


def fields_of(data: object) -> list[tuple[str, str]]:
    return [(one.field, one.code) for one in problems_of(data)]


def test_the_example_of_the_protocol_page_is_read_as_it_is_meant() -> None:
    spec = spec_from_json(
        {
            "version": 1,
            "name": "digits",
            "strategy": "between_graph",
            "roles": {
                "worker": {"replicas": 2, "cpu": 1, "memory": "1Gi", "gpus": 0, "extended": {"rdma/hca": 1}},
                "ps": {"replicas": 1, "cpu": 0.5, "memory": "1Gi"},
            },
            "code": str(CODE),
            "entry_point": "train.py",
            "arguments": ["--steps=200"],
            "environment": {"A": "b"},
            "inputs": [{"dataset_version": str(DATA), "name": ""}],
            "paths": {
                "data_flag": "--data_dir",
                "log_flag": "--log_dir",
                "model_flag": "",
                "data_env": "DATA_DIR",
                "log_env": "LOG_DIR",
                "model_env": "MODEL_DIR",
            },
            "retries": 3,
            "max_runtime": 3600,
            "grace_period": 30,
            "reclaim_delay": 30,
            "priority": 0,
            "success": {"rule": "workers", "percent": 100},
        }
    )
    assert spec.strategy is Strategy.BETWEEN_GRAPH
    assert spec.roles[Role.WORKER].resources.extended == {"rdma/hca": 1}
    assert spec.roles[Role.PS].resources.cpu == 0.5
    assert spec.max_runtime == timedelta(hours=1)
    assert spec.success_rule is SuccessRule.WORKERS


def test_only_five_keys_are_required_and_the_rest_has_the_documented_defaults() -> None:
    spec = spec_from_json(job())
    assert (spec.retries, spec.priority, spec.max_runtime) == (3, 0, None)
    assert (spec.grace_period, spec.reclaim_delay) == (timedelta(seconds=30), timedelta(seconds=30))
    assert (spec.paths.data_flag, spec.paths.log_flag, spec.paths.model_flag) == ("auto",) * 3
    assert [code for _, code in fields_of({})] == ["missing"] * 5


@given(specs())
def test_writing_and_reading_again_gives_the_same_spec(spec: TrainingSpec) -> None:
    written = json.loads(json.dumps(spec_to_json(spec)))
    assert spec_from_json(written) == spec
    assert spec_to_json(spec_from_json(written)) == written


# trainer#1241: a policy at the wrong level was silently ignored.


@pytest.mark.parametrize(
    ("data", "field", "hint"),
    [
        (job(replicas=2), "replicas", "roles.<role>"),
        (job(rule="chief"), "rule", "success"),
        (job(grace_perod=5), "grace_perod", "Did you mean grace_period?"),
        (job(roles={"worker": {"retries": 1}, "ps": {}}), "roles.worker.retries", "the top level"),
        (job(roles={"worker": {"replica": 1}, "ps": {}}), "roles.worker.replica", "Did you mean replicas?"),
        (job(roles={"worker": {}, "ps": {}, "wroker": {}}), "roles.wroker", "Did you mean worker?"),
        (job(paths={"data_dir": "--x"}), "paths.data_dir", "data_"),
        (job(inputs=[{"dataset_version": str(DATA), "path": "x"}]), "inputs.0.path", "Known here"),
        (job(success={"rules": "chief"}), "success.rules", "Did you mean rule?"),
    ],
)
def test_trainer_1241_a_key_at_the_wrong_level_is_refused_by_name_with_a_hint(
    data: dict[str, Any], field: str, hint: str
) -> None:
    (found,) = problems_of(data)
    assert (found.field, found.code) == (field, "unknown_key")
    assert hint in found.remedy


@pytest.mark.parametrize(
    ("changes", "field", "code"),
    [
        ({"name": 5}, "name", "wrong_type"),
        ({"name": None}, "name", "wrong_type"),
        ({"strategy": "ps"}, "strategy", "bad_value"),
        ({"strategy": ["single"]}, "strategy", "bad_value"),
        ({"roles": []}, "roles", "wrong_type"),
        ({"roles": {"worker": 3, "ps": {}}}, "roles.worker", "wrong_type"),
        ({"roles": {"worker": {"replicas": True}, "ps": {}}}, "roles.worker.replicas", "wrong_type"),
        ({"roles": {"worker": {"replicas": 2.0}, "ps": {}}}, "roles.worker.replicas", "wrong_type"),
        ({"roles": {"worker": {"replicas": "2"}, "ps": {}}}, "roles.worker.replicas", "wrong_type"),
        ({"roles": {"worker": {"replicas": -1}, "ps": {}}}, "roles.worker.replicas", "out_of_range"),
        ({"roles": {"worker": {"replicas": 10**5000}, "ps": {}}}, "roles.worker.replicas", "out_of_range"),
        ({"roles": {"worker": {"cpu": float("nan")}, "ps": {}}}, "roles.worker.cpu", "wrong_type"),
        ({"roles": {"worker": {"cpu": float("inf")}, "ps": {}}}, "roles.worker.cpu", "wrong_type"),
        ({"roles": {"worker": {"cpu": -1}, "ps": {}}}, "roles.worker.cpu", "out_of_range"),
        ({"roles": {"worker": {"cpu": True}, "ps": {}}}, "roles.worker.cpu", "wrong_type"),
        ({"roles": {"worker": {"cpu": "2 Gi"}, "ps": {}}}, "roles.worker.cpu", "wrong_type"),
        ({"roles": {"worker": {"memory": "lots"}, "ps": {}}}, "roles.worker.memory", "wrong_type"),
        ({"roles": {"worker": {"memory": 1024}, "ps": {}}}, "roles.worker.memory", "out_of_range"),
        ({"roles": {"worker": {"memory": "9Pi"}, "ps": {}}}, "roles.worker.memory", "out_of_range"),
        ({"roles": {"worker": {"gpus": 0.5}, "ps": {}}}, "roles.worker.gpus", "wrong_type"),
        ({"roles": {"worker": {"extended": {"x": "1"}}, "ps": {}}}, "roles.worker.extended.x", "wrong_type"),
        ({"roles": {"worker": {"extended": 1}, "ps": {}}}, "roles.worker.extended", "wrong_type"),
        ({"code": "not an id"}, "code", "bad_value"),
        ({"code": 5}, "code", "bad_value"),
        ({"arguments": "--a --b"}, "arguments", "wrong_type"),
        ({"arguments": ["--a", 1]}, "arguments.1", "wrong_type"),
        ({"arguments": ["a"] * 100_000}, "arguments", "too_long"),
        ({"arguments": ["\ud800"]}, "arguments.0", "bad_value"),
        ({"environment": {"A": 1}}, "environment.A", "wrong_type"),
        ({"environment": {"A": "\0"}}, "environment.A", "bad_value"),
        ({"environment": [["A", "b"]]}, "environment", "wrong_type"),
        ({"inputs": {"a": "b"}}, "inputs", "wrong_type"),
        ({"inputs": [str(DATA)]}, "inputs.0", "wrong_type"),
        ({"inputs": [{}]}, "inputs.0.dataset_version", "missing"),
        ({"paths": {"data_flag": None}}, "paths.data_flag", "wrong_type"),
        ({"retries": 1.5}, "retries", "wrong_type"),
        ({"retries": None}, "retries", "wrong_type"),
        ({"max_runtime": "1h"}, "max_runtime", "wrong_type"),
        ({"max_runtime": 10**14}, "max_runtime", "out_of_range"),
        ({"max_runtime": 10**400}, "max_runtime", "out_of_range"),
        ({"grace_period": -1}, "grace_period", "out_of_range"),
        ({"success": "workers"}, "success", "wrong_type"),
        ({"success": {"rule": "all"}}, "success.rule", "bad_value"),
        ({"success": {"percent": True}}, "success.percent", "wrong_type"),
    ],
)
def test_a_wrong_value_gives_one_problem_with_its_field(changes: dict[str, Any], field: str, code: str) -> None:
    assert fields_of(job(**changes)) == [(field, code)]


@pytest.mark.parametrize("version", [0, 2, True, 1.0, "1", None, [], 10**40])
def test_an_unsupported_version_is_the_only_problem_because_nothing_else_can_be_judged(version: object) -> None:
    assert fields_of({"version": version, "nonsense": 1}) == [("version", "unsupported_version")]


@pytest.mark.parametrize("data", [None, True, 3, 1.5, "job", [], [job()]])
def test_what_is_no_object_is_refused_as_a_whole(data: object) -> None:
    assert fields_of(data) == [("", "wrong_type")]


def test_all_problems_are_named_at_once_those_of_form_and_those_of_meaning() -> None:
    found = fields_of(
        job(
            name="",
            strategy="single",
            roles={"worker": {"cpu": "x"}, "ps": {}},
            retries=999,
            entry_point="../x.py",
            x=1,
        )
    )
    assert set(found) == {
        ("x", "unknown_key"),
        ("roles.worker.cpu", "wrong_type"),
        ("name", "bad_value"),
        ("roles.ps", "role_not_allowed"),
        ("entry_point", "bad_path"),
        ("retries", "out_of_range"),
    }


def test_an_unreadable_strategy_is_not_followed_by_problems_about_the_roles() -> None:
    assert fields_of(job(strategy="between-graph")) == [("strategy", "bad_value")]
    assert problems_of(job(strategy="between-graph"))[0].remedy == "Did you mean between_graph?"


def test_an_absurd_input_does_not_make_an_absurd_answer() -> None:
    found = problems_of(job(**{f"k{n}" * 1000: "v" * 10**6 for n in range(1000)}))
    assert len(found) <= MOST_PROBLEMS + 1
    assert all(len(one.field) < 500 and len(one.value) < 100 and len(one.message) < 500 for one in found)


def test_deep_nesting_is_never_walked_into() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    (found,) = problems_of(job(name=deep))
    assert found.value == "a list of 1"


def test_a_variables_value_is_not_repeated_in_a_problem_for_it_may_be_a_secret() -> None:
    found = problems_of(job(environment={"KEY": "hunter2\0", "9": "hunter2"}, enviroment={"KEY": "hunter2"}))
    assert "hunter2" not in repr(found)


_keys = st.sampled_from(sorted({*spec_to_json(spec_from_json(job())), "worker", "chief", "cpu", "memory", "extended"}))
_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(10**4299, 10**4310)
    | st.floats()
    | st.text(max_size=30)
    | st.sampled_from(["worker", "ps", "single", "train.py", "1Gi", "500m", str(CODE)]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8) | _keys, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=300)
@given(_json | st.fixed_dictionaries({}, optional=dict.fromkeys(spec_to_json(spec_from_json(job())), _json)))
def test_any_json_value_is_read_or_refused_and_nothing_else_happens(data: object) -> None:
    spec, problems = read(data)
    if spec is None:
        assert problems
        assert all(one.code and one.message and one.remedy for one in problems)
    else:
        assert spec_from_json(spec_to_json(spec)) == spec


@settings(max_examples=300)
@given(st.sampled_from(sorted(spec_to_json(spec_from_json(job())))), _json)
def test_one_key_of_a_good_job_replaced_by_anything_is_blamed_alone(key: str, value: object) -> None:
    if key in ("strategy", "roles"):
        return  # these two judge each other
    _, problems = read(job(**{key: value}))
    assert {one.field.partition(".")[0] for one in problems} <= {key}


def test_a_specification_that_is_too_large_names_its_size_the_limit_and_the_largest_field() -> None:
    small = job(arguments=["--a"])
    at_limit = SpecLimits(size=stored_size(spec_to_json(spec_from_json(small))))
    assert spec_from_json(small, at_limit)
    with pytest.raises(SpecRejected) as refused:
        spec_from_json(job(arguments=["--a" * 1000], environment={"A": "x" * 100}), at_limit)
    [problem] = refused.value.problems
    assert (problem.field, problem.code) == ("arguments", "too_large")
    assert f"the most is {at_limit.size:,} bytes" in problem.message
    assert "Its largest field is arguments." in problem.message


def test_the_size_is_that_of_what_is_stored_also_of_letters_that_json_writes_out() -> None:
    limits = SpecLimits(size=20_000)
    assert spec_from_json(job(environment={"A": "x" * 10_000}), limits)
    with pytest.raises(SpecRejected):
        spec_from_json(job(environment={"A": "é" * 10_000}), limits)


def test_an_address_of_git_is_refused_with_what_to_do_first() -> None:
    with pytest.raises(SpecRejected) as refused:
        spec_from_json(job(code="git+https://github.com/lab/digits"))
    [problem] = refused.value.problems
    assert (problem.field, problem.code) == ("code", "git_first")
    assert "/api/v1/code-imports/" in problem.remedy
