"""The files of a run: read as they were written, and never seen by half."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest

from tests.contract.engine_harness import new_key, spec_of
from yardmaster.engines.supervision.facts import Facts, Order, Others, Wishes, fresh
from yardmaster.engines.supervision.folder import RunFolder, read_json, write_json
from yardmaster.engines.supervision.processes import ProcessId
from yardmaster.engines.supervision.runs import Runs
from yardmaster.errors import SpecUnreadable
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import TaskPhase

HOLD_THE_LOCK = """
import sys
from pathlib import Path
from yardmaster.engines.supervision.folder import RunFolder
held = RunFolder(Path(sys.argv[1])).take_lock()
print("held" if held is not None else "refused", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def order() -> Order:
    ports = {"worker-1": 2, "worker-0": 1, "ps-0": 3}
    return Order(new_key(), spec_of(), "http://x", ("run", "it"), {"A": "b"}, {"worker-0": ("1",)}, ports, "/group")


@pytest.fixture
def folder(tmp_path: Path, order: Order) -> RunFolder:
    made = RunFolder(tmp_path / "run")
    made.make(order, "a-token")
    return made


def holder_of(folder: RunFolder) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLD_THE_LOCK, str(folder.path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": "platform"},
    )  # fmt: skip


def test_an_order_is_read_as_it_was_written(folder: RunFolder, order: Order):
    assert folder.read_order() == order
    assert order.cluster() == {"worker": ["127.0.0.1:1", "127.0.0.1:2"], "ps": ["127.0.0.1:3"]}


def test_facts_are_read_as_they_were_written(folder: RunFolder):
    now = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
    facts = Facts(fresh(Role.WORKER, 1).state, ProcessId(1, 2, "boot"), 3.5, True, 2).with_state(
        phase=TaskPhase.FAILED, reason="Killed", message="m", exit_code=137, restarts=2, started_at=now,
        finished_at=now, peak_memory=5,
    )  # fmt: skip
    folder.write_facts(facts)
    assert folder.read_facts(Role.WORKER, 1) == facts
    assert folder.read_facts(Role.WORKER, 0) == fresh(Role.WORKER, 0)


def test_tasks_come_in_the_order_of_the_spec(folder: RunFolder, order: Order):
    assert folder.tasks() == order.spec.tasks()


def test_what_a_script_puts_among_the_tasks_is_passed_over(folder: RunFolder, order: Order):
    for name in ("evil", "worker-x", "nobody-1"):
        (folder.path / "tasks" / name).mkdir()
    assert folder.tasks() == order.spec.tasks()
    known = fresh(Role.WORKER, 0).to_json()
    wrong = [json.dumps(known | one) for one in ({"leader": [1]}, {"start_at": 10**400}, {"started_at": "2026-01-01"})]
    for content in ("{}", '{"phase": "NO SUCH"}', '{"phase": "RUNNING", "reason": 5}', *wrong):
        (folder.task(Role.WORKER, 0) / "state.json").write_text(content)
        assert folder.read_facts(Role.WORKER, 0) == fresh(Role.WORKER, 0)
    for spent in ("many", float("inf"), [], None):
        (folder.path / "others.json").write_text(json.dumps(Others().to_json() | {"spent": spent}))
        assert folder.read_others() == Others()


@pytest.mark.parametrize("wrong", [{"key": []}, {"key": [str(UUID(int=1)), str(UUID(int=2)), float("inf")]},
                                   {"elsewhere": 7}])  # fmt: skip
def test_an_order_that_a_script_damaged_is_unreadable_and_nothing_else(folder: RunFolder, order: Order, wrong: dict):
    folder.order_file.write_text(json.dumps(order.to_json() | wrong))
    with pytest.raises(SpecUnreadable):
        folder.read_order()


def test_wishes_add_up_and_the_earlier_moment_counts(folder: RunFolder):
    folder.hasten(frozenset({Role.PS}), 50.0)
    folder.hasten(frozenset({Role.PS, Role.WORKER}), 60.0)
    assert folder.read_wishes() == Wishes({Role.PS: 50.0, Role.WORKER: 60.0})
    folder.hasten(frozenset({Role.WORKER}), 10.0)
    assert folder.read_wishes().kill_at[Role.WORKER] == 10.0
    assert (folder.path / "wanted").stat().st_size == 4096


def test_a_write_that_fails_leaves_the_old_file_and_no_scrap(tmp_path: Path):
    path = tmp_path / "file.json"
    write_json(path, {"a": 1})
    with pytest.raises(TypeError):
        write_json(path, {"a": object()})
    assert read_json(path) == {"a": 1}
    assert os.listdir(tmp_path) == ["file.json"]


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xfe"])
def test_what_is_no_object_reads_as_nothing(tmp_path: Path, content: bytes):
    (tmp_path / "file.json").write_bytes(content)
    assert read_json(tmp_path / "file.json") is None
    assert read_json(tmp_path / "not there.json") is None


def test_one_holds_the_lock_and_all_can_see_who_without_disturbing(folder: RunFolder):
    assert folder.supervisor() is None
    with holder_of(folder) as first:
        assert first.stdout.readline() == "held\n"
        assert [folder.supervisor() for _ in range(3)] == [first.pid] * 3
        assert folder.take_lock() is None
        with holder_of(folder) as second:
            assert second.stdout.readline() == "refused\n"
            second.stdin.close()
        first.kill()
    assert folder.supervisor() is None


def test_the_lock_of_a_folder_that_was_replaced_is_not_held(folder: RunFolder, order: Order):
    os.rename(folder.path, folder.path.with_name("old"))
    assert folder.take_lock() is None
    folder.make(order, "another")
    held = folder.take_lock()
    assert held is not None
    os.close(held)


def test_waking_nobody_is_no_error(folder: RunFolder):
    folder.wake()
    ear = folder.listen()
    folder.wake()
    assert os.read(ear, 10) == b"!"
    os.close(ear)
    RunFolder(folder.path / "nowhere").wake()


def test_a_nudge_changes_the_tasks_file_and_nothing_that_it_leads_to(folder: RunFolder, tmp_path: Path):
    file = folder.nudge_file(Role.WORKER, 0)
    folder.nudge(Role.WORKER, 0)
    os.utime(file, (1, 1))
    folder.nudge(Role.WORKER, 0)
    assert file.stat().st_mtime > 1
    file.unlink()
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        folder.nudge(Role.WORKER, 0)
    assert not (tmp_path / "elsewhere").exists()
    folder.nudge(Role.CHIEF, 7)


def test_what_a_script_puts_in_place_of_its_output_is_neither_waited_for_nor_read_whole(tmp_path: Path, order: Order):
    runs = Runs(tmp_path)
    made = runs.folder(order.key)
    made.path.parent.mkdir(parents=True)
    made.make(order, "a-token")
    output = made.output(Role.PS, 0)
    output.write_text("one\ntwo\n")
    assert runs.tail(order.key, Role.PS, 0, 10) == ["one", "two"]
    output.unlink()
    os.mkfifo(output)
    assert runs.tail(order.key, Role.PS, 0, 10) == []
    output.unlink()
    output.symlink_to(made.token_file)
    assert runs.tail(order.key, Role.PS, 0, 10) == []
    output.unlink()
    with output.open("wb") as file:
        file.truncate(1 << 40)
        file.seek(0, os.SEEK_END)
        file.write(b"\nlast")
    assert runs.tail(order.key, Role.PS, 0, 1) == ["last"]
