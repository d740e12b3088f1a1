"""A full disk, a crowded machine, a start that fails: a clear error, and nothing half-made is left."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.contract.engine_harness import (
    ACCESS,
    PATIENCE,
    LocalHarness,
    all_ended,
    has_phase,
    new_key,
    spec_of,
    wait_for,
    wait_until,
)
from yardmaster.engines.local import LocalEngine
from yardmaster.engines.supervision.folder import RunFolder
from yardmaster.errors import Misconfigured, Unavailable
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import ABSENT, TaskPhase


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 1 MiB, where this user may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(place)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("no right to mount a small disk")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(place: Path) -> None:
    """Take every last byte."""
    with open(place / "filler", "ab", buffering=0) as file:
        for size in (65536, 4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * size)
    assert os.statvfs(place).f_bavail == 0


def test_a_full_disk_at_submit_is_unavailable_and_leaves_nothing(small_disk: Path):
    local = LocalHarness(small_disk)
    first = local.submit()
    local.let_begin(first)
    fill(small_disk)
    key = local.new_key()
    with pytest.raises(Unavailable, match="is full") as wrong:
        local.engine.submit(spec_of(), key, ACCESS)
    assert "Free space" in wrong.value.remedy
    assert local.engine.observe([key])[key] == ABSENT
    assert [path.name for path in (local.root / "runs").iterdir()] == [first.name]
    held = [path for path in (local.root / "ports").iterdir() if path.is_symlink()]
    assert len(held) == 3, "only the first run's"
    local.close()


def test_a_run_can_be_stopped_and_removed_on_a_full_disk(small_disk: Path):
    local = LocalHarness(small_disk)
    key = local.submit()
    local.let_begin(key)
    fill(small_disk)
    pids = [local.starts(key, *task)[0] for task in spec_of().tasks()]
    local.engine.stop(key, timedelta(seconds=0.3))
    deadline = time.monotonic() + PATIENCE
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    local.engine.clean_up(key)
    assert list((local.root / "runs").iterdir()) == []
    local.close()


def test_an_end_that_could_not_be_written_is_written_when_there_is_room_again(small_disk: Path):
    local = LocalHarness(small_disk)
    key = local.submit()
    local.let_begin(key)
    fill(small_disk)
    os.kill(local.starts(key, Role.WORKER, 0)[0], 9)
    time.sleep(0.3)
    assert RunFolder(local.root / "runs" / key.name).supervisor() is not None
    (small_disk / "filler").unlink()
    wait_until(local.engine, key, has_phase(Role.WORKER, 0, TaskPhase.FAILED))
    local.close()


def test_two_jobs_that_start_at_once_in_two_processes_never_share_a_port(tmp_path: Path):
    first_port = 24_000
    script = f"""
from tests.contract.engine_harness import ACCESS, new_key, spec_of
from yardmaster.engines.local import LocalEngine
engine = LocalEngine({str(tmp_path)!r}, command=["/bin/sleep", "600"], port_range=[{first_port}, {first_port + 40}])
for _ in range(3):
    engine.submit(spec_of(), new_key(), ACCESS)
"""
    makers = [subprocess.Popen([sys.executable, "-c", script], env=_environment()) for _ in range(3)]
    assert [maker.wait() for maker in makers] == [0, 0, 0]
    claims = [path.name for path in (tmp_path / "ports").iterdir() if path.is_symlink()]
    assert len(claims) == 27
    harness = LocalHarness(tmp_path / "orders")
    harness.root = harness.engine.root = tmp_path
    harness.engine = LocalEngine(tmp_path)
    harness.close()
    assert [path.name for path in (tmp_path / "ports").iterdir()] == [".lock"]


def test_a_port_that_somebody_else_has_is_not_given_out(tmp_path: Path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        local = LocalHarness(tmp_path, port_range=[taken, taken])
        with pytest.raises(Unavailable, match="free ports"):
            local.submit()
        assert not any(path.is_symlink() for path in (local.root / "ports").iterdir())
        local.close()


def test_a_supervisor_that_cannot_begin_is_unavailable_and_says_why(tmp_path: Path, monkeypatch):
    engine = LocalEngine(tmp_path, python=sys.executable, open_servers=True)
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    key = new_key()
    with pytest.raises(Unavailable, match="/no/such/python"):
        engine.submit(spec_of(), key, ACCESS)
    seen = engine.observe([key])[key]
    assert "/no/such/python" in seen.message, "what is tried again later says why it waits"
    engine.clean_up(key)


def test_without_a_python_for_tasks_nothing_begins_and_the_remedy_is_named(tmp_path: Path):
    engine = LocalEngine(tmp_path, python=str(tmp_path / ".venv-tasks/bin/python"))
    for ask in (engine.preview, lambda spec, key: engine.submit(spec, key, ACCESS)):
        with pytest.raises(Misconfigured, match=r"no Python for tasks at .*/.venv-tasks/bin/python") as caught:
            ask(spec_of(), new_key())
        assert "make setup" in caught.value.remedy
    assert not (tmp_path / "runs").exists()


def test_a_supervisor_loads_the_standard_library_and_the_pure_core_only():
    """It is started for every job: what it loads is waited for."""
    script = "import sys, yardmaster.engines.supervision.supervisor as s; print(sorted(sys.modules))"
    out = subprocess.run(
        [sys.executable, "-S", "-c", script], env={"PYTHONPATH": "platform"}, capture_output=True, text=True, check=True
    ).stdout
    for heavy in ("subprocess", "logging", "asyncio", "psutil", "json.tool", "yardmaster.engines.local.engine"):
        assert f"'{heavy}'" not in out


def test_a_supervisor_that_watches_costs_little(local: LocalHarness):
    key = local.submit()
    local.let_begin(key)
    pid = RunFolder(local.root / "runs" / key.name).supervisor()
    before, began = _processor_seconds(pid), time.monotonic()
    time.sleep(3)
    share = (_processor_seconds(pid) - before) / (time.monotonic() - began)
    assert share < 0.03
    resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    assert resident < 32 << 20
    for task in spec_of().tasks():
        local.let_end(key, *task, 0)
    wait_until(local.engine, key, all_ended)


def _processor_seconds(pid: int | None) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": "platform:."}


@pytest.mark.parametrize("supervisor", ["alive", "dead"])
@pytest.mark.parametrize("order", ["unreadable", "of tightened rules"])
def test_a_run_ends_and_is_removed_whatever_its_stored_order_says(local: LocalHarness, order: str, supervisor: str):
    key = local.submit()
    local.let_begin(key)
    folder = RunFolder(local.root / "runs" / key.name)
    stored = json.loads(folder.order_file.read_text())
    if order == "unreadable":
        stored["spec"]["roles"] = "two"
    else:
        stored["spec"] |= {"retries": 5000, "environment": {"TF_CONFIG": "{}"}, "dropped_by_this_release": 1}
    folder.order_file.write_text(json.dumps(stored))
    if supervisor == "dead":
        pid = folder.supervisor()
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: folder.supervisor() is None)
    local.engine.release(key, [Role.PS])
    local.engine.stop(key, timedelta(0))
    if order != "unreadable" or supervisor == "alive":
        wait_until(local.engine, key, all_ended)
    local.engine.clean_up(key)
    assert local.engine.observe([key])[key] == ABSENT
    assert not (local.root / "runs" / key.name).exists()
