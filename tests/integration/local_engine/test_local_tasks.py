"""What a task gets, what it may not take, and what is left of it: nothing."""

from __future__ import annotations

import json
import os
import stat
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
    new_key,
    spec_of,
    task_in,
    wait_until,
)
from tests.real.scene import processes_with
from yardmaster.engines.local import LocalEngine, live_runs, stop_all
from yardmaster.engines.local.__main__ import main as list_or_stop
from yardmaster.engines.supervision.processes import table
from yardmaster.errors import Misconfigured, SpecRejected, Unavailable
from yardmaster.ids import JobKey
from yardmaster.job.spec import Resources, Role, RoleSpec, Strategy
from yardmaster.lifecycle.phases import ABSENT, TaskPhase

ONE = {Role.WORKER: RoleSpec(1, SMALL)}
TELL_ENVIRONMENT = "import json, os; json.dump(dict(os.environ), open('environment.json', 'w'))"


def single(**changes):
    return spec_of(Strategy.SINGLE, roles=ONE, **changes)


def run_to_end(engine: LocalEngine, spec) -> tuple[JobKey, Path]:
    key = new_key()
    engine.submit(spec, key, ACCESS)
    wait_until(engine, key, all_ended)
    return key, engine.root / "runs" / key.name


# --- what it gets ----------------------------------------------------------------------------------------------------


def test_a_task_sees_no_secret_of_the_portal(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("YARDMASTER_SECRET_KEY", "the portal's own")
    monkeypatch.setenv("DATABASE_URL", "postgres://somebody:word@there/")
    monkeypatch.setenv("TZ", "UTC")
    engine = LocalEngine(tmp_path, command=[sys.executable, "-c", TELL_ENVIRONMENT])
    key, folder = run_to_end(engine, single())
    seen = json.loads((folder / "tasks/worker-0/work/environment.json").read_text())
    assert "YARDMASTER_SECRET_KEY" not in seen
    assert "DATABASE_URL" not in seen
    assert seen["TZ"] == "UTC"
    assert ACCESS.token not in json.dumps(seen)
    token = Path(seen["YARDMASTER_TOKEN_FILE"])
    assert token.read_text() == ACCESS.token
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    engine.clean_up(key)


def test_a_task_is_told_who_it_is_and_where_its_peers_are(tmp_path: Path):
    engine = LocalEngine(tmp_path, command=[sys.executable, "-c", TELL_ENVIRONMENT])
    roles = {Role.CHIEF: RoleSpec(1, SMALL), Role.WORKER: RoleSpec(2, Resources(1.5, 128 << 20)),
             Role.PS: RoleSpec(1, SMALL), Role.EVALUATOR: RoleSpec(1, SMALL)}  # fmt: skip
    key, folder = run_to_end(engine, spec_of(Strategy.PARAMETER_SERVER, roles=roles))
    seen = json.loads((folder / "tasks/worker-1/work/environment.json").read_text())
    cluster = json.loads(seen["YARDMASTER_CLUSTER"])
    assert {role: len(addresses) for role, addresses in cluster.items()} == {"chief": 1, "worker": 2, "ps": 1}
    addresses = [address for some in cluster.values() for address in some]
    assert len(set(addresses)) == 4
    assert all(address.startswith("127.0.0.1:") for address in addresses)
    assert (seen["YARDMASTER_ROLE"], seen["YARDMASTER_INDEX"], seen["YARDMASTER_RESTART"]) == ("worker", "1", "0")
    assert seen["YARDMASTER_WORK_DIR"] == str(folder / "tasks/worker-1/work")
    assert Path(seen["YARDMASTER_LOG_DIR"]).is_dir()
    assert Path(seen["YARDMASTER_CACHE_DIR"]).is_dir()
    assert seen["YARDMASTER_URL"] == ACCESS.portal_url
    assert (seen["OMP_NUM_THREADS"], seen["CUDA_VISIBLE_DEVICES"]) == ("2", "-1")
    engine.clean_up(key)


def test_a_single_task_has_no_peers_and_no_port(tmp_path: Path):
    engine = LocalEngine(tmp_path, command=[sys.executable, "-c", TELL_ENVIRONMENT])
    key, folder = run_to_end(engine, single())
    seen = json.loads((folder / "tasks/worker-0/work/environment.json").read_text())
    assert seen["YARDMASTER_CLUSTER"] == "{}"
    engine.clean_up(key)


def test_each_task_gets_gpus_that_no_other_has_and_gives_them_back_when_it_ends(tmp_path: Path):
    local = LocalHarness(tmp_path, gpus=["0", "1", "2"])
    two = spec_of(roles={Role.WORKER: RoleSpec(1, Resources(0.5, 128 << 20, gpus=2)), Role.PS: RoleSpec(1, SMALL)})
    first = local.submit(two)
    local.let_begin(first)
    with pytest.raises(Unavailable, match="2 GPUs"):
        local.engine.submit(two, local.new_key(), ACCESS)
    local.let_end(first, Role.WORKER, 0, 0)
    wait_until(local.engine, first, has_phase(Role.WORKER, 0, TaskPhase.SUCCEEDED))
    local.submit(two)
    local.close()


def test_more_gpus_than_the_machine_has_and_unknown_resources_are_refused_by_name(tmp_path: Path):
    engine = LocalEngine(tmp_path, gpus=[])
    asked = Resources(1, 128 << 20, gpus=1, extended={"rdma/hca": 1})
    spec = spec_of(Strategy.SINGLE, roles={Role.WORKER: RoleSpec(1, asked)})
    with pytest.raises(SpecRejected) as refused:
        engine.submit(spec, new_key(), ACCESS)
    assert [problem.field for problem in refused.value.problems] == ["roles.worker.extended.rdma/hca", "roles"]
    assert not (tmp_path / "runs").exists()


# --- what it may not take --------------------------------------------------------------------------------------------


def test_a_task_that_takes_too_much_memory_is_killed_and_says_so_F_kubeflow_trainer_1749(local: LocalHarness):
    key = local.new_key()
    local.tell(key, Role.WORKER, 0, "eat", str(400 << 20))
    local.engine.submit(spec_of(retries=3), key, ACCESS)
    seen = wait_until(local.engine, key, has_phase(Role.WORKER, 0, TaskPhase.FAILED))
    task = task_in(seen, Role.WORKER, 0)
    assert (task.reason, task.exit_code, task.restarts) == ("OutOfMemory", 137, 0)
    assert task.peak_memory > 256 << 20
    assert "256 MiB" in task.message
    assert task_in(seen, Role.WORKER, 1).phase is TaskPhase.RUNNING


@pytest.mark.parametrize("children", ["os.fork()", "os.fork(), os.fork()"])
def test_forked_children_share_their_memory_in_the_account(tmp_path: Path, children: str):
    """Also where their quick sum is still below the limit: the peak that is shown is what they took."""
    script = f"import os, time\nheld = b'x' * (110 << 20)\nforked = {children}\ntime.sleep(2.5)"
    engine = LocalEngine(tmp_path, command=[sys.executable, "-S", "-c", script])
    key = new_key()
    engine.submit(single(), key, ACCESS)
    seen = wait_until(engine, key, all_ended)
    task = task_in(seen, Role.WORKER, 0)
    assert task.phase is TaskPhase.SUCCEEDED
    assert 100 << 20 < task.peak_memory < 160 << 20
    engine.clean_up(key)


def test_what_a_task_itself_prints_is_kept_in_part(tmp_path: Path):
    script = (
        "import sys, time\nfor n in range(300000): print('line', n)\nsys.stdout.flush(); time.sleep(1.6); print('last')"
    )
    engine = LocalEngine(tmp_path, command=[sys.executable, "-S", "-c", script])
    key, folder = run_to_end(engine, single())
    size = sum(path.stat().st_size for path in (folder / "tasks/worker-0").glob("output*"))
    assert size < 3 << 20
    assert engine.tail(key, Role.WORKER, 0, 2) == ["line 299999", "last"]
    assert engine.tail(key, Role.WORKER, 0, 0) == []
    engine.clean_up(key)


# --- how it ends and begins anew -------------------------------------------------------------------------------------


def test_the_runners_note_gives_reason_and_message(local: LocalHarness):
    key = local.submit()
    note = {"exit_code": 90, "reason": "CorruptInput", "message": "a.tfrecord"}
    local.tell(key, Role.WORKER, 0, "note", json.dumps(note))
    local.let_end(key, Role.WORKER, 0, 90)
    seen = wait_until(local.engine, key, has_phase(Role.WORKER, 0, TaskPhase.FAILED))
    task = task_in(seen, Role.WORKER, 0)
    assert (task.exit_code, task.reason, task.message) == (90, "CorruptInput", "a.tfrecord")


def test_a_death_by_signal_shows_as_128_and_the_signal(local: LocalHarness):
    key = local.submit()
    local.let_begin(key)
    os.kill(local.starts(key, Role.WORKER, 0)[0], 11)
    seen = wait_until(local.engine, key, has_phase(Role.WORKER, 0, TaskPhase.FAILED))
    assert (task_in(seen, Role.WORKER, 0).exit_code, task_in(seen, Role.WORKER, 0).reason) == (139, "Killed")


def test_a_command_that_cannot_be_started_says_why(tmp_path: Path):
    engine = LocalEngine(tmp_path, command=["/no/such/program"])
    key = new_key()
    engine.submit(single(retries=0), key, ACCESS)
    seen = wait_until(engine, key, all_ended)
    task = task_in(seen, Role.WORKER, 0)
    assert task.reason == "StartFailed"
    assert "/no/such/program" in task.message
    engine.clean_up(key)


def test_a_lost_worker_is_restarted_alone_in_the_same_folder(local: LocalHarness):
    key = local.submit(spec_of(retries=2))
    local.let_begin(key)
    kept = local.root / "runs" / key.name / "tasks/worker-1/work/kept"
    kept.write_text("by the first start")
    local.let_end(key, Role.WORKER, 1, 3)
    wait_until(local.engine, key, lambda seen: task_in(seen, Role.WORKER, 1).restarts == 1)
    local.untell(key, Role.WORKER, 1, "exit")
    seen = wait_until(local.engine, key, has_phase(Role.WORKER, 1, TaskPhase.RUNNING))
    assert task_in(seen, Role.WORKER, 0).restarts == 0
    local.let_begin(key)
    assert kept.read_text() == "by the first start"
    assert len(local.starts(key, Role.WORKER, 0)) == 1


def test_a_lost_member_of_a_collective_restarts_the_whole_cluster(local: LocalHarness):
    spec = spec_of(Strategy.MULTI_WORKER_MIRRORED, roles={Role.WORKER: RoleSpec(3, SMALL)}, retries=1)
    key = local.submit(spec)
    local.let_begin(key)
    before = [local.starts(key, *task)[0] for task in spec.tasks()]
    os.kill(before[1], 9)
    wait_until(local.engine, key, lambda seen: all(task.restarts == 1 for task in seen.tasks))
    seen = wait_until(local.engine, key, lambda seen: all(task.phase is TaskPhase.RUNNING for task in seen.tasks))
    assert [task.restarts for task in seen.tasks] == [1, 1, 1]
    assert not {row.pid for row in table().values() if row.is_alive} & set(before)
    # That was the job's only restart: the next loss is its failure.
    local.let_begin(key)
    local.let_end(key, Role.WORKER, 0, 5)
    seen = wait_until(local.engine, key, has_phase(Role.WORKER, 0, TaskPhase.FAILED))
    assert task_in(seen, Role.WORKER, 0).reason == "RestartsSpent"


# --- what is left of it ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["fork", "escape"])
def test_a_script_that_forks_and_lingers_leaves_no_process_when_it_ends(local: LocalHarness, word: str):
    key = local.new_key()
    local.tell(key, Role.WORKER, 0, word)
    local.engine.submit(single(), key, ACCESS)
    local.let_begin(key)
    sign = str(local.orders / f"{key.name}.worker-0") if word == "escape" else "no command line of its own"
    deadline = time.monotonic() + PATIENCE
    while word == "escape" and not processes_with(sign):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    (pid,) = local.starts(key, Role.WORKER, 0)
    local.let_end(key, Role.WORKER, 0, 0)
    wait_until(local.engine, key, all_ended)
    deadline = time.monotonic() + PATIENCE
    while processes_with(sign) or any(row.session == pid and row.is_alive for row in table().values()):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_tidy_leaves_no_process_no_port_and_no_file(local: LocalHarness):
    key = local.new_key()
    for task in spec_of().tasks():
        local.make_stubborn(key, *task)
        local.tell(key, *task, "fork")
    local.engine.submit(spec_of(), key, ACCESS)
    local.let_begin(key)
    sessions = {local.starts(key, *task)[0] for task in spec_of().tasks()}
    local.engine.clean_up(key)
    assert not any(row.session in sessions and row.is_alive for row in table().values())
    assert list((local.root / "runs").iterdir()) == []
    assert [path.name for path in (local.root / "ports").iterdir()] == [".lock"]


def test_tidy_of_a_run_that_was_removed_by_half_removes_the_rest(local: LocalHarness):
    key = local.submit()
    local.let_begin(key)
    (local.root / "runs" / key.name / "run.json").unlink()
    assert local.engine.observe([key])[key] == ABSENT
    local.engine.clean_up(key)
    assert list((local.root / "runs").iterdir()) == []


def test_a_draft_whose_maker_was_killed_is_removed_and_a_living_ones_is_not(local: LocalHarness):
    key, runs = local.new_key(), local.root / "runs"
    mine = f".{key.name}.{os.getpid()}"
    stat_line = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    (runs / f"{mine}.{stat_line[19]}.{boot}.aa").mkdir(parents=True)
    (runs / f"{mine}.1.{boot}.bb").mkdir()
    local.engine.clean_up(key)
    assert [path.name.rsplit(".", 1)[1] for path in runs.iterdir()] == ["aa"]


def test_who_stops_the_portal_is_told_what_goes_on_and_can_end_it(local: LocalHarness):
    assert live_runs(local.root) == []
    key = local.submit(spec_of(name="digits"))
    ended = local.submit(single())
    local.let_end(ended, Role.WORKER, 0, 0)
    wait_until(local.engine, ended, all_ended)
    (run,) = live_runs(local.root)
    assert (run.name, run.key, run.tasks) == ("digits", key, ("worker-0", "worker-1", "ps-0"))
    assert [one.key for one in stop_all(local.root, timedelta(seconds=0.5))] == [key]
    wait_until(local.engine, key, all_ended)
    deadline = time.monotonic() + PATIENCE
    while live_runs(local.root):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_root_that_cannot_be_used_names_the_option(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Misconfigured, match="cannot use") as wrong:
        LocalEngine(tmp_path / "file").submit(single(), new_key(), ACCESS)
    assert "root" in wrong.value.remedy


def test_the_command_line_lists_what_is_alive_and_ends_it(local: LocalHarness, capsys):
    key = local.submit(spec_of(name="digits"))
    assert list_or_stop([str(local.root)]) == 0
    assert capsys.readouterr().out == f"{key.name}  digits  worker-0 worker-1 ps-0\n"
    assert list_or_stop([str(local.root), "--stop", "--grace", "0.5"]) == 0
    assert capsys.readouterr().out.endswith("1 of 1 stopped\n")
    assert all_ended(local.engine.observe([key])[key])
