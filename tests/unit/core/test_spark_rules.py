"""The strategy spark: what a valid job is, when it has ended, and what starts again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.core.generators import everything, make_spec, task
from yardmaster.job.spec import Resources, Role, RoleSpec, SparkInput, Strategy, SuccessRule
from yardmaster.job.spec_json import spec_from_json, spec_to_json
from yardmaster.job.spec_rules import check_spec
from yardmaster.job.spec_stored import stored_form, stored_spec
from yardmaster.job.strategy import leading_task, never_ending_roles, task_environment
from yardmaster.job.working_share import share_of
from yardmaster.lifecycle.failures import REASONS
from yardmaster.lifecycle.phases import TaskPhase
from yardmaster.lifecycle.restarts import Restart, after_exit, tasks_to_restart
from yardmaster.lifecycle.success import job_verdict
from yardmaster.queueing.needs import needs_of
from yardmaster.queueing.resources import is_accelerator

SPEC = make_spec(Strategy.SPARK)
DRIVER, EXECUTOR = Role.DRIVER, Role.EXECUTOR


def codes(**changes: object) -> list[tuple[str, str]]:
    return [(one.field, one.code) for one in check_spec(replace(SPEC, **changes))]  # type: ignore[arg-type]


def test_it_has_one_driver_and_executors() -> None:
    assert codes() == []
    assert codes(roles={EXECUTOR: RoleSpec(2)}) == [("roles.driver", "role_missing")]
    assert codes(roles={DRIVER: RoleSpec(2), EXECUTOR: RoleSpec()}) == [("roles.driver.replicas", "too_many_tasks")]
    assert codes(roles={**SPEC.roles, Role.WORKER: RoleSpec()}) == [("roles.worker", "role_not_allowed")]


@pytest.mark.parametrize("entry", ["train.ipynb", "-m package.train"])
def test_its_driver_is_a_python_file(entry: str) -> None:
    assert codes(entry_point=entry) == [("entry_point", "conflict")]


def test_a_command_and_tensorflow_1_mode_are_refused() -> None:
    assert codes(entry_point="", command="spark-submit train.py") == [("command", "conflict")]
    assert codes(tf1=True) == [("tf1", "conflict")]


def test_the_driver_alone_decides() -> None:
    assert leading_task(SPEC) == (DRIVER, 0)
    assert codes(success_rule=SuccessRule.CHIEF) == [("success.rule", "conflict")]
    done = everything(SPEC, TaskPhase.RUNNING, task(DRIVER, 0, TaskPhase.SUCCEEDED))
    verdict = job_verdict(SPEC, done)
    assert verdict is not None
    assert verdict.message == "The driver completed successfully."
    assert job_verdict(SPEC, everything(SPEC, TaskPhase.RUNNING)) is None


def test_executors_are_released_after_the_verdict() -> None:
    assert never_ending_roles(Strategy.SPARK) == {EXECUTOR}


def test_an_executor_starts_again_alone_and_a_driver_with_all_others() -> None:
    assert after_exit(SPEC, EXECUTOR, 1, 137, "", 0) is Restart.TASK
    assert after_exit(SPEC, DRIVER, 0, 137, "", 0) is Restart.CLUSTER
    assert tasks_to_restart(SPEC, Restart.CLUSTER, DRIVER, 0) == SPEC.tasks()


def test_a_missing_spark_is_no_reason_to_start_again() -> None:
    assert after_exit(SPEC, DRIVER, 0, 70, "SparkMissing", 0) is Restart.NONE_FAILED
    assert "docs/spark.md" in REASONS["SparkMissing"].remedy


def test_its_tasks_get_no_tf_config_which_the_library_makes() -> None:
    found = task_environment(SPEC, EXECUTOR, 0, {"driver": ["h:1"], "executor": ["h:2", "h:3"]})
    assert "TF_CONFIG" not in found
    assert found["TF_USE_LEGACY_KERAS"] == "1"


def test_the_driver_keeps_half_of_what_is_kept_of_working_folders() -> None:
    assert share_of(SPEC, DRIVER, 0) == 0.5
    assert share_of(SPEC, EXECUTOR, 0) == 0.25


REGISTERED = replace(SPEC, roles={DRIVER: SPEC.roles[DRIVER]}, spark=SparkInput("analytics", 3, 2, 1 << 30))


def test_on_a_registered_cluster_the_driver_is_the_only_task() -> None:
    assert check_spec(REGISTERED) == []
    assert stored_spec(stored_form(REGISTERED)) == REGISTERED
    assert spec_from_json(spec_to_json(REGISTERED)) == REGISTERED
    with_executors = check_spec(replace(REGISTERED, roles=SPEC.roles))
    assert [(one.field, one.code) for one in with_executors] == [("roles.executor", "conflict")]
    assert [one.field for one in check_spec(replace(REGISTERED, spark=None))] == ["roles.executor"]
    other = replace(REGISTERED, strategy=Strategy.SINGLE, roles={Role.WORKER: RoleSpec()})
    assert [(one.field, one.code) for one in check_spec(other)] == [("spark", "conflict")]


def test_what_is_asked_of_a_registered_cluster_is_named_where_it_cannot_be() -> None:
    wrong = check_spec(replace(REGISTERED, spark=SparkInput("A b", 0, 0, 1)))
    assert [one.field for one in wrong] == ["spark.cluster", "spark.executors", "spark.cores", "spark.memory"]
    assert all(one.message and one.remedy for one in wrong)
    reserved = replace(REGISTERED, roles={DRIVER: RoleSpec(1, Resources(extended={"spark/analytics": 1}))})
    assert [one.field for one in check_spec(reserved)] == ["roles.driver.extended.spark/analytics"]


def test_a_task_whose_memory_cannot_hold_its_processes_is_refused() -> None:
    small, enough = (Resources(memory=size << 20) for size in (1023, 1024))
    assert codes(roles={DRIVER: RoleSpec(1, enough), EXECUTOR: RoleSpec(2, enough)}) == []
    found = check_spec(replace(SPEC, roles={DRIVER: RoleSpec(1, small), EXECUTOR: RoleSpec(2, small)}))
    assert [(one.field, one.code) for one in found] == [
        ("roles.driver.memory", "out_of_range"),
        ("roles.executor.memory", "out_of_range"),
    ]
    assert "at least 1 GiB" in found[0].message
    tiny = Resources(memory=1 << 20)
    assert len(check_spec(replace(SPEC, roles={**SPEC.roles, DRIVER: RoleSpec(1, tiny)}))) == 1, "one problem, not two"
    assert stored_spec(stored_form(replace(SPEC, roles={DRIVER: RoleSpec(1, tiny)}))).roles[DRIVER].resources == tiny


@pytest.mark.parametrize(("size", "count"), [(767, 1), (768, 0)])
def test_a_driver_without_a_master_beside_it_may_have_less(size: int, count: int) -> None:
    roles = {DRIVER: RoleSpec(1, Resources(memory=size << 20))}
    assert [one.field for one in check_spec(replace(REGISTERED, roles=roles))] == ["roles.driver.memory"] * count


def test_the_cores_of_a_registered_cluster_are_held_with_the_driver_and_are_no_accelerator() -> None:
    needs = needs_of(REGISTERED)
    assert needs["extended"] == {"spark/analytics": 6}
    assert needs["roles"]["driver"]["extended"] == {"spark/analytics": 6}
    assert needs["tasks"]["driver"]["extended"] == {}
    assert not is_accelerator("spark/gpu-farm")
    assert is_accelerator("gpu-farm.example/gpu")
