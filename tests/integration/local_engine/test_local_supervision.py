"""The supervisor is killed, the machine restarts: nothing is doubled, nothing is lost, nothing sticks."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

from tests.contract.engine_harness import (
    ACCESS,
    PATIENCE,
    SMALL,
    LocalHarness,
    all_ended,
    has_phase,
    spec_of,
    task_in,
    wait_for,
    wait_until,
)
from tests.real.scene import processes_with
from yardmaster.engines.supervision.folder import RunFolder
from yardmaster.engines.supervision.processes import identify
from yardmaster.ids import JobKey
from yardmaster.job.spec import Role, RoleSpec, Strategy
from yardmaster.lifecycle.phases import TaskPhase


def folder_of(local: LocalHarness, key: JobKey) -> RunFolder:
    return RunFolder(local.root / "runs" / key.name)


def kill_supervisor(local: LocalHarness, key: JobKey) -> bool:
    pid = folder_of(local, key).supervisor()
    if pid is None:
        return False
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE
    while folder_of(local, key).supervisor() == pid:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return True


def living(pids: list[int]) -> list[int]:
    found = []
    for pid in pids:
        process = identify(pid)
        if process is not None and process.is_alive():
            found.append(pid)
    return found


def test_a_supervisor_is_nobodys_child_and_has_a_session_of_its_own(local: LocalHarness):
    key = local.submit()
    pid = folder_of(local, key).supervisor()
    assert pid is not None
    assert os.getsid(pid) != os.getsid(0)
    parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    assert parent != os.getpid()


def test_a_run_goes_on_when_who_submitted_it_is_killed(local: LocalHarness):
    key = local.new_key()
    script = f"""
import os, signal, uuid
from tests.contract.engine_harness import ACCESS, STAND_IN, spec_of
from yardmaster.engines.local import LocalEngine
from yardmaster.ids import JobKey
command = [{sys.executable!r}, "-S", str(STAND_IN)]
engine = LocalEngine({str(local.root)!r}, command=command, pass_environment=["STAND_IN"])
key = JobKey(uuid.UUID({str(key.namespace_id)!r}), uuid.UUID({str(key.job_id)!r}), 1)
engine.submit(spec_of(), key, ACCESS)
os.killpg(0, signal.SIGKILL)
"""
    subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": "platform:."},
        start_new_session=True,
        check=False,
    )
    local.let_begin(key)
    local.let_end(key, Role.WORKER, 0, 0)
    wait_until(local.engine, key, has_phase(Role.WORKER, 0, TaskPhase.SUCCEEDED))


def test_a_supervisor_ends_when_nothing_is_left_to_run(local: LocalHarness):
    key = local.submit()
    for task in spec_of().tasks():
        local.let_end(key, *task, 0)
    wait_until(local.engine, key, all_ended)
    deadline = time.monotonic() + PATIENCE
    while folder_of(local, key).supervisor() is not None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    local.engine.observe([key])
    assert folder_of(local, key).supervisor() is None


def test_tasks_run_on_when_their_supervisor_is_killed_and_the_next_one_sees_their_end(local: LocalHarness):
    key = local.submit()
    local.let_begin(key)
    before = local.starts(key, Role.WORKER, 0)
    assert kill_supervisor(local, key)
    local.tell(key, Role.WORKER, 0, "note", json.dumps({"exit_code": 0, "reason": "", "message": "well done"}))
    assert task_in(local.engine.observe([key])[key], Role.WORKER, 0).phase is TaskPhase.RUNNING
    assert folder_of(local, key).supervisor() is not None
    local.let_end(key, Role.WORKER, 0, 0)
    seen = wait_until(local.engine, key, has_phase(Role.WORKER, 0, TaskPhase.SUCCEEDED))
    assert task_in(seen, Role.WORKER, 0).message == "well done"
    assert local.starts(key, Role.WORKER, 0) == before


def test_an_end_that_nobody_saw_and_nobody_noted_is_lost_and_the_task_is_restarted(local: LocalHarness):
    key = local.submit(spec_of(retries=1))
    local.let_begin(key)
    first = local.starts(key, Role.WORKER, 0)
    assert kill_supervisor(local, key)
    os.kill(first[0], signal.SIGKILL)
    seen = wait_until(local.engine, key, lambda seen: task_in(seen, Role.WORKER, 0).restarts == 1)
    assert task_in(seen, Role.WORKER, 0).reason == "Lost"
    wait_until(local.engine, key, has_phase(Role.WORKER, 0, TaskPhase.RUNNING))
    assert task_in(local.engine.observe([key])[key], Role.WORKER, 1).restarts == 0


def test_an_end_that_nobody_saw_without_restarts_left_is_lost_for_good(local: LocalHarness):
    key = local.submit(spec_of(retries=0))
    local.let_begin(key)
    assert kill_supervisor(local, key)
    os.kill(local.starts(key, Role.PS, 0)[0], signal.SIGKILL)
    seen = wait_until(local.engine, key, has_phase(Role.PS, 0, TaskPhase.FAILED))
    assert (task_in(seen, Role.PS, 0).reason, task_in(seen, Role.PS, 0).exit_code) == ("Lost", None)


def test_an_end_before_the_kill_is_taken_from_the_note_and_not_run_again(local: LocalHarness):
    key = local.submit(spec_of(retries=3))
    local.let_begin(key)
    os.kill(folder_of(local, key).supervisor(), signal.SIGSTOP)
    local.tell(key, Role.WORKER, 0, "note", json.dumps({"exit_code": 0}))
    local.let_end(key, Role.WORKER, 0, 0)
    (pid,) = local.starts(key, Role.WORKER, 0)
    while living([pid]):
        time.sleep(0.01)
    kill_supervisor(local, key)
    seen = wait_until(local.engine, key, has_phase(Role.WORKER, 0, TaskPhase.SUCCEEDED))
    assert task_in(seen, Role.WORKER, 0).restarts == 0
    assert local.starts(key, Role.WORKER, 0) == [pid]


def test_a_stop_of_a_run_whose_supervisor_was_killed_is_carried_out(local: LocalHarness):
    key = local.new_key()
    local.make_stubborn(key, Role.PS, 0)
    local.engine.submit(spec_of(), key, ACCESS)
    local.let_begin(key)
    kill_supervisor(local, key)
    local.engine.stop(key, timedelta(seconds=0.2))
    seen = wait_until(local.engine, key, all_ended)
    assert {task.phase for task in seen.tasks} == {TaskPhase.RELEASED}


def test_a_stop_is_not_forgotten_when_the_supervisor_is_killed_in_its_grace(local: LocalHarness):
    key = local.new_key()
    local.make_stubborn(key, Role.PS, 0)
    local.engine.submit(spec_of(), key, ACCESS)
    local.let_begin(key)
    local.engine.stop(key, timedelta(seconds=0.5))
    kill_supervisor(local, key)
    wait_until(local.engine, key, all_ended)
    assert living(local.starts(key, Role.PS, 0)) == []


def test_after_a_restart_of_the_machine_tasks_begin_anew(local: LocalHarness):
    key = local.submit(spec_of(retries=5))
    local.let_begin(key)
    kill_supervisor(local, key)
    folder = folder_of(local, key)
    for role, index in spec_of().tasks():
        os.kill(local.starts(key, role, index)[0], signal.SIGKILL)
        path = folder.task(role, index) / "state.json"
        data = json.loads(path.read_text())
        data["leader"] = [os.getpid(), data["leader"][1], "another-boot"]  # another process has the pid now
        path.write_text(json.dumps(data))
    seen = wait_until(local.engine, key, lambda seen: all(task.restarts == 1 for task in seen.tasks))
    assert {task.reason for task in seen.tasks} <= {"Lost", ""}
    local.let_begin(key)


def test_a_state_file_torn_by_a_power_cut_does_not_stop_the_run(local: LocalHarness):
    key = local.submit(spec_of(retries=5))
    local.let_begin(key)
    kill_supervisor(local, key)
    (folder_of(local, key).task(Role.WORKER, 0) / "state.json").write_bytes(b"")
    (first,) = local.starts(key, Role.WORKER, 0)
    wait_until(local.engine, key, lambda seen: task_in(seen, Role.WORKER, 0).restarts == 1)
    local.let_begin(key)
    assert living([first]) == []
    assert len(living(local.starts(key, Role.WORKER, 0))) == 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_killing_the_supervisor_at_random_moments_doubles_and_sticks_nothing(local: LocalHarness, seed: int):
    chance = random.Random(seed)
    spec = spec_of(retries=100)
    key = local.submit(spec)
    for _ in range(8):
        time.sleep(chance.uniform(0, 0.15))
        kill_supervisor(local, key)
        if chance.random() < 0.3:
            for pid in living(local.starts(key, *chance.choice(spec.tasks()))):
                os.kill(pid, signal.SIGKILL)
        local.engine.observe([key])
        for task in spec.tasks():
            assert len(living(local.starts(key, *task))) <= 1
    for task in spec.tasks():
        local.tell(key, *task, "note", json.dumps({"exit_code": 0}))
        local.let_end(key, *task, 0)
    seen = wait_until(local.engine, key, all_ended, patience=40)
    assert {task.phase for task in seen.tasks} == {TaskPhase.SUCCEEDED}
    assert [pid for task in spec.tasks() for pid in living(local.starts(key, *task))] == []


@pytest.mark.slow
def test_many_observers_start_one_supervisor(local: LocalHarness):
    key = local.submit(spec_of(strategy=Strategy.BETWEEN_GRAPH))
    local.let_begin(key)
    kill_supervisor(local, key)
    script = f"""
import uuid
from yardmaster.engines.local import LocalEngine
from yardmaster.ids import JobKey
key = JobKey(uuid.UUID({str(key.namespace_id)!r}), uuid.UUID({str(key.job_id)!r}), 1)
LocalEngine({str(local.root)!r}).observe([key])
"""
    watchers = [
        subprocess.Popen([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": "platform:."})
        for _ in range(4)
    ]
    assert [watcher.wait() for watcher in watchers] == [0, 0, 0, 0]
    wait_for(lambda: len(processes_with(str(folder_of(local, key).path))) == 1)  # who came too late ends by itself


def test_a_cluster_restart_is_finished_by_the_next_supervisor(local: LocalHarness):
    spec = spec_of(
        Strategy.MULTI_WORKER_MIRRORED,
        roles={Role.WORKER: RoleSpec(2, SMALL)},
        retries=9,
        grace_period=timedelta(seconds=2),
    )
    key = local.new_key()
    local.make_stubborn(key, Role.WORKER, 1)
    local.engine.submit(spec, key, ACCESS)
    local.let_begin(key)
    os.kill(local.starts(key, Role.WORKER, 0)[0], signal.SIGKILL)
    wait_until(local.engine, key, lambda seen: task_in(seen, Role.WORKER, 0).restarts == 1)
    kill_supervisor(local, key)
    wait_until(local.engine, key, lambda seen: all(task.restarts == 1 for task in seen.tasks))
    local.let_begin(key)
    assert len(living([pid for task in spec.tasks() for pid in local.starts(key, *task)])) == 2
