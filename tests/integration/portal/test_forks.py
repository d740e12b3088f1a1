"""The processes of the portals of tests are forks of what has imported Django, and begin as `make up` begins them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.forks import ROOT, CannotFork, Fork, Forks

pytestmark = [pytest.mark.slow, pytest.mark.linux]

WHAT_IT_BEGINS_WITH = """
import json, logging, os, signal, sys, threading

print(json.dumps({
    "arguments": sys.argv,
    "path": sys.path[:3],
    "name": __name__,
    "folder": os.getcwd(),
    "environment": {name: value for name, value in os.environ.items() if name != "_"},
    "files": sorted(os.listdir("/proc/self/fd"))[:-1],
    "input": os.readlink("/proc/self/fd/0"),
    "output": os.readlink("/proc/self/fd/1"),
    "errors": os.readlink("/proc/self/fd/2"),
    "written at once": [sys.stdout.write_through, sys.stderr.write_through],
    "signals": [str(signal.getsignal(number)) for number in sorted(signal.valid_signals())],
    "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "threads": [threading.active_count(), len(os.listdir("/proc/self/task"))],
    "group": os.getpgrp(),
    "session": os.getsid(0),
}))
sys.exit(3)
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    base = {name: value for name, value in os.environ.items() if not name.startswith(("YARDMASTER_", "PYTEST_"))}
    return {
        **base, "PYTHONPATH": f"{ROOT / 'platform'}:{ROOT}", "PYTHONUNBUFFERED": "1", "MALLOC_ARENA_MAX": "2",
        "DJANGO_SETTINGS_MODULE": "tests.real.settings", "YARDMASTER_HOME": str(tmp_path),
        "YARDMASTER_SECRET_KEY": "only-for-tests-" + "x" * 40,
    }  # fmt: skip


@pytest.fixture
def forks(environment: dict[str, str], tmp_path: Path) -> Iterator[Forks]:
    one = Forks(tmp_path, environment)
    yield one
    one.close()


@pytest.mark.parametrize("program", [["-m", "begins"], ["begins.py"]], ids=["a module", "a file"])
def test_a_fork_begins_as_after_exec(forks: Forks, environment: dict[str, str], tmp_path: Path, program: list[str]):
    (tmp_path / "begins.py").write_text(WHAT_IT_BEGINS_WITH)
    command, said = [sys.executable, *program, "--port", "1"], tmp_path / "said"
    with said.open("wb") as output:
        run = subprocess.run(
            command, cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False,
        )  # fmt: skip
    expected = json.loads(said.read_text())
    with said.open("wb") as output:
        assert forks.start(command, output.fileno()).wait(20) == run.returncode == 3
    assert json.loads(said.read_text()) == expected


def test_how_a_fork_ends_is_heard_and_errors_are_printed(forks: Forks, tmp_path: Path):
    def started(code: str) -> Fork:
        (tmp_path / "main.py").write_text(code)
        with (tmp_path / "said").open("ab") as output:
            return forks.start([sys.executable, str(tmp_path / "main.py")], output.fileno())

    assert started("").wait(20) == 0
    assert started("raise ValueError('so it is')").wait(20) == 1
    assert "ValueError: so it is" in (tmp_path / "said").read_text()
    waiting = started("import time\ntime.sleep(60)")
    assert waiting.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(0.01)
    waiting.send_signal(signal.SIGKILL)
    assert waiting.wait(20) == -signal.SIGKILL
    waiting.kill()  # has ended: nothing happens


def test_settings_that_cannot_be_read_are_said(environment: dict[str, str]):
    with pytest.raises(CannotFork, match="YARDMASTER_WEB_THREADS"):
        Forks(ROOT, {**environment, "YARDMASTER_WEB_THREADS": "many"})
