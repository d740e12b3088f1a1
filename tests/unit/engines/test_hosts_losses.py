"""What follows the loss of machines, and what machines hear of each other."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.contract.engine_harness import ACCESS, SMALL, new_key, spec_of
from yardmaster.engines.hosts.losses import aftermath, spent_of
from yardmaster.engines.hosts.records import Placement, Share
from yardmaster.engines.hosts.submission import withdrawn
from yardmaster.engines.hosts.views import Report, observation, others_of, report_in
from yardmaster.engines.supervision.facts import Facts, Order, Others, Task, fresh
from yardmaster.job.spec import Role, RoleSpec, Strategy, TrainingSpec
from yardmaster.lifecycle.phases import TaskPhase

PS, FIRST, SECOND = (Role.PS, 0), (Role.WORKER, 0), (Role.WORKER, 1)
NOW = 1_000_000.0
LATER = timedelta(minutes=5)


def known(task: Task, phase: TaskPhase = TaskPhase.RUNNING, **more: object) -> Facts:
    return replace(fresh(*task).with_state(phase=phase), **more)  # type: ignore[arg-type]


def placement(spec: TrainingSpec, *machines: list[Task]) -> Placement:
    """The first list of tasks is on `m0`, and so on."""
    shares = {}
    for number, tasks in enumerate(machines):
        names = tuple(f"{role.value}-{index}" for role, index in tasks)
        ports = {name: 2000 + at for at, name in enumerate(names)} if spec.strategy is not Strategy.BATCH else {}
        shares[f"m{number}"] = Share(f"part {number}", f"10.0.0.{number}", names, ports)
    return Placement(new_key(), spec, ACCESS, shares)


def running(*tasks: Task) -> Report:
    return Report({task: known(task) for task in tasks})


SPEC = spec_of(retries=2)


def test_with_servers_all_that_have_not_ended_start_again_for_one_restart():
    facts = {PS: known(PS), FIRST: known(FIRST), SECOND: known(SECOND, TaskPhase.SUCCEEDED)}
    found = aftermath(SPEC, facts, {PS}, {PS: "The machine is lost."})
    assert found.starts_again == {PS, FIRST}
    assert found.facts[SECOND] == facts[SECOND]
    assert {found.facts[task].generation for task in (PS, FIRST)} == {1}
    assert spent_of(list(found.facts.values())) == 1
    assert (found.facts[PS].state.phase, found.facts[PS].state.reason) == (TaskPhase.PENDING, "Lost")
    assert found.facts[PS].state.restarts == 1


def test_without_servers_only_the_lost_ones_start_again_and_each_costs_one():
    spec = spec_of(Strategy.BATCH, roles={Role.WORKER: RoleSpec(3, SMALL)}, retries=1)
    tasks = spec.tasks()
    found = aftermath(spec, {task: known(task) for task in tasks}, set(tasks[1:]), dict.fromkeys(tasks, "lost"))
    assert found.starts_again == {tasks[1]}  # the other one has no restart left
    assert [found.facts[task].state.phase.value for task in tasks] == ["RUNNING", "PENDING", "FAILED"]
    assert spent_of(list(found.facts.values())) == 1


@pytest.mark.parametrize("facts", [{}, {PS: known(PS), FIRST: known(FIRST, spent=2), SECOND: known(SECOND)}])
def test_without_restarts_left_the_lost_ones_have_failed(facts: dict[Task, Facts]):
    spec = SPEC if facts else replace(SPEC, retries=0)
    found = aftermath(spec, facts, {PS}, {PS: "The machine is lost."})
    assert found.starts_again == frozenset()
    assert found.facts[PS].state.phase is TaskPhase.FAILED
    assert found.facts[PS].state.message == "The machine is lost."


def test_a_machine_that_is_away_for_long_is_lost_and_not_before():
    where = placement(SPEC, [FIRST, SECOND], [PS])
    away = Report({PS: known(PS)}, away_since=NOW - 200, why="Connection refused")
    seen = observation(where, {"m0": running(FIRST, SECOND), "m1": away}, NOW, LATER)
    assert not seen.to_restart
    assert {task.phase for task in seen.tasks} == {TaskPhase.RUNNING}
    assert seen.message == "The machine m1 has not answered since 1970-01-12 13:43:20 UTC: Connection refused"
    seen = observation(where, {"m0": running(FIRST, SECOND), "m1": replace(away, away_since=NOW - 400)}, NOW, LATER)
    assert seen.to_restart
    assert [task.phase.value for task in seen.tasks] == ["RUNNING", "RUNNING", "PENDING"]


def test_a_machine_that_has_nothing_of_a_run_makes_it_incomplete():
    where = placement(SPEC, [FIRST, SECOND], [PS])
    seen = observation(where, {"m0": running(FIRST, SECOND), "m1": Report(None)}, NOW, LATER)
    assert not seen.exists
    assert seen.message == "The machine m1 has nothing of this job."


def test_a_part_that_was_never_made_is_made_by_a_repeated_call_and_not_lost():
    first = replace(placement(SPEC, [FIRST, SECOND], [PS]), unmade=("m1",))
    silent = Report({}, away_since=NOW, why="No route to host")
    for report in (Report(None), silent):
        assert not observation(first, {"m0": running(FIRST, SECOND), "m1": report}, NOW, LATER).exists
    again = replace(first, facts={PS: known(PS, TaskPhase.PENDING, generation=1)})
    for report in (Report(None), silent):
        seen = observation(again, {"m0": running(FIRST, SECOND), "m1": report}, NOW, LATER)
        assert (seen.exists, seen.to_restart) == (True, True)
        assert seen.tasks[2].phase is TaskPhase.PENDING
    made = replace(again, unmade=())
    assert not observation(made, {"m0": running(FIRST, SECOND), "m1": Report(None)}, NOW, LATER).exists


def test_times_are_told_by_the_portals_clock():
    begun = datetime(2026, 1, 1, 12, tzinfo=UTC)
    facts = known(PS).with_state(started_at=begun)
    where = placement(SPEC, [FIRST, SECOND], [PS])
    for offset, shown in ((3600.0, begun - timedelta(hours=1)), (-7200.0, begun + timedelta(hours=2)), (0.5, begun)):
        reports = {"m0": running(FIRST, SECOND), "m1": Report({PS: facts}, offset=offset)}
        assert observation(where, reports, NOW, LATER).tasks[2].started_at == shown


def test_parts_of_machines_with_a_task_that_starts_again_are_withdrawn():
    where = placement(SPEC, [FIRST, SECOND], [PS])
    facts = {PS: known(PS), FIRST: known(FIRST), SECOND: known(SECOND, TaskPhase.SUCCEEDED)}
    after = withdrawn(where, aftermath(SPEC, facts, {PS}, {PS: "lost"}))
    assert after.shares == {}
    assert after.gone == {"m0": "part 0", "m1": "part 1"}
    assert after.unplaced() == [FIRST, PS]
    assert after.former == {"worker-1": "10.0.0.0:2001"}  # its place in the lists of addresses stays
    again = replace(after, shares={"m2": Share("new", "10.0.0.2", ("worker-0", "ps-0"), {"worker-0": 1, "ps-0": 2})})
    assert again.unplaced() == []
    order = Order(where.key, SPEC, "", (), {}, ports={"worker-0": 1, "ps-0": 2}, host="10.0.0.2",
                  elsewhere=again.elsewhere("m2"))  # fmt: skip
    assert order.cluster() == {"worker": ["10.0.0.2:1", "10.0.0.0:2001"], "ps": ["10.0.0.2:2"]}
    assert Placement.from_json(again.to_json()) == again


def test_machines_hear_what_was_spent_and_who_succeeded_elsewhere():
    where = placement(SPEC, [FIRST, SECOND], [PS])
    first = Report({FIRST: known(FIRST, spent=1), SECOND: known(SECOND, TaskPhase.SUCCEEDED)})
    found = others_of(where, {"m0": first, "m1": running(PS)})
    assert found == {"m1": Others(1, frozenset({"worker-1"}))}
    assert others_of(where, {"m0": first, "m1": Report(None)}) == {}
    assert others_of(placement(SPEC, SPEC.tasks()), {"m0": running(*SPEC.tasks())}) == {}
    heard = {"m0": first, "m1": replace(running(PS), received=Others(1, frozenset({"worker-1"})))}
    assert others_of(where, heard) == {}


def test_a_generation_is_cleared_when_nothing_of_an_earlier_one_runs():
    where = placement(SPEC, [FIRST, SECOND], [PS])
    ahead = Report({FIRST: known(FIRST, TaskPhase.PENDING, generation=1), SECOND: known(SECOND, generation=1)})
    stages = [
        (known(PS), 0),
        (known(PS, recalled=True, generation=1), 0),
        (known(PS, TaskPhase.PENDING, generation=1), 1),
        (known(PS, TaskPhase.RELEASED), 1),
    ]
    for facts, cleared in stages:
        found = others_of(where, {"m0": ahead, "m1": Report({PS: facts})})
        assert found.get("m0", Others()).cleared == cleared
        assert found["m1"] == Others(generation=1, cleared=1)


def test_news_only_add():
    one, other = Others(2, frozenset({"ps-0"}), 1, 0), Others(1, frozenset({"worker-0"}), 0, 1)
    assert one.with_news(other) == other.with_news(one) == Others(2, frozenset({"ps-0", "worker-0"}), 1, 1)
    assert Others.from_json(one.to_json()) == one


def test_a_report_that_describes_a_task_in_no_known_way_is_of_a_task_that_never_started():
    found = report_in({"tasks": {"ps-0": {"phase": "DANCING"}}})
    assert found.tasks == {PS: fresh(*PS)}
