"""The strategy `batch`, the portal's own programs, and what a job publishes: rules, JSON, verdicts."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.core.generators import CODE, DATA, everything, make_spec, task
from yardmaster.code.preflight import preflight
from yardmaster.errors import Problem, SpecRejected
from yardmaster.job.programs import PREPARE, PROGRAMS
from yardmaster.job.spec import Publishes, Role, Strategy, SuccessRule
from yardmaster.job.spec_json import spec_from_json, spec_to_json
from yardmaster.job.spec_rules import check_spec
from yardmaster.job.spec_stored import stored_spec
from yardmaster.job.strategy import publishing_tasks, server_roles
from yardmaster.lifecycle.failures import REASONS
from yardmaster.lifecycle.phases import TaskPhase
from yardmaster.lifecycle.restarts import Restart, after_exit
from yardmaster.lifecycle.success import job_verdict
from yardmaster_runner import own_programs
from yardmaster_runner.order import read_order

WORKER, RUNNING, DONE = Role.WORKER, TaskPhase.RUNNING, TaskPhase.SUCCEEDED
BATCH = make_spec(Strategy.BATCH, {WORKER: 3})


def written(**changes: Any) -> dict[str, Any]:
    """A preparation as a person writes it."""
    return {
        "name": "prepare reviews", "strategy": "batch", "roles": {"worker": {"replicas": 2}}, "program": "prepare",
        "options": {"split": "80/10/10", "compression": "gzip", "seed": 3},
        "inputs": [{"dataset_version": str(DATA)}], "publishes": {"dataset": "reviews-prepared"}, **changes,
    }  # fmt: skip


def inference(**changes: Any) -> dict[str, Any]:
    """Batch inference as a person writes it."""
    inputs = [{"model_version": str(CODE), "name": "model"}, {"dataset_version": str(DATA), "name": "data"}]
    return written(program="predict", inputs=inputs, **{"options": {"columns": "x=a+b"}, **changes})


def problems_of(data: dict[str, Any]) -> list[Problem]:
    with pytest.raises(SpecRejected) as refused:
        spec_from_json(data)
    return list(refused.value.problems)


class TestBatch:
    def test_its_workers_are_independent_and_all_must_succeed(self) -> None:
        assert check_spec(BATCH) == []
        assert server_roles(BATCH) == ()
        assert job_verdict(BATCH, everything(BATCH, DONE, task(WORKER, 1, RUNNING))) is None
        verdict = job_verdict(BATCH, everything(BATCH, DONE))
        assert verdict is not None
        assert verdict.message == "All 3 workers completed successfully."

    def test_a_lost_worker_comes_back_alone(self) -> None:
        assert after_exit(BATCH, WORKER, 1, 137, "", 0) is Restart.TASK

    @pytest.mark.parametrize("rule", [{"rule": "chief"}, {"percent": 50}])
    def test_a_part_of_the_work_is_not_enough(self, rule: dict[str, Any]) -> None:
        (problem,) = problems_of(written(success=rule))
        assert problem.code == "conflict"

    def test_it_has_workers_alone(self) -> None:
        assert [one.field for one in problems_of(written(roles={"worker": {}, "ps": {}}))] == ["roles.ps"]

    def test_it_runs_scripts_too(self) -> None:
        script = {"code": str(CODE), "entry_point": "embed.py", "program": "", "options": {}}
        assert spec_from_json(written(**script)).entry_point == "embed.py"


class TestProgram:
    def test_it_needs_neither_code_nor_script(self) -> None:
        spec = spec_from_json(written())
        assert (spec.program, spec.code_version, spec.entry_point) == (PREPARE, None, "")
        assert spec.publishes == Publishes("reviews-prepared")
        assert spec_from_json(spec_to_json(spec)) == spec
        assert stored_spec(spec_to_json(spec)) == spec

    def test_every_other_job_says_that_it_has_none(self) -> None:
        form = spec_to_json(make_spec())
        assert (form["program"], form["options"], form["publishes"]) == ("", {}, None)
        older = {key: form[key] for key in form if key not in ("program", "options", "publishes")}
        assert stored_spec(older) == spec_from_json(older) == make_spec()

    @pytest.mark.parametrize(
        ("changes", "field", "code"),
        [
            ({"program": "prepair"}, "program", "bad_value"),
            ({"strategy": "single", "roles": {"worker": {}}}, "program", "conflict"),
            ({"entry_point": "train.py"}, "entry_point", "conflict"),
            ({"arguments": ["--split"]}, "arguments", "conflict"),
            ({"inputs": []}, "inputs", "missing"),
            ({"publishes": None}, "publishes", "missing"),
            ({"options": {"step": "step.py"}}, "code", "missing"),
            ({"options": {"spilt": "90/10"}}, "options.spilt", "unknown_key"),
            ({"options": {"split": "90/20"}}, "options.split", "bad_value"),
            ({"options": {"split": ["90", "10"]}}, "options.split", "wrong_type"),
            ({"options": {"seed": -1}}, "options.seed", "bad_value"),
            ({"options": {"seed": True}}, "options.seed", "bad_value"),
            ({"options": {"step": "step"}, "code": str(CODE)}, "options.step", "bad_value"),
            ({"options": {"label": "a\0b"}}, "options.label", "bad_value"),
            ({"publishes": {"note": "x"}}, "publishes.dataset", "missing"),
            ({"publishes": {"dataset": " "}}, "publishes.dataset", "bad_value"),
            ({"publishes": {"dataset": "a", "note": "n" * 1001}}, "publishes.note", "bad_value"),
            ({"environment": {"OUTPUT_DIR": "/tmp"}}, "environment.OUTPUT_DIR", "reserved"),
        ],
    )
    def test_what_it_cannot_use_is_named(self, changes: dict[str, Any], field: str, code: str) -> None:
        assert [(one.field, one.code) for one in problems_of(written(**changes))] == [(field, code)]

    def test_options_belong_to_a_program_and_publishing_to_independent_tasks(self) -> None:
        spec = replace(make_spec(), options={"split": "90/10"}, publishes=Publishes("a"))
        assert [one.field for one in check_spec(spec)] == ["options", "publishes"]

    def test_of_a_spark_cluster_the_driver_alone_publishes(self) -> None:
        roles = {"driver": {"replicas": 1}, "executor": {"replicas": 2}}
        body = {"strategy": "spark", "roles": roles, "program": "", "options": {}, "code": str(CODE)}
        spec = spec_from_json(written(**body, entry_point="main.py", inputs=[]))
        assert check_spec(spec) == []
        assert publishing_tasks(spec) == [(Role.DRIVER, 0)]

    def test_a_variable_of_that_name_is_the_users_where_nothing_is_published(self) -> None:
        assert check_spec(replace(make_spec(), environment={"OUTPUT_DIR": "/tmp"})) == []

    def test_a_step_has_to_be_in_the_code(self) -> None:
        spec = replace(spec_from_json(written()), options={"step": "steps/embed.py"}, code_version=CODE)
        assert preflight(spec, {"steps/embed.py": "", "train.py": "("}) == []
        (finding,) = preflight(spec, {"steps/embedding.py": ""})
        assert (finding.code, finding.remedy) == ("step_missing", "Did you mean steps/embedding.py?")

    def test_a_missing_step_is_guessed_at_in_a_moment_whatever_the_files_are_called(self) -> None:
        """Comparing one of these pairs takes a third of a second, and code may have 20,000 files."""
        files = dict.fromkeys((f"{'aab' * 150}{number}.py" for number in range(60)), "")
        step = f"{'ab' * 97}.py"
        spec = replace(spec_from_json(written()), options={"step": step}, code_version=CODE)
        begun = time.process_time()
        (finding,) = preflight(spec, files)
        assert finding.code == "step_missing"
        assert time.process_time() - begun < 2

    def test_bad_data_is_found_again_by_every_start(self) -> None:
        assert REASONS["BadData"].permanent
        assert after_exit(BATCH, WORKER, 0, 65, "BadData", 0) is Restart.NONE_FAILED
        verdict = job_verdict(BATCH, everything(BATCH, RUNNING, _failed("a.csv, row 7: 3 cells, expected 4")))
        assert verdict is not None
        assert "a.csv, row 7: 3 cells, expected 4" in verdict.message


def _failed(message: str) -> Any:
    return task(WORKER, 1, TaskPhase.FAILED, exit_code=65, reason="BadData", message=message)


class TestRunner:
    def test_both_sides_know_the_same_programs(self) -> None:
        assert set(own_programs.MODULES) == set(PROGRAMS)

    def test_the_order_says_what_to_run_and_an_older_runner_says_so(self) -> None:
        answer = {"job": "j", "attempt": 1, "spec": spec_to_json(spec_from_json(written())), "code": None}
        order = read_order(answer)
        assert (order.program, order.options["split"], order.publishes) == (PREPARE, "80/10/10", True)
        with pytest.raises(Exception, match="older than the portal"):
            read_order({**answer, "spec": {**answer["spec"], "program": "of_tomorrow"}})

    def test_orders_reach_the_program(self) -> None:
        given = own_programs.Orders({"seed": 1}, "/d", "", "/l", "/m", "/o", 1, 3)
        assert own_programs.orders(own_programs.to_variable(given)) == given


def test_the_rule_of_a_batch_job_is_written_as_for_all() -> None:
    assert spec_to_json(BATCH)["success"] == {"rule": SuccessRule.WORKERS.value, "percent": 100}


class TestBatchInference:
    def test_it_has_a_model_and_a_dataset_and_publishes(self) -> None:
        spec = spec_from_json(inference())
        assert [(one.name, one.model_version) for one in spec.inputs] == [("model", CODE), ("data", None)]
        assert spec_from_json(spec_to_json(spec)) == spec
        assert {one.field for one in problems_of(inference(publishes=None))} == {"publishes"}

    @pytest.mark.parametrize(
        "inputs",
        [[{"dataset_version": str(DATA), "name": "data"}],
         [{"dataset_version": str(DATA), "name": "model"}, {"model_version": str(CODE), "name": "data"}]],
    )  # fmt: skip
    def test_other_inputs_are_refused(self, inputs: list[dict[str, str]]) -> None:
        (problem,) = problems_of({**inference(), "inputs": inputs})
        assert (
            problem.message
            == "The program predict has a model named model and a dataset named data as its inputs, no other."
        )

    @pytest.mark.parametrize(
        ("option", "value"),
        [("columns", "x"), ("columns", "x=a+"), ("batch", 0), ("write", "csv"), ("most_bad", -1), ("pixels", "")],
    )
    def test_wrong_options_are_named(self, option: str, value: Any) -> None:
        (problem,) = problems_of(inference(options={option: value}))
        assert problem.field == f"options.{option}"
