"""A script that prints faster than its portal takes lines waits for it; only a portal that is away costs lines."""

from __future__ import annotations

import itertools
import time

import pytest

from tests.integration.runner.conftest import Task
from tests.integration.runner.fake_task_portal import FakeTaskPortal

MIB = 1 << 20
SPOOL = 8 * MIB
LINES = 40_000
SIZE = 1000
"""Five spools full."""
SCRIPT = f"""
import os
for i in range({LINES} // 100):
    os.write(1, b"".join(b"%07d " % (i * 100 + n) + b"." * {SIZE - 9} + b"\\n" for n in range(100)))
"""


def printing(portal: FakeTaskPortal, script: str = SCRIPT, away_seconds: int = 60, **changes: object) -> None:
    limits = {"line_bytes": 65536, "spool_bytes": SPOOL, "away_seconds": away_seconds}
    portal.orders(script, limits=limits, **changes)


def wait_for(condition, seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not come about"
        time.sleep(0.02)


def assert_every_line_is_there(portal: FakeTaskPortal) -> None:
    assert portal.gaps == {}
    assert [line[:7] for line in portal.lines()] == [b"%07d" % number for number in range(LINES)]
    assert portal.ends == {"worker-0": LINES}


@pytest.mark.parametrize("status", [429, 503])
def test_a_portal_that_says_later_for_long_costs_no_line(task: Task, portal: FakeTaskPortal, status: int):
    printing(portal, away_seconds=6)
    portal.retry_after = "1"
    asked_at: list[float] = []

    def trouble(_: str, path: str) -> int | None:
        if not path.startswith("log"):
            return None
        asked_at.append(time.monotonic())
        return status if asked_at[-1] - asked_at[0] < 9 else None

    portal.trouble = trouble
    assert task.run(timeout=120) == 0
    assert_every_line_is_there(portal)


def test_a_portal_that_answers_nothing_for_a_while_costs_no_line(task: Task, portal: FakeTaskPortal):
    """As it is stopped, or on a machine that is too busy: connections are taken, and nothing comes back."""
    printing(portal)
    begun = time.monotonic()
    portal.trouble = lambda _, path: "hang" if path.startswith("log") and time.monotonic() - begun < 9 else None
    assert task.run(timeout=120) == 0
    assert_every_line_is_there(portal)


def test_a_portal_that_does_everything_wrong_in_turn_costs_no_line(task: Task, portal: FakeTaskPortal):
    portal.retry_after = "1"
    troubles = iter(["lose_answer", 503, None, "hang_up", 429, None, "lose_answer", 500, None, "hang", None, "hang_up"])
    portal.trouble = lambda _, path: next(troubles, None) if path.startswith("log") else None
    printing(portal)
    assert task.run(timeout=100) == 0
    assert_every_line_is_there(portal)


def test_a_portal_that_is_away_costs_the_oldest_lines_and_a_mark_that_counts_them(task: Task, portal: FakeTaskPortal):
    begun = task.folder / "begun"
    printing(portal, f"open({str(begun)!r}, 'w')\nimport time; time.sleep(1)\n{SCRIPT}", away_seconds=1)
    process = task.start()
    wait_for(begun.exists)
    portal.go_away()
    wait_for((task.work / "exit.json").exists)
    portal.come_back()
    process.communicate(timeout=60)
    assert process.returncode == 0
    kept, lost = portal.lines(), portal.gaps["worker-0"]
    assert lost
    assert len(kept) + sum(lines for _, lines, _ in lost) == LINES == portal.ends["worker-0"]
    assert sum(size for _, _, size in lost) == SIZE * (LINES - len(kept))
    dropped = itertools.chain.from_iterable(range(first, first + lines) for first, lines, _ in lost)
    left = sorted(set(range(LINES)) - set(dropped))
    assert [line[:7] for line in kept] == [b"%07d" % number for number in left]
    assert kept[-1].startswith(b"%07d" % (LINES - 1))


def test_a_script_that_is_held_up_ends_within_its_grace_period(task: Task, portal: FakeTaskPortal):
    """It has SIGTERM's handler by default, and blocks in a write; nor does the rest of its output hold up the end."""
    printing(portal, "import sys\nwhile True: print('x' * 1000)\n", spec_grace_period=6)
    portal.retry_after = "1"
    portal.trouble = lambda _, path: 503 if path.startswith("log") else None
    process = task.start()
    wait_for(lambda: sum(file.stat().st_size for file in task.work.glob("spool/*.log")) > SPOOL // 2)
    time.sleep(1)
    process.terminate()
    process.communicate(timeout=40)
    assert process.returncode == 143
