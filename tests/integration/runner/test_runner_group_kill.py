"""What a killed runner loses. Control groups of version 2 may be killed as a whole when memory runs out, as those of
containers are: the runner then dies with its script, without a word.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.runner.conftest import Task
from tests.integration.runner.fake_task_portal import FakeTaskPortal

LIMIT = 300 << 20
PRINTS = """
import os, time
for number in range(1000):
    print("line", number, flush=True)
while not os.path.exists({go_on!r}):
    time.sleep(0.05)
"""
EATS = """
print("eats", flush=True)
held = []
while True:
    held.append(b"x" * (20 << 20))
"""


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group of version 2 with a limit, of which the kernel kills all at once."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    roots = [Path(fields[1]) for fields in mounts if fields[2] == "cgroup2"]
    root = next((one for one in roots if "memory" in (one / "cgroup.controllers").read_text().split()), None)
    if root is None:
        pytest.skip("no hierarchy of control groups of version 2 has the memory controller on this machine")
    made = root / f"yardmaster-test-{uuid.uuid4().hex[:8]}"
    try:
        (root / "cgroup.subtree_control").write_text("+memory")
        made.mkdir()
        (made / "memory.max").write_text(str(LIMIT))
        (made / "memory.oom.group").write_text("1")
    except OSError as error:
        pytest.skip(f"no control group of version 2 can be made here: {error}")
    yield made
    made.rmdir()


def in_group(group: Path) -> list[str]:
    """The runner, begun within the group."""
    enter = f"import os; open({str(group / 'cgroup.procs')!r}, 'w').write(str(os.getpid()))"
    run = "os.execv(sys.executable, [sys.executable, '-m', 'yardmaster_runner'])"
    return [sys.executable, "-c", f"import sys; {enter}; {run}"]


def wait_for_lines(process: subprocess.Popen[bytes], portal: FakeTaskPortal) -> None:
    """All that `PRINTS` prints."""
    end = time.monotonic() + 90
    while len(portal.lines()) < 1000:
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.05)


def assert_marked(task: Task, portal: FakeTaskPortal, lines: list[bytes]) -> None:
    """What the next start in an empty folder makes of it."""
    shutil.rmtree(task.work)
    portal.orders("print('second life')\n", was_cut_off=True)
    portal.order["code"]["version"] = "c0de2"
    assert task.run() == 0
    assert portal.lines()[: len(lines)] == lines
    assert b"may be missing here" in portal.lines()[-2]
    assert portal.lines()[-1] == b"second life"


def test_a_group_that_is_killed_for_memory_loses_what_was_never_read(task: Task, portal: FakeTaskPortal, group: Path):
    go_on = task.folder / "go-on"
    portal.orders(PRINTS.format(go_on=str(go_on)) + EATS)
    process = task.start(*in_group(group))
    try:
        wait_for_lines(process, portal)
        go_on.touch()
        process.communicate(timeout=90)
    finally:
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert not (group / "cgroup.procs").read_text().split()
    assert_marked(task, portal, [b"line %d" % number for number in range(1000)])


def test_a_whole_group_of_processes_that_is_killed_loses_what_was_never_read(task: Task, portal: FakeTaskPortal):
    """The same where there is no such control group: all of the session die in one moment."""
    portal.orders(PRINTS.format(go_on="/never"))
    process = task.start()
    wait_for_lines(process, portal)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=20)
    assert_marked(task, portal, [b"line %d" % number for number in range(1000)])
