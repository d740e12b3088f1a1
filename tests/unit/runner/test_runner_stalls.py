"""A script that does nothing at all stands still; one that computes, prints or makes progress does not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.real.scene import until
from yardmaster_runner import offered
from yardmaster_runner.order import read_order
from yardmaster_runner.stacks import catches, number, write_stacks
from yardmaster_runner.stalls import IDLE, QUIET, SETTLING, StallWatch

WAITS = b"2026-11-26 10:00:00.000000: I tensorflow/core/distributed_runtime/master.cc:267] CreateSession still waiting "
WAITS += b"for response from worker: /job:ps/replica:0/task:0\n"


class Scene:
    """A script, seen every three seconds."""

    def __init__(self) -> None:
        self.now, self.cpu, self.total, self.tail = 1_000.0, 0.0, 0, b""
        self.progress: dict[str, int] = {}
        self.stacks = 0
        self.watch = StallWatch(
            lambda: (self.total, self.tail), lambda: dict(self.progress), self._asked, clock=lambda: self.now
        )

    def _asked(self) -> None:
        self.stacks += 1

    def prints(self, data: bytes) -> None:
        self.total += len(data)
        self.tail = (self.tail + data)[-16_384:]

    def passes(self, seconds: float, cpu: float = 0.0, output: bytes = b""):
        """What the last look says."""
        found, until_then = None, self.now + seconds
        while self.now < until_then:
            self.now += 3
            self.cpu += 3 * cpu
            if output:
                self.prints(output)
            found = self.watch.look(self.cpu)
        return found


def test_after_minutes_of_nothing_it_stands_still_and_is_asked_once_where_it_stands() -> None:
    scene = Scene()
    scene.prints(b"begun\n")
    assert scene.passes(QUIET - 10, cpu=IDLE / 5) is None
    stall = scene.passes(30)
    assert stall is not None
    assert (stall.since, stall.peer) == (1_003.0, "")
    assert scene.passes(QUIET * 3) == stall
    assert scene.stacks == 1


@pytest.mark.parametrize("doing", [{"cpu": 2 * IDLE}, {"output": b"step\n"}])
def test_what_computes_or_prints_does_not(doing) -> None:
    assert Scene().passes(QUIET * 3, **doing) is None


def test_what_makes_progress_does_not_and_ends_a_stall() -> None:
    scene = Scene()
    assert scene.passes(QUIET + 10) is not None
    scene.progress = {"step": 1}
    assert scene.passes(3) is None
    assert scene.passes(QUIET + 10) is not None
    assert scene.stacks == 2


def test_the_stacks_that_it_writes_are_no_sign_of_life() -> None:
    scene = Scene()
    scene.passes(QUIET + 3)
    scene.prints(b'Thread 0x1 (most recent call first):\n  File "train.py", line 3 in main\n')
    assert scene.passes(SETTLING / 2) is not None
    assert scene.passes(QUIET) is not None
    scene.prints(b"again\n")
    assert scene.passes(3) is None


def test_what_waits_for_a_server_prints_nothing_of_its_own_and_says_for_which() -> None:
    scene = Scene()
    scene.prints(b"begun\n")
    stall = scene.passes(QUIET + 30, output=WAITS)
    assert stall is not None
    assert stall.peer == "/job:ps/replica:0/task:0"
    assert scene.passes(6, output=WAITS + b"loss 0.3\n") is None
    assert scene.passes(QUIET + 30).peer == ""


ORDER = read_order(
    {
        "job": "1", "attempt": 1, "spec": {"strategy": "single", "roles": {"worker": {}}},
        "code": {"version": "1", "files": []},
    }
)  # fmt: skip
SLEEPER = """
import sys, time
def wait_for_ever():
    print("ready", flush=True)
    time.sleep(600)
wait_for_ever()
"""


@pytest.fixture
def start(tmp_path: Path):
    """Starts a Python as scripts are started: what it prints goes to a file."""
    offered.make(str(tmp_path), ORDER)
    output = tmp_path / "output"
    started: list[subprocess.Popen[bytes]] = []

    def begin(*command: str, path: str = "") -> tuple[subprocess.Popen[bytes], Path]:
        where = os.pathsep.join([one for one in (offered.folder_in(str(tmp_path)), path) if one])
        with output.open("wb") as file:
            process = subprocess.Popen(
                command, stdout=file, stderr=file, env={**os.environ, "PYTHONPATH": where}, cwd=tmp_path
            )
        started.append(process)
        until(lambda: b"ready" in output.read_bytes(), 30, "the process to be ready")
        return process, output

    yield begin
    for process in started:
        process.kill()
        process.wait()


def test_a_script_writes_where_it_stands_and_runs_on(start) -> None:
    process, output = start(sys.executable, "-c", SLEEPER)
    assert catches(process.pid)
    assert write_stacks(process.pid) == 1
    until(lambda: b"in wait_for_ever" in output.read_bytes(), 30, "the stacks")
    assert process.poll() is None


def test_what_has_no_handler_is_not_sent_the_signal(start) -> None:
    process, _ = start("/bin/sh", "-c", "echo ready; exec sleep 600")
    assert not catches(process.pid)
    assert write_stacks(process.pid) == 0
    assert process.poll() is None
    assert not catches(1 << 22)
    assert number() > 32


def test_a_python_below_a_shell_is_found(start, tmp_path: Path) -> None:
    (tmp_path / "sleeper.py").write_text(SLEEPER)
    process, output = start("/bin/sh", "-c", f"{sys.executable} sleeper.py; true")
    assert write_stacks(process.pid) == 1
    until(lambda: b"in wait_for_ever" in output.read_bytes(), 30, "the stacks")


def test_another_module_of_that_name_runs_too_and_once(start, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "sitecustomize.py").write_text("print('customized', flush=True)\n")
    process, output = start(sys.executable, "-c", SLEEPER, path=str(other))
    assert output.read_bytes().count(b"customized") == 1
    assert catches(process.pid)
