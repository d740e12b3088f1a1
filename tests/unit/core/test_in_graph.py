"""The strategy `in_graph`: plain servers without a script, which never succeed and whose normal end is a stop."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.unit.core.generators import CODE, NOW, everything, make_spec, task
from yardmaster.code.preflight import preflight
from yardmaster.errors import Problem, SpecRejected
from yardmaster.job.spec import Role, Strategy, SuccessRule, TrainingSpec
from yardmaster.job.spec_json import spec_from_json, spec_to_json
from yardmaster.job.spec_rules import check_spec
from yardmaster.job.strategy import leading_task, only_serves, server_roles
from yardmaster.lifecycle.failures import REASONS
from yardmaster.lifecycle.phases import Phase, TaskPhase, Wanted
from yardmaster.lifecycle.plan import Move, Remembered, Stop, Wait, plan
from yardmaster.lifecycle.restarts import Restart, after_exit
from yardmaster.lifecycle.success import job_verdict

CHIEF, WORKER, PS = Role.CHIEF, Role.WORKER, Role.PS
RUNNING, DONE, FAILED, RELEASED = TaskPhase.RUNNING, TaskPhase.SUCCEEDED, TaskPhase.FAILED, TaskPhase.RELEASED
SPEC = make_spec(Strategy.IN_GRAPH)


def written(**changes: Any) -> dict[str, Any]:
    """As a person writes it: without code and script."""
    return {"name": "servers", "strategy": "in_graph", "roles": {"worker": {"replicas": 2}, "ps": {}}, **changes}


def problems_of(data: dict[str, Any]) -> list[Problem]:
    with pytest.raises(SpecRejected) as refused:
        spec_from_json(data)
    return list(refused.value.problems)


def remembered(phase: Phase, spec: TrainingSpec = SPEC, wanted: Wanted = Wanted.RUN, **fields: Any) -> Remembered:
    return Remembered(spec, phase, wanted, queued_at=NOW, admitted_at=NOW, started_at=NOW, **fields)


class TestSpec:
    @pytest.mark.parametrize("said", [{}, {"code": None}, {"entry_point": ""}, {"code": None, "entry_point": ""}])
    def test_it_needs_neither_code_nor_script(self, said: dict[str, Any]) -> None:
        spec = spec_from_json(written(**said))
        assert (spec.code_version, spec.entry_point) == (None, "")
        assert spec_from_json(spec_to_json(spec)) == spec

    @pytest.mark.parametrize("strategy", [one.value for one in Strategy if not only_serves(one)])
    def test_every_other_strategy_still_needs_both(self, strategy: str) -> None:
        found = {one.field: one.code for one in problems_of(written(strategy=strategy))}
        assert (found["code"], found["entry_point"]) == ("missing", "missing")
        found = {one.field: one.code for one in problems_of(written(strategy=strategy, code=None, entry_point=""))}
        assert (found["code"], found["entry_point"]) == ("bad_value", "bad_path")

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("code", str(CODE)),
            ("entry_point", "train.py"),
            ("arguments", ["--steps=3"]),
            ("success", {"rule": "chief"}),
            ("success", {"percent": 50}),
        ],
    )
    def test_what_only_a_script_could_use_is_refused_not_passed_over(self, field: str, value: Any) -> None:
        (problem,) = problems_of(written(**{field: value}))
        assert problem.field.partition(".")[0] == field
        assert problem.code == "conflict"
        assert problem.value
        assert problem.remedy.startswith("Remove ")

    def test_a_code_that_is_no_id_is_named_as_everywhere(self) -> None:
        assert {one.field for one in problems_of(written(code="digits"))} == {"code"}

    @pytest.mark.parametrize(
        ("roles", "field"),
        [
            ({"worker": {}}, "roles.ps"),
            ({"ps": {}}, "roles.worker"),
            ({"worker": {}, "ps": {}, "evaluator": {}}, "roles.evaluator"),
            ({"worker": {}, "ps": {}, "chief": {"replicas": 2}}, "roles.chief.replicas"),
        ],
    )
    def test_it_has_workers_parameter_servers_and_perhaps_a_chief(self, roles: dict[str, Any], field: str) -> None:
        assert [one.field for one in problems_of(written(roles=roles))] == [field]

    def test_all_of_them_serve(self) -> None:
        spec = make_spec(Strategy.IN_GRAPH, {CHIEF: 1, WORKER: 2, PS: 2})
        assert check_spec(spec) == []
        assert server_roles(spec) == (CHIEF, WORKER, PS)
        assert leading_task(spec) == (CHIEF, 0)
        assert leading_task(SPEC) == (WORKER, 0)


class TestEnd:
    def test_it_never_succeeds(self) -> None:
        assert job_verdict(SPEC, everything(SPEC, RUNNING)) is None
        for rule in SuccessRule:
            verdict = job_verdict(replace(SPEC, success_rule=rule), everything(SPEC, DONE))
            assert verdict is not None
            assert verdict.reason != "Succeeded"

    @pytest.mark.parametrize(("role", "name"), [(WORKER, "Worker 0"), (PS, "Parameter server 0")])
    @pytest.mark.parametrize(
        ("phase", "exit_code", "reason"), [(DONE, 0, ""), (FAILED, 1, ""), (FAILED, 1, "ScriptFailed")]
    )
    def test_a_server_that_ended_is_told_as_such(
        self, role: Role, name: str, phase: TaskPhase, exit_code: int, reason: str
    ) -> None:
        ended = task(role, 0, phase, exit_code=exit_code, reason=reason)
        verdict = job_verdict(SPEC, everything(SPEC, RUNNING, ended))
        assert verdict is not None
        assert (verdict.reason, verdict.role, verdict.index) == ("ServerEnded", role, 0)
        words = f"{name} exited with exit code {exit_code}, but a server runs until it is stopped."
        assert verdict.message == words
        assert "script" not in verdict.message + verdict.remedy

    @pytest.mark.parametrize("reason", ["OutOfMemory", "NoTensorFlow", "RestartsSpent", "ImagePull"])
    def test_a_better_word_is_kept(self, reason: str) -> None:
        lost = task(WORKER, 1, FAILED, exit_code=137, reason=reason)
        verdict = job_verdict(SPEC, everything(SPEC, RUNNING, lost))
        assert verdict is not None
        assert verdict.reason == reason

    @pytest.mark.parametrize("role", [WORKER, PS])
    def test_servers_stopped_on_the_engine_itself_are_no_running_job(self, role: Role) -> None:
        verdict = job_verdict(SPEC, everything(SPEC, RUNNING, task(role, 0, RELEASED)))
        assert verdict is not None
        assert verdict.reason == "StoppedOutside"

    def test_it_runs_for_as_long_as_nobody_stops_it(self) -> None:
        seen = everything(SPEC, RUNNING)
        for days in (0, 1, 400):
            now = NOW + timedelta(days=days)
            assert plan(remembered(Phase.RUNNING), seen, now) == Wait(now + timedelta(seconds=15))

    def test_a_stop_is_its_normal_end(self) -> None:
        seen = everything(SPEC, RUNNING)
        assert plan(remembered(Phase.RUNNING, wanted=Wanted.STOP), seen, NOW) == Move(Phase.STOPPING)
        stopping = remembered(Phase.STOPPING, wanted=Wanted.STOP)
        assert plan(stopping, seen, NOW) == Stop(SPEC.grace_period)
        assert plan(stopping, everything(SPEC, RELEASED), NOW) == Move(Phase.STOPPED)

    def test_the_end_of_its_time_is_a_stop_that_says_why(self) -> None:
        spec = replace(SPEC, max_runtime=timedelta(hours=1))
        now = NOW + timedelta(hours=1)
        assert plan(remembered(Phase.RUNNING, spec), everything(spec, RUNNING), now) == Move(Phase.STOPPING)
        stopping = remembered(Phase.STOPPING, spec)
        assert plan(stopping, everything(spec, RUNNING), now) == Stop(spec.grace_period)
        last = plan(stopping, everything(spec, RELEASED), now)
        assert isinstance(last, Move)
        assert last.phase is Phase.STOPPED
        assert last.verdict is not None
        assert last.verdict.reason == "DeadlineExceeded"
        assert "time limit of 3600 s" in last.verdict.message
        assert "train less" not in last.verdict.remedy


class TestRestarts:
    @pytest.mark.parametrize("role", [CHIEF, WORKER, PS])
    def test_a_lost_server_comes_back_alone_while_retries_last(self, role: Role) -> None:
        spec = make_spec(Strategy.IN_GRAPH, {CHIEF: 1, WORKER: 2, PS: 1}, retries=2)
        assert after_exit(spec, role, 0, 137, "", 1) is Restart.TASK
        assert after_exit(spec, role, 0, 137, "", 2) is Restart.NONE_FAILED

    def test_without_tensorflow_no_restart_helps(self) -> None:
        assert REASONS["NoTensorFlow"].permanent
        assert after_exit(SPEC, WORKER, 0, 1, "NoTensorFlow", 0) is Restart.NONE_FAILED


class TestPreflight:
    def test_servers_without_an_end_may_be_forgotten(self) -> None:
        (finding,) = preflight(SPEC, {})
        assert (finding.severity.value, finding.code) == ("warning", "no_end")
        assert "max_runtime" in finding.remedy

    def test_with_one_there_is_nothing_to_say(self) -> None:
        assert preflight(replace(SPEC, max_runtime=timedelta(hours=1)), {}) == []


def test_a_version_of_code_is_an_id_or_nothing() -> None:
    assert spec_to_json(SPEC)["code"] is None
    assert uuid.UUID(spec_to_json(make_spec())["code"]) == CODE
