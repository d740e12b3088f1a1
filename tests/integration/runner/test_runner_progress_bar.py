"""A progress bar of a real script: shown while it is drawn and followed, and one line of the log when finished."""

from __future__ import annotations

from tests.integration.runner.conftest import Task
from tests.integration.runner.fake_task_portal import FakeTaskPortal
from tests.real.scene import until

BAR = """
import os, sys, time
os.write(1, b"first\\n")  # in one piece, as print() of an unbuffered output is not
step = 0
while not os.path.exists(sys.argv[1]):
    step += 1
    print(f"\\r\\x1b[K{step}/? steps", end="", flush=True)
    time.sleep(0.05)
os.write(1, b"\\rall steps done\\n")
"""


def test_a_progress_bar_is_shown_while_it_is_drawn_and_kept_as_one_line(task: Task, portal: FakeTaskPortal):
    goes = task.folder / "go"
    portal.orders(BAR, spec_arguments=[str(goes)])
    portal.followed = True
    process = task.start()
    try:
        until(lambda: len({text for _, _, text in portal.open_lines}) > 1, 30, "two states of the bar")
        assert portal.lines() == [b"first"]
        goes.touch()
        process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0
    assert {(name, line) for name, line, text in portal.open_lines if text} == {("worker-0", 1)}
    assert all(text.endswith("/? steps") for _, _, text in portal.open_lines if text)
    assert portal.lines() == [b"first", b"all steps done"]
