"""What the engine of machines does where a machine answers nonsense, falls silent at the wrong moment, or is taken off
the list; and where the portal is killed between two steps."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.contract.engine_harness import ACCESS, SMALL, new_key, spec_of
from tests.fakes.machines import Park
from yardmaster.engines.base import MachineState
from yardmaster.engines.hosts import wire
from yardmaster.engines.hosts.connection import Away
from yardmaster.engines.hosts.inventory import Host
from yardmaster.engines.hosts.keys import shown_keys
from yardmaster.engines.supervision.facts import key_to_json, task_of
from yardmaster.errors import Misconfigured, SpecUnreadable, Unavailable, YardmasterError
from yardmaster.ids import JobKey
from yardmaster.job.spec import Role, RoleSpec, TrainingSpec
from yardmaster.lifecycle.phases import ABSENT, TaskPhase

SPEC = spec_of(retries=3)


@pytest.fixture
def park(tmp_path: Path) -> Park:
    return Park(tmp_path, lost_after=300.0)


@pytest.fixture
def lost(park: Park, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Has machines fall silent, for long."""

    def go(*names: str) -> None:
        for name in names:
            park.machines[name].is_silent = True
        monkeypatch.setattr(park.engine.records, "away_since", lambda name: time.time() - 1000.0)

    return go


def begun(park: Park, spec: TrainingSpec = SPEC) -> JobKey:
    key = new_key()
    park.engine.submit(spec, key, ACCESS)
    return key


def killed() -> Any:
    raise KeyboardInterrupt


NONSENSE = [
    None, [], {}, "x", 7, {"total": None}, {"total": {"cpu": float("nan"), "memory": 1, "gpus": 0}},
    {"total": {"cpu": 1e308, "memory": 10**30, "gpus": 0}, "held": [], "promised": {}, "environment": ""},
    {"total": {"cpu": 1, "memory": 1, "gpus": 1}, "held": [["x", "ps", "us", {}]], "promised": {}, "environment": ""},
]  # fmt: skip


@pytest.mark.parametrize("nonsense", NONSENSE, ids=range(len(NONSENSE)))
def test_a_machine_that_answers_nonsense_about_itself_takes_no_tasks_and_costs_no_other(park: Park, nonsense: Any):
    park.machines["b"].answers["capacity"] = lambda: nonsense
    found = {one.name: one for one in park.engine.machines()}
    assert [found[name].state for name in "abc"] == [MachineState.READY, MachineState.NOT_READY, MachineState.READY]
    assert "sent an invalid answer" in found["b"].message
    assert park.engine.capacity().free.cpu == pytest.approx(1.4)


TASKS = {"phase": "RUNNING"}
MANY = {"spent": "many", "succeeded": [], "generation": 0, "cleared": 0}
NO_REPORTS = [
    None, [], {}, "x", [{}], [{"tasks": 3}], [{"tasks": {"dancer-0": TASKS}}], [None, None],
    [{"tasks": {"ps-0": TASKS}}], [{"tasks": {}, "others": MANY}],
]  # fmt: skip


@pytest.mark.parametrize("nonsense", NO_REPORTS, ids=range(len(NO_REPORTS)))
def test_a_machine_that_answers_nonsense_about_a_run_hides_no_other_run(park: Park, nonsense: Any):
    key, other = begun(park), begun(park)
    name = next(iter(park.orders()))
    park.machines[name].answers["observe"] = lambda: nonsense
    seen = park.engine.observe([key, other])
    assert set(seen) == {key, other}
    assert all(len(one.tasks) in (0, 3) for one in seen.values())


NO_FACTS = [
    {"leader": [1]}, {"leader": [1, 2]}, {"started_at": "9999-12-31T23:59:59+00:00"}, {"restarts": 1 << 31},
    {"started_at": "0001-01-01T00:00:00+23:59"}, {"started_at": "2026-01-01T00:00:00"},
]  # fmt: skip


@pytest.mark.parametrize("wrong", NO_FACTS, ids=range(len(NO_FACTS)))
def test_a_script_that_writes_nonsense_of_its_task_hides_no_other_run(park: Park, wrong: Any):
    key, other = begun(park), begun(park)
    machine = park.machines[next(iter(park.orders()))]
    described = machine._described
    machine._described = lambda run: {  # type: ignore[method-assign]
        "tasks": {task: one | wrong for task, one in described(run)["tasks"].items()}
    }
    park.engine.links.offset = lambda name: -1.7e9  # type: ignore[method-assign]
    seen = park.engine.observe([key, other])
    assert all(len(one.tasks) == 3 for one in seen.values())
    assert {task.started_at for one in seen.values() for task in one.tasks} == {None}
    assert max(task.restarts for one in seen.values() for task in one.tasks) == 0


@pytest.mark.parametrize("nonsense", [None, {}, {"ports": {"worker-9": 80}, "gpus": {}}, {"ports": {"ps-0": 10**9}}])
def test_nonsense_in_place_of_a_promise_leaves_nothing_behind(park: Park, nonsense: Any):
    for one in park.machines.values():
        one.answers["claim"] = lambda: nonsense
    key = new_key()
    with pytest.raises(Unavailable):
        park.engine.submit(SPEC, key, ACCESS)
    assert park.engine.records.placement(key) is None
    assert park.orders() == {}


def test_a_portal_that_was_killed_after_it_wrote_the_placement_finishes_the_submission(park: Park):
    for one in park.machines.values():
        one.answers["submit"] = killed
    key = new_key()
    with pytest.raises(KeyboardInterrupt):
        park.engine.submit(SPEC, key, ACCESS)
    assert not park.engine.observe([key])[key].exists
    for one in park.machines.values():
        one.answers.clear()
    before = park.engine.records.placement(key)
    park.engine.submit(SPEC, key, ACCESS)
    after = park.engine.records.placement(key)
    assert before is not None
    assert after is not None
    assert after.tasks() == before.tasks()
    assert after.unmade == ()
    assert len(park.engine.observe([key])[key].tasks) == 3


def test_a_machine_that_cannot_make_its_part_leaves_nothing_anywhere(park: Park):
    def full() -> Any:
        raise Unavailable("The disk is full.")

    park.machines["b"].answers["submit"] = full
    park.machines["a"].answers["submit"] = full
    park.machines["c"].answers["submit"] = full
    key = new_key()
    with pytest.raises(Unavailable, match="disk is full"):
        park.engine.submit(SPEC, key, ACCESS)
    assert park.engine.records.placement(key) is None
    assert park.engine.observe([key])[key] == ABSENT


@pytest.mark.parametrize("how", ["killed", "away", "full"])
def test_a_restart_after_a_loss_that_was_interrupted_is_finished_and_fails_no_job(park: Park, lost: Any, how: str):
    key = begun(park)
    park.engine.observe([key])
    gone = next(name for name, tasks in park.orders().items() if "ps-0" in tasks)
    lost(gone)
    others = [name for name in "abc" if name != gone]

    def trouble() -> Any:
        if how == "killed":
            raise KeyboardInterrupt
        if how == "away":
            raise Away("It does not answer.")
        raise Unavailable("The disk is full.")

    for name in others:
        park.machines[name].answers["submit"] = trouble
    with pytest.raises((KeyboardInterrupt, Unavailable)):
        park.engine.restart(key)
    seen = park.engine.observe([key])[key]
    assert (seen.exists, seen.to_restart) == (True, True)
    assert not any(task.phase is TaskPhase.FAILED for task in seen.tasks)
    for name in others:
        park.machines[name].answers.clear()
    assert park.engine.restart(key)
    assert not park.engine.restart(key)  # one loss is one restart
    seen = park.engine.observe([key])[key]
    assert {task.phase for task in seen.tasks} == {TaskPhase.RUNNING}
    assert {task.restarts for task in seen.tasks} == {1}
    assert gone not in {task.node for task in seen.tasks}


def test_what_is_lost_is_withdrawn_only_where_there_is_space_for_it(park: Park, lost: Any):
    key = begun(park, spec_of(retries=3, roles={Role.WORKER: RoleSpec(5, SMALL), Role.PS: RoleSpec(1, SMALL)}))
    lost("a")
    with pytest.raises(Unavailable, match="No machines have the space"):
        park.engine.restart(key)
    assert "clean_up" not in park.machines["b"].asked
    seen = park.engine.observe([key])[key]
    assert {task.phase for task in seen.tasks if task.node != "a"} == {TaskPhase.RUNNING}


def test_where_none_of_several_machines_answers_the_network_of_the_portal_is_down_and_nothing_is_lost(
    park: Park, lost: Any
):
    key = begun(park)
    park.engine.observe([key])
    lost("a", "b", "c")
    seen = park.engine.observe([key])[key]
    assert not seen.to_restart
    assert {task.phase for task in seen.tasks} == {TaskPhase.RUNNING}
    assert not park.engine.restart(key)


def test_an_error_that_a_machine_answered_is_no_silence(park: Park):
    key = begun(park)
    park.engine.observe([key])

    def full() -> Any:
        raise Unavailable("The disk is full.")

    for one in park.machines.values():
        one.answers["observe"] = full
    seen = park.engine.observe([key])[key]
    assert {task.phase for task in seen.tasks} == {TaskPhase.RUNNING}
    assert "The disk is full." in seen.message
    assert "not answered" not in seen.message


def test_a_machine_that_was_not_looked_at_for_long_is_away_from_now_on(park: Park, monkeypatch: pytest.MonkeyPatch):
    records, now = park.engine.records, time.time()
    clock = [now]
    monkeypatch.setattr("yardmaster.engines.hosts.records.time.time", lambda: clock[0])
    assert records.away_since("a") == now
    for _ in range(10):
        clock[0] += 60
        assert records.away_since("a") == now
    clock[0] += 3600  # the portal was stopped
    assert records.away_since("a") == clock[0]
    clock[0] -= 7200  # the portal's clock was put right
    assert records.away_since("a") == clock[0]


def test_a_machine_that_is_off_the_list_removes_its_part_when_it_is_listed_again(park: Park):
    key = begun(park)
    name = next(iter(park.orders()))
    park.list_all(name)
    park.engine.clean_up(key)
    assert park.engine.observe([key])[key] == ABSENT
    assert name in park.orders()
    park.list_all()
    park.engine.capacity()
    assert park.orders() == {}
    assert park.engine.records.placement(key) is None


def test_a_list_that_is_empty_for_a_moment_ends_nothing(park: Park):
    key = begun(park)
    before = park.orders()
    park.list_all("a", "b", "c")
    with pytest.raises(Unavailable):
        park.engine.submit(SPEC, key, ACCESS)
    assert park.engine.capacity().nodes == ()
    park.list_all()
    park.engine.submit(SPEC, key, ACCESS)
    assert park.orders() == before


def test_machines_that_were_silent_end_what_was_asked_for_all_of_it_and_the_earlier_end_counts(park: Park):
    key = begun(park)
    name = next(iter(park.orders()))
    park.engine.observe([key])
    park.machines[name].is_silent = True
    park.engine.release(key, [Role.PS])
    park.engine.release(key, [Role.WORKER])
    park.engine.stop(key, timedelta(seconds=1))
    park.engine.stop(key, timedelta(seconds=60))
    placement = park.engine.records.placement(key)
    assert placement is not None
    assert placement.pending[name] == {"release": {"roles": ["ps", "worker"]}, "stop": {"grace": 1.0}}
    park.machines[name].is_silent = False
    park.engine.observe([key])
    assert {"release", "stop"} <= set(park.machines[name].asked)
    placement = park.engine.records.placement(key)
    assert placement is not None
    assert placement.pending == {}


def test_a_machine_that_has_lost_what_it_was_told_is_told_again(park: Park):
    key = begun(park)
    some, other = list(park.orders())[:2]
    park.end(key.name, (Role.WORKER, 0), TaskPhase.SUCCEEDED)
    park.engine.observe([key])
    told = {name: dict(park.machines[name].heard) for name in (some, other)}
    assert any(told.values())
    for name in (some, other):
        park.machines[name].heard.clear()
    park.engine.observe([key])
    assert {name: dict(park.machines[name].heard) for name in (some, other)} == told


def test_a_folder_that_cannot_be_used_is_told_as_such(park: Park):
    park.engine.records._placements.parent.mkdir(parents=True, exist_ok=True)
    park.engine.records._placements.write_text("no folder")
    with pytest.raises((Unavailable, Misconfigured)) as error:
        park.engine.submit(SPEC, new_key(), ACCESS)
    assert isinstance(error.value, YardmasterError)


@pytest.mark.parametrize(
    "nonsense", [7, None, [1], [{}], {"a": "b"}, SpecUnreadable("x"), Misconfigured("x")], ids=repr
)
def test_nonsense_in_place_of_the_last_lines_is_what_callers_know(park: Park, nonsense: Any):
    def answer() -> Any:
        if isinstance(nonsense, Exception):
            raise nonsense
        return nonsense

    key = begun(park)
    name, tasks = next(iter(park.orders().items()))
    park.machines[name].answers["tail"] = answer
    with pytest.raises(Unavailable):
        park.engine.tail(key, *task_of(min(tasks)), 10)
    park.machines[name].answers["tail"] = lambda: ["one", "two", "three"]
    assert park.engine.tail(key, *task_of(min(tasks)), 2) == ["two", "three"]


def test_a_machine_has_news_of_its_own_runs_alone(park: Park):
    key = begun(park)
    elsewhere = next(name for name in "abc" if name not in park.orders())
    park.engine._keep_watching = lambda mine, over: None  # type: ignore[method-assign]
    changes = park.engine.changes()
    flood = [key_to_json(new_key()) for _ in range(20_000)]
    park.engine._hear(elsewhere, {"changed": [key_to_json(key), *flood[:10]]})
    park.engine._hear(next(iter(park.orders())), {"changed": [key_to_json(key)]})
    park.engine._hear(elsewhere, {"changed": flood})
    (waiting,) = park.engine._news
    assert waiting.qsize() <= 10_000
    assert next(changes) == key
    assert waiting.qsize() > 9_000  # of the machine that has it, and no earlier one


def test_the_words_of_an_agent_are_cut_and_storable():
    found = wire.error_in({"kind": "full", "message": "\0\ud800" + "x" * 100_000, "remedy": {"a": "\0"}}, "m")
    assert len(found.message) <= wire.LONGEST_WORDS + 3
    assert found.message.startswith("m: \ufffd?x")
    assert "\0" not in found.remedy


def test_a_server_that_only_ends_the_connection_says_little_of_it():
    """Before any key was accepted: what answers at the address may say anything."""
    reason = b"no\0" + b"x" * 20_000
    payload = b"\x01" + struct.pack(">II", 2, len(reason)) + reason + bytes(4)
    padding = 16 - (len(payload) + 5) % 8
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                head = struct.pack(">IB", len(payload) + 1 + padding, padding)
                connection.sendall(b"SSH-2.0-x\r\n" + head + payload + bytes(padding))
                connection.recv(1 << 16)
                time.sleep(0.2)

        threading.Thread(target=serve, daemon=True).start()
        host = Host("m", "127.0.0.1", "u", server.getsockname()[1])
        words = shown_keys([host])["m"]["unshown"]
    assert words.startswith("It does not answer: no\ufffdxxx")
    assert len(words) < wire.LONGEST_WORDS + 50
