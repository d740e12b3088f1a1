"""Ids, specs and phases: the values that everything else is made of."""

from __future__ import annotations

import ast
import re
import sys
import threading
import uuid
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import yardmaster
from tests.unit.core.generators import CODE, make_spec, resources, specs
from yardmaster import ids
from yardmaster.errors import Misconfigured, Problem, QuotaFull, SpecRejected, Unavailable
from yardmaster.ids import JobKey, new_id, short
from yardmaster.job.spec import NOTHING, Resources, Role, Strategy, TrainingSpec
from yardmaster.job.strategy import ROLES
from yardmaster.lifecycle.phases import FINAL, MOVES, Phase


def test_ids_are_version_7_and_come_in_order_of_their_making() -> None:
    made = [new_id() for _ in range(2000)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)
    assert {(one.version, one.variant) for one in made} == {(7, uuid.RFC_4122)}


def test_ids_keep_their_order_when_the_clock_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    first = new_id()
    monkeypatch.setattr(ids.time, "time_ns", lambda: 0)
    second, third = new_id(), new_id()
    assert first < second < third


def test_ids_made_in_several_threads_are_all_different() -> None:
    made: list[uuid.UUID] = []
    threads = [threading.Thread(target=lambda: made.extend(new_id() for _ in range(500))) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(set(made)) == 2000


@given(st.uuids(), st.uuids(), st.integers(1, 999999))
def test_names_made_of_ids_are_dns_labels_that_keep_the_order(one: uuid.UUID, other: uuid.UUID, attempt: int) -> None:
    assert (short(one) < short(other)) == (one < other)
    name = JobKey(one, other, attempt).name
    assert re.fullmatch(r"[a-z][a-z0-9-]*[a-z0-9]", name)
    assert len(name) <= 34


@given(resources(), resources(), st.integers(0, 50))
def test_resources_add_and_multiply_without_loss(one: Resources, other: Resources, times: int) -> None:
    assert one + other == other + one
    assert one + NOTHING == one
    total = NOTHING
    for _ in range(times):
        total += one
    assert {name: amount for name, amount in total.as_amounts().items() if amount} == {
        name: amount for name, amount in (one * times).as_amounts().items() if amount
    }


@given(specs())
def test_a_spec_is_a_value(spec: TrainingSpec) -> None:
    assert hash(spec) == hash(make_copy(spec))
    assert spec == make_copy(spec)
    assert len(spec.tasks()) == sum(one.replicas for one in spec.roles.values())
    parts = NOTHING
    for role in spec.roles:
        parts += spec.total(frozenset({role}))
    assert spec.total() == parts
    with pytest.raises(FrozenInstanceError):
        spec.name = "other"  # type: ignore[misc]
    with pytest.raises(TypeError):
        spec.roles[Role.PS] = None  # type: ignore[index]


def make_copy(spec: TrainingSpec) -> TrainingSpec:
    fields = {name: getattr(spec, name) for name in spec.__dataclass_fields__}
    return TrainingSpec(**{**fields, "roles": dict(reversed(list(spec.roles.items())))})


def test_the_order_in_which_roles_are_written_does_not_matter() -> None:
    spec = make_spec(Strategy.PARAMETER_SERVER, {Role.PS: 1, Role.WORKER: 1, Role.CHIEF: 1})
    assert [role for role, _ in spec.tasks()] == [Role.CHIEF, Role.WORKER, Role.PS]
    assert spec.code_version == CODE
    assert spec.replicas(Role.EVALUATOR) == 0


def test_final_phases_have_no_way_out_and_every_phase_can_be_reached() -> None:
    assert {phase for phase, after in MOVES.items() if not after} == FINAL
    assert set(MOVES) == set(Phase)
    reached = {Phase.QUEUED}
    for _ in Phase:
        reached |= {after for phase in reached for after in MOVES[phase]}
    assert reached == set(Phase)


def test_every_strategy_says_what_its_roles_mean() -> None:
    assert set(ROLES) == set(Strategy)
    for strategy, rules in ROLES.items():
        assert (Role.WORKER in rules) is (strategy is not Strategy.SPARK)
    endless = [strategy for strategy, rules in ROLES.items() if all(rule.never_ends for rule in rules.values())]
    assert endless == [Strategy.IN_GRAPH, Strategy.SERVICE]


def test_errors_say_whether_the_same_call_may_succeed_later() -> None:
    assert QuotaFull("full").retryable
    assert Unavailable("away").retryable
    assert not Misconfigured("wrong").retryable
    refused = SpecRejected([Problem("name", "bad_value", "Too long."), Problem("", "wrong_type", "No object.")])
    assert not refused.retryable
    assert str(refused) == "name: Too long.; No object."


PURE = sorted(Path(yardmaster.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("path", PURE, ids=lambda path: path.name)
def test_the_core_imports_the_standard_library_alone(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        modules = [one.name for one in node.names] if isinstance(node, ast.Import) else []
        modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for module in modules:
            top = module.partition(".")[0]
            assert top in sys.stdlib_module_names or module.startswith("yardmaster.") or top == "yardmaster_runner"
            assert not module.startswith(("yardmaster.engines", "yardmaster.storage", "yardmaster.logs"))
