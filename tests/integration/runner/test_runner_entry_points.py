"""Modules and commands in the place of a script: what they find, what a stop does to them, how they end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.runner.conftest import Task
from tests.integration.runner.fake_task_portal import uploaded
from tests.real.scene import until

DOCS = Path(__file__).resolve().parents[3] / "docs" / "scripts.md"


def module(portal, files: dict[str, str], entry_point: str, **changes: object) -> None:
    portal.orders("", entry_point=entry_point, **changes)
    portal.order["code"]["files"] = [portal.add_file(path, text.encode()) for path, text in files.items()]


def test_a_module_runs_from_the_top_of_the_code_and_finds_its_package(task, portal):
    files = {
        "package/__init__.py": "NAME = 'package'\n",
        "package/other.py": "from . import NAME\n",
        "package/train.py": "import sys, os\nfrom .other import NAME\n"
        "print(NAME, __name__, sys.argv[1:], os.getcwd())\n",
    }
    module(portal, files, "-m package.train", spec_arguments=["--epochs", "3"])
    assert task.run() == 0, task.said
    assert portal.lines() == [f"package __main__ ['--epochs', '3'] {task.work / 'code'}".encode()]


def test_a_package_runs_its_main_file(task, portal):
    module(portal, {"package/__init__.py": "", "package/__main__.py": "print('main')\n"}, "-m package")
    assert task.run() == 0
    assert portal.lines() == [b"main"]


def test_a_module_that_is_not_there_is_named(task, portal):
    module(portal, {"package/__init__.py": ""}, "-m package.train")
    assert task.run() != 0
    assert portal.reports[-1]["reason"] == "ScriptNotFound"
    assert "-m package.train is not in the code" in portal.reports[-1]["message"]


def command(portal, line: str, script: str = "", **changes: object) -> None:
    portal.orders(script, entry_point="", spec_command=line, **changes)


def test_a_command_is_the_shells_and_has_the_folders_in_variables(task, portal):
    line = 'cd sub 2>/dev/null || echo "no folder"; python train.py "$LOG_DIR" | tr a-z A-Z\nexit 7'
    command(portal, line, "import os, sys\nprint(sys.argv[1] == os.environ['LOG_DIR'])\n")
    assert task.run() == 7
    assert portal.lines() == [b"no folder", b"TRUE"]
    assert portal.reports[-1]["exit_code"] == 7


LINKED = """mkdir -p "$LOG_DIR/checkpoints" && ln -sfn "$LOG_DIR/checkpoints" checkpoints
exec python train.py"""
"""As `docs/scripts.md` has it."""
SAVES_WHERE_IT_RUNS = """
import os
print(sorted(os.listdir("checkpoints")))
for name in ("m-7.index", "m-7.data-00000-of-00001"):
    open("checkpoints/" + name, "w").write(name)
open("checkpoints/checkpoint", "w").write('model_checkpoint_path: "m-7"\\n')
"""


def test_checkpoints_beside_the_script_are_kept_and_found_again_by_a_link(task, portal, tmp_path):
    assert all(line in DOCS.read_text() for line in LINKED.splitlines())
    command(portal, LINKED, SAVES_WHERE_IT_RUNS)
    assert task.run() == 0, task.said
    (kept,) = uploaded(portal, "checkpoints")
    assert sorted(kept) == [
        "checkpoints/checkpoint", "checkpoints/m-7.data-00000-of-00001", "checkpoints/m-7.index",
    ]  # fmt: skip
    portal.order["checkpoint"] = {"step": 7, "files": [portal.add_file(path, kept[path]) for path in sorted(kept)]}
    portal.order["attempt"] = 2
    portal.logs.clear()
    again = Task(tmp_path / "again", portal)
    again.folder.mkdir()
    assert again.run() == 0, again.said
    assert portal.lines() == [b"['checkpoint', 'm-7.data-00000-of-00001', 'm-7.index']"]


def test_the_commands_python_is_that_of_the_task(task, portal):
    task.variables["YARDMASTER_OWN_PYTHON"] = "1"
    command(portal, "python -c 'import sys; print(sys.prefix)'")
    assert task.run() == 0, task.said
    assert portal.lines() == [str(task.work / "python").encode()]


@pytest.mark.parametrize(("line", "exit_code"), [("true", 0), ("exit 3", 3), ("no-such-program", 127), ("if", 2)])
def test_the_exit_code_is_the_shells(task, portal, line, exit_code):
    command(portal, line)
    assert task.run() == exit_code


SAVES = """
import signal, sys, time
def save(*_):
    time.sleep(0.3)
    print("saved", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("ready", flush=True)
while True:
    time.sleep(0.1)
"""


@pytest.mark.parametrize(
    "line", ["python train.py", "echo begin; python train.py; echo 'not reached'", "python train.py & wait"]
)
def test_a_stop_reaches_what_the_shell_runs_which_has_its_grace_period(task, portal, line):
    command(portal, line, SAVES)
    process = task.start()
    until(lambda: b"ready" in portal.lines())
    process.terminate()
    process.communicate(timeout=60)
    assert b"saved" in portal.lines()
    assert b"not reached" not in portal.lines()
