"""Which specifications are valid: one row per rule, and its problem's field and code."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.core.generators import DATA, make_spec, specs
from yardmaster.job.spec import (
    DatasetInput,
    InputMode,
    InputShare,
    Paths,
    Resources,
    Role,
    Strategy,
    SuccessRule,
    TrainingSpec,
)
from yardmaster.job.spec_limits import shorten
from yardmaster.job.spec_rules import check_spec
from yardmaster.job.spec_texts import path_is_inside

BG, PS, MW, SINGLE = (
    Strategy.BETWEEN_GRAPH,
    Strategy.PARAMETER_SERVER,
    Strategy.MULTI_WORKER_MIRRORED,
    Strategy.SINGLE,
)
CHIEF, WORKER, SERVER, EVALUATOR = Role.CHIEF, Role.WORKER, Role.PS, Role.EVALUATOR


def found_in(spec: TrainingSpec) -> list[tuple[str, str]]:
    return [(one.field, one.code) for one in check_spec(spec)]


@given(specs())
def test_a_spec_made_by_the_rules_has_no_problem(spec: TrainingSpec) -> None:
    assert check_spec(spec) == []


@pytest.mark.parametrize(
    ("strategy", "shape"),
    [
        (SINGLE, {WORKER: 1}),
        (BG, {WORKER: 1, SERVER: 1}),
        (BG, {CHIEF: 1, WORKER: 3, SERVER: 2}),
        (PS, {CHIEF: 1, WORKER: 1, SERVER: 1}),
        (PS, {CHIEF: 1, WORKER: 1, SERVER: 1, EVALUATOR: 1}),
        (MW, {WORKER: 1}),
        (MW, {CHIEF: 1, WORKER: 1, EVALUATOR: 1}),
        (BG, {WORKER: 999, SERVER: 1}),
    ],
)
def test_shapes_that_a_strategy_takes(strategy: Strategy, shape: dict[Role, int]) -> None:
    assert found_in(make_spec(strategy, shape)) == []


@pytest.mark.parametrize(
    ("strategy", "shape", "field", "code"),
    [
        (SINGLE, {WORKER: 2}, "roles.worker.replicas", "too_many_tasks"),
        (SINGLE, {WORKER: 1, SERVER: 1}, "roles.ps", "role_not_allowed"),
        (SINGLE, {WORKER: 1, CHIEF: 1}, "roles.chief", "role_not_allowed"),
        (BG, {WORKER: 1}, "roles.ps", "role_missing"),
        (BG, {SERVER: 1}, "roles.worker", "role_missing"),
        (BG, {WORKER: 1, SERVER: 1, EVALUATOR: 1}, "roles.evaluator", "role_not_allowed"),
        (BG, {CHIEF: 2, WORKER: 1, SERVER: 1}, "roles.chief.replicas", "too_many_tasks"),
        (PS, {WORKER: 1, SERVER: 1}, "roles.chief", "role_missing"),
        (PS, {CHIEF: 2, WORKER: 1, SERVER: 1}, "roles.chief.replicas", "too_many_tasks"),
        (PS, {CHIEF: 1, WORKER: 1, SERVER: 0}, "roles.ps.replicas", "out_of_range"),
        (MW, {CHIEF: 1}, "roles.worker", "role_missing"),
        (MW, {WORKER: 1, SERVER: 1}, "roles.ps", "role_not_allowed"),
        (MW, {WORKER: 1, EVALUATOR: 2}, "roles.evaluator.replicas", "too_many_tasks"),
        (BG, {WORKER: 1000, SERVER: 1}, "roles", "out_of_range"),
    ],
)
def test_shapes_that_a_strategy_refuses(strategy: Strategy, shape: dict[Role, int], field: str, code: str) -> None:
    assert found_in(make_spec(strategy, shape)) == [(field, code)]


@pytest.mark.parametrize(
    ("changes", "field", "code"),
    [
        ({"name": ""}, "name", "bad_value"),
        ({"name": "  "}, "name", "bad_value"),
        ({"name": "x" * 101}, "name", "bad_value"),
        ({"name": "a\nb"}, "name", "bad_value"),
        ({"name": "\ud800"}, "name", "bad_value"),
        ({"entry_point": ""}, "entry_point", "bad_path"),
        ({"entry_point": "/etc/x.py"}, "entry_point", "bad_path"),
        ({"entry_point": "../x.py"}, "entry_point", "bad_path"),
        ({"entry_point": "a/../x.py"}, "entry_point", "bad_path"),
        ({"entry_point": "a//x.py"}, "entry_point", "bad_path"),
        ({"entry_point": "./x.py"}, "entry_point", "bad_path"),
        ({"entry_point": "C:\\x.py"}, "entry_point", "bad_path"),
        ({"entry_point": "C:/x.py"}, "entry_point", "bad_path"),
        ({"entry_point": "-c.py"}, "entry_point", "bad_path"),
        ({"entry_point": "x\0.py"}, "entry_point", "bad_path"),
        ({"entry_point": "x" * 300 + ".py"}, "entry_point", "bad_path"),
        ({"entry_point": "train.sh"}, "entry_point", "bad_value"),
        ({"entry_point": "../train.ipynb"}, "entry_point", "bad_path"),
        ({"entry_point": "python train.py"}, "entry_point", "bad_value"),
        ({"entry_point": "-m package.train --epochs 3"}, "entry_point", "bad_value"),
        ({"entry_point": "-m package/train.py"}, "entry_point", "bad_value"),
        ({"entry_point": "-m .train"}, "entry_point", "bad_value"),
        ({"entry_point": "-m"}, "entry_point", "bad_value"),
        ({"entry_point": "-mpackage"}, "entry_point", "bad_value"),
        ({"entry_point": "-m " + "a" * 300}, "entry_point", "bad_value"),
        ({"command": "python train.py"}, "command", "conflict"),
        ({"command": "make", "entry_point": "", "arguments": ("-k",)}, "command", "conflict"),
        ({"command": " \n", "entry_point": ""}, "command", "bad_value"),
        ({"command": "a\0b", "entry_point": ""}, "command", "bad_value"),
        ({"command": "a" * 8193, "entry_point": ""}, "command", "too_long"),
        ({"command": "make", "entry_point": "", "parameters": {"a": 1}}, "parameters", "conflict"),
        ({"parameters": {"a": 1}}, "parameters", "conflict"),
        ({"entry_point": "a.ipynb", "parameters": {"learning rate": 1}}, "parameters.learning rate", "bad_value"),
        ({"entry_point": "a.ipynb", "parameters": {"lambda": 1}}, "parameters.lambda", "bad_value"),
        ({"entry_point": "a.ipynb", "parameters": {"a": "\ud800"}}, "parameters.a", "bad_value"),
        ({"entry_point": "a.ipynb", "parameters": {"a": "x" * 40_000}}, "parameters.a", "too_long"),
        ({"arguments": ("--task_index=3",)}, "arguments.0", "reserved"),
        ({"arguments": ("x" * 40_000,)}, "arguments.0", "too_long"),
        ({"arguments": ("a\0b",)}, "arguments.0", "bad_value"),
        ({"arguments": ("a",) * 1001}, "arguments", "too_long"),
        ({"environment": {"1A": ""}}, "environment.1A", "bad_value"),
        ({"environment": {"": ""}}, "environment.", "bad_value"),
        ({"environment": {"A-B": ""}}, "environment.A-B", "bad_value"),
        ({"environment": {"TF_CONFIG": "{}"}}, "environment.TF_CONFIG", "reserved"),
        ({"environment": {"YARDMASTER_URL": ""}}, "environment.YARDMASTER_URL", "reserved"),
        ({"environment": {"DATA_DIR": "/mnt"}}, "environment.DATA_DIR", "reserved"),
        ({"environment": {"A": "x" * 40_000}}, "environment.A", "too_long"),
        ({"environment": {f"A{n}": "" for n in range(501)}}, "environment", "too_long"),
        ({"inputs": (DatasetInput(DATA, "a"), DatasetInput(DATA))}, "inputs.1.name", "missing"),
        ({"inputs": (DatasetInput(DATA, "a"), DatasetInput(DATA, "A"))}, "inputs.1.name", "duplicate"),
        ({"inputs": (DatasetInput(DATA, ".."),)}, "inputs.0.name", "bad_value"),
        ({"inputs": (DatasetInput(DATA, "a/b"),)}, "inputs.0.name", "bad_value"),
        ({"inputs": (DatasetInput(DATA, "-rf"),)}, "inputs.0.name", "bad_value"),
        ({"paths": Paths(data_flag="-d")}, "paths.data_flag", "bad_value"),
        ({"paths": Paths(data_flag="--data dir")}, "paths.data_flag", "bad_value"),
        ({"paths": Paths(data_flag="--job_name")}, "paths.data_flag", "reserved"),
        ({"paths": Paths("--log_dir", "--log_dir")}, "paths.log_flag", "duplicate"),
        ({"paths": Paths("--x", "--y", "--x")}, "paths.model_flag", "duplicate"),
        ({"paths": Paths(data_env="9")}, "paths.data_env", "bad_value"),
        ({"paths": Paths(data_env="TF_CONFIG")}, "paths.data_env", "reserved"),
        ({"paths": Paths(data_env="LOG_DIR")}, "paths.log_env", "duplicate"),
        ({"retries": -1}, "retries", "out_of_range"),
        ({"retries": 101}, "retries", "out_of_range"),
        ({"priority": 1001}, "priority", "out_of_range"),
        ({"priority": -1001}, "priority", "out_of_range"),
        ({"max_runtime": timedelta(0)}, "max_runtime", "out_of_range"),
        ({"max_runtime": timedelta(days=366)}, "max_runtime", "out_of_range"),
        ({"grace_period": timedelta(seconds=-1)}, "grace_period", "out_of_range"),
        ({"grace_period": timedelta(seconds=0.5)}, "grace_period", "out_of_range"),
        ({"grace_period": timedelta(hours=2)}, "grace_period", "out_of_range"),
        ({"reclaim_delay": timedelta(days=2)}, "reclaim_delay", "out_of_range"),
        ({"success_percent": 0}, "success.percent", "out_of_range"),
        ({"success_percent": 101}, "success.percent", "out_of_range"),
        ({"success_rule": SuccessRule.CHIEF, "success_percent": 50}, "success.percent", "conflict"),
        ({"strategy": PS, "success_percent": 50}, "success.percent", "conflict"),
        ({"resources": Resources(cpu=0)}, "roles.worker.cpu", "out_of_range"),
        ({"resources": Resources(cpu=5000)}, "roles.worker.cpu", "out_of_range"),
        ({"resources": Resources(memory=1 << 20)}, "roles.worker.memory", "out_of_range"),
        ({"resources": Resources(gpus=-1)}, "roles.worker.gpus", "out_of_range"),
        ({"resources": Resources(extended={"a b": 1})}, "roles.worker.extended.a b", "bad_value"),
        ({"resources": Resources(extended={"cpu": 1})}, "roles.worker.extended.cpu", "bad_value"),
        ({"resources": Resources(extended={"rdma/hca": 0})}, "roles.worker.extended.rdma/hca", "out_of_range"),
    ],
)
def test_each_rule_names_its_field_and_says_what_to_do(changes: dict[str, Any], field: str, code: str) -> None:
    problems = check_spec(make_spec(**{"strategy": SINGLE if "resources" in changes else BG, **changes}))
    assert [(one.field, one.code) for one in problems] == [(field, code)]
    assert problems[0].remedy


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "Ziffern, 3. Versuch – größer"},
        {"entry_point": "src/train model.py"},
        {"entry_point": "-m package.train"},
        {"entry_point": "-m  package", "tf1": True},
        {"entry_point": "notebooks/train.ipynb", "parameters": {"rate": 0.1, "name": "a b", "deep": True, "n": 3}},
        {"entry_point": "", "command": "cd src && python train.py --epochs 3\necho done"},
        {"arguments": ("--data_dir2=x", "positional", "", "ünïcode")},
        {"environment": {"_A1": "", "DATA_DIRS": "x"}},
        {"inputs": (DatasetInput(DATA),)},
        {"inputs": (DatasetInput(DATA, "", InputMode.STREAM, InputShare.SHARDS),)},
        {"inputs": (DatasetInput(DATA, "train"), DatasetInput(DATA, "v1.2_test-set"))},
        {"inputs": (DatasetInput(DATA, stands_for="s3://Their.old_bucket/a folder/=daten, größer/"),)},
        {"paths": Paths("", "", "", "", "", "")},
        {"max_runtime": timedelta(days=365), "grace_period": timedelta(0), "reclaim_delay": timedelta(0)},
        {"success_rule": SuccessRule.CHIEF},
        {"success_percent": 1},
    ],
)
def test_what_looks_unusual_but_works_is_accepted(changes: dict[str, Any]) -> None:
    assert found_in(make_spec(**changes)) == []


@pytest.mark.parametrize(
    ("one", "field"),
    [
        (DatasetInput(DATA, mode=InputMode.STREAM), "inputs.0.mode"),
        (DatasetInput(DATA, share=InputShare.SHARDS), "inputs.0.share"),
    ],
)
def test_where_no_script_reads_shards_are_neither_streamed_nor_divided(one: DatasetInput, field: str) -> None:
    ps = make_spec(PS, {CHIEF: 1, WORKER: 1, SERVER: 1}, inputs=(one,))
    assert found_in(ps) == [(field, "conflict")]
    assert found_in(make_spec(MW, {WORKER: 2}, inputs=(one,))) == []


@pytest.mark.parametrize(
    "path",
    [
        "bucket/x", "gs://bucket/x", "s3a://bucket", "s3:/bucket", "s3://", "s3://ab", "s3:///x", "s3://-bucket/x",
        "s3://user:key@bucket/x", "s3://bucket//x", "s3://bucket/x//", "s3://bucket/../x", "s3://bucket/./x",
        "s3://bucket/*.csv", "s3://bucket/x?versionId=1", "s3://bucket/a\nb", "s3://bucket/\udc80",
        "s3://bucket/" + "é" * 513,
    ],
)  # fmt: skip
def test_an_input_stands_for_one_folder_of_a_bucket(path: str) -> None:
    assert found_in(make_spec(inputs=(DatasetInput(DATA, stands_for=path),))) == [("inputs.0.stands_for", "bad_value")]


def test_two_inputs_do_not_stand_for_the_same_path() -> None:
    one, same = (
        DatasetInput(DATA, "a", stands_for="s3://bucket/x"),
        DatasetInput(DATA, "b", stands_for="s3://bucket/x/"),
    )
    assert found_in(make_spec(inputs=(one, same))) == [("inputs.1.stands_for", "duplicate")]
    inner = replace(same, stands_for="s3://bucket/x/y")
    assert found_in(make_spec(inputs=(one, inner))) == []


def test_servers_without_a_script_stand_for_no_path_and_a_model_is_read_as_files() -> None:
    one = DatasetInput(DATA, stands_for="s3://bucket/x")
    assert found_in(make_spec(Strategy.IN_GRAPH, inputs=(one,))) == [("inputs.0.stands_for", "conflict")]
    assert found_in(make_spec(PS, {CHIEF: 1, WORKER: 1, SERVER: 1}, inputs=(one,))) == []
    model = DatasetInput(None, "m", InputMode.STREAM, InputShare.SHARDS, DATA, "s3://bucket/x")
    assert found_in(make_spec(inputs=(model,))) == [("inputs.0.mode", "conflict"), ("inputs.0.share", "conflict")]


def test_classic_flags_are_only_reserved_where_tasks_get_them() -> None:
    assert found_in(make_spec(SINGLE, arguments=("--job_name=mine",))) == []


def test_a_variable_that_a_path_would_set_is_free_once_the_path_is_renamed() -> None:
    spec = make_spec(environment={"DATA_DIR": "/mnt"})
    assert found_in(replace(spec, paths=Paths(data_env="INPUT_DIR"))) == []


@given(st.text(max_size=30))
def test_a_path_that_is_let_through_stays_inside(path: str) -> None:
    if path_is_inside(path):
        assert not path.startswith(("/", "\\", "-"))
        assert ".." not in path.split("/")


@given(st.text(max_size=200), st.integers(2, 80))
def test_a_shown_value_is_short_and_printable(value: str, most: int) -> None:
    shown = shorten(value, most)
    assert len(shown) <= most
    assert shown.isprintable()
