"""Failures whose remedy is a known change come with that change; all others with none."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from yardmaster.code.requirement_files import plain_lines
from yardmaster.job.spec import USUAL_PATHS, Resources, Role, RoleSpec, Strategy, TrainingSpec
from yardmaster.job.spec_rules import check_spec
from yardmaster.lifecycle.failures import Blame, Verdict
from yardmaster.lifecycle.remedies import known_change
from yardmaster.lifecycle.tracebacks import explain_traceback

GIB = 1 << 30
SPEC = TrainingSpec(
    name="digits",
    strategy=Strategy.BETWEEN_GRAPH,
    roles={Role.WORKER: RoleSpec(2, Resources(1, GIB)), Role.PS: RoleSpec(1, Resources(1, GIB))},
    code_version=UUID(int=1),
    entry_point="train.py",
    max_runtime=timedelta(minutes=90),
    paths=USUAL_PATHS,
)


def verdict(reason: str, role: Role | None = Role.WORKER, exit_code: int | None = 1) -> Verdict:
    return Verdict(reason, "It failed.", role=role, index=0, exit_code=exit_code, blame=Blame.LIMIT)


def test_a_task_out_of_memory_gets_twice_as_much_and_only_its_role_does():
    change = known_change(SPEC, verdict("OutOfMemory", exit_code=137), None, GIB)
    assert change is not None
    assert change.label == "2 GiB for each worker instead of 1 GiB"
    assert change.spec.roles[Role.WORKER].resources.memory == 2 * GIB
    assert change.spec.roles[Role.PS] == SPEC.roles[Role.PS]
    assert check_spec(change.spec) == []


def test_memory_grows_past_a_peak_that_was_seen():
    change = known_change(SPEC, verdict("OutOfMemory"), None, 3 * GIB)
    assert change is not None
    assert change.spec.roles[Role.WORKER].resources.memory == 4.5 * GIB


def test_a_kill_near_the_limit_is_taken_for_lack_of_memory_and_a_kill_far_from_it_is_not():
    assert known_change(SPEC, verdict("Killed", exit_code=137), None, int(0.9 * GIB)) is not None
    assert known_change(SPEC, verdict("Killed", exit_code=137), None, GIB // 10) is None
    assert known_change(SPEC, verdict("Killed", exit_code=139), None, GIB) is None


def test_python_s_memory_error_asks_for_memory_and_a_gpu_s_does_not():
    python = explain_traceback(["MemoryError"])
    gpu = explain_traceback(["ResourceExhaustedError: OOM when allocating tensor"])
    assert known_change(SPEC, verdict("ScriptFailed"), python, None) is not None
    assert known_change(SPEC, verdict("ScriptFailed"), gpu, None) is None


def test_a_job_past_its_time_gets_twice_as_much():
    change = known_change(SPEC, verdict("DeadlineExceeded", role=None), None, None)
    assert change is not None
    assert change.label == "a maximum runtime of 3 h instead of 1 h 30 min"
    assert change.spec.max_runtime == timedelta(hours=3)


def test_flags_that_the_script_refuses_are_left_out():
    found = explain_traceback(["train.py: error: unrecognized arguments: --log_dir=/w/log --fast"])
    change = known_change(SPEC, verdict("ScriptFailed", exit_code=2), found, None)
    assert change is not None
    assert (change.spec.paths.log_flag, change.spec.paths.data_flag) == ("", "--data_dir")
    assert "--log_dir left out" in change.label


def test_an_optimizer_of_keras_2_gets_keras_2_by_one_variable():
    found = explain_traceback(
        ["ImportError: `keras.optimizers.legacy` is not supported in Keras 3. When using `tf.keras`"]
    )
    spec = replace(SPEC, environment={"A": "b"})
    change = known_change(spec, verdict("ImportFailed"), found, None)
    assert change is not None
    assert change.label == "TF_USE_LEGACY_KERAS=1"
    assert change.spec.environment == {"A": "b", "TF_USE_LEGACY_KERAS": "1"}
    assert change.is_sure
    assert known_change(change.spec, verdict("ImportFailed"), found, None) is None


OLD_HUB = ["  import pkg_resources", "ModuleNotFoundError: No module named 'pkg_resources'"]


@pytest.mark.parametrize(
    ("asked", "code", "wanted"),
    [
        (None, {}, ("setuptools<81",)),
        (None, {"requirements.txt": "# ours\n\npandas>=2  # tables\n", "pyproject.toml": ""},
         ("pandas>=2", "setuptools<81")),
        (("pandas", "setuptools>=82"), {"requirements.txt": "numpy"}, ("pandas", "setuptools<81")),
        ((), {"pyproject.toml": ""}, ("setuptools<81",)),
    ],
)  # fmt: skip
def test_a_package_that_needs_pkg_resources_gets_an_older_setuptools_beside_all_that_is_asked_for(asked, code, wanted):
    found, required = explain_traceback(OLD_HUB), plain_lines(code)
    assert found.code == "pkg_resources_gone"
    assert "setuptools<81" in found.remedy
    change = known_change(replace(SPEC, requirements=asked), verdict("ImportFailed"), found, None, required)
    assert (change.label, change.spec.requirements, change.is_sure) == ("setuptools<81", wanted, True)
    assert check_spec(change.spec) == []
    assert known_change(change.spec, verdict("ImportFailed"), found, None, required) is None


@pytest.mark.parametrize("code", [None, {"pyproject.toml": "[project]"}, {"requirements.txt": "-r more.txt\npandas"}])
def test_where_the_rest_would_be_lost_it_is_left_to_a_person(code):
    required = None if code is None else plain_lines(code)
    assert known_change(SPEC, verdict("ImportFailed"), explain_traceback(OLD_HUB), None, required) is None


def test_a_script_of_a_package_is_run_as_its_module():
    found = explain_traceback(["ImportError: attempted relative import with no known parent package"])
    spec = replace(SPEC, entry_point="package/net/train.py")
    change = known_change(spec, verdict("ImportFailed"), found, None)
    assert (change.spec.entry_point, change.is_sure) == ("-m package.net.train", True)
    assert check_spec(change.spec) == []
    assert known_change(change.spec, verdict("ImportFailed"), found, None) is None
    for entry_point in ("train.py", "my-code/train.py", "package/train.ipynb"):
        assert known_change(replace(spec, entry_point=entry_point), verdict("ImportFailed"), found, None) is None
    beyond = explain_traceback(["ImportError: attempted relative import beyond top-level package"])
    assert known_change(spec, verdict("ImportFailed"), beyond, None) is None


def test_an_unreliable_machine_gets_more_restarts_but_a_known_error_does_not():
    assert known_change(SPEC, verdict("RestartsSpent"), None, None).spec.retries == SPEC.retries + 3
    found = explain_traceback(["ModuleNotFoundError: No module named 'pandas'"])
    assert known_change(SPEC, verdict("RestartsSpent"), found, None) is None
    assert known_change(replace(SPEC, retries=100), verdict("RestartsSpent"), None, None) is None


@pytest.mark.parametrize("reason", ["ScriptFailed", "ImportFailed", "Lost", "Evicted", "CorruptInput", "unheard of"])
def test_what_takes_a_person_is_not_changed(reason):
    assert known_change(SPEC, verdict(reason), None, None) is None


def test_more_restarts_are_no_sure_help_and_never_offered_for_what_fails_at_every_start() -> None:
    offered = known_change(SPEC, verdict("RestartsSpent"), None, None)
    assert offered is not None
    assert not offered.is_sure
    for reason in ("SameFailure", "CodeError", "FileMissing", "BadArguments", "ImportFailed", "SyntaxError"):
        assert known_change(SPEC, verdict(reason), None, None) is None
