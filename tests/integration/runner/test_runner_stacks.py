"""A script is asked where it stands: by a user, through the portal, while it runs."""

from __future__ import annotations

from tests.integration.runner.conftest import Task
from tests.integration.runner.fake_task_portal import FakeTaskPortal
from tests.real.scene import until

SCRIPT = """
import os, sys, time
def wait_for_the_file():
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.05)
print("begun", flush=True)
wait_for_the_file()
print("ended", flush=True)
"""


def test_a_user_who_asks_finds_the_stacks_in_the_log_and_the_script_runs_on(task: Task, portal: FakeTaskPortal):
    goes = task.folder / "go"
    portal.orders(SCRIPT, spec_arguments=[str(goes)])
    portal.stacks = 3  # asked of an earlier start: not its business
    process = task.start()
    try:
        until(lambda: b"begun" in portal.lines(), 30, "the script to run")
        until(lambda: any(one["state"] == "running" for one in portal.reports), 30, "the report of it")
        assert len(portal.lines()) == 1
        portal.stacks = 4
        until(lambda: any(b"in wait_for_the_file" in line for line in portal.lines()), 30, "the stacks")
        assert b"yardmaster: a user asks where its threads stand" in portal.lines()
        goes.touch()
        process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0
    assert portal.lines()[-1] == b"ended"
