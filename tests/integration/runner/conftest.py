"""A fake portal, and a runner as an engine starts it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import yardmaster_runner
from tests.integration.runner.fake_task_portal import TOKEN, FakeTaskPortal

SOURCE = Path(yardmaster_runner.__file__).parent.parent


def changed_runner(change: str) -> tuple[str, ...]:
    """The command of a runner that carries out this statement first."""
    run = "import runpy; runpy.run_module('yardmaster_runner', run_name='__main__')"
    return (sys.executable, "-c", f"{change}; {run}")


@pytest.fixture
def portal() -> Iterator[FakeTaskPortal]:
    with FakeTaskPortal() as one:
        yield one


@dataclass
class Task:
    """One task's folder and environment; start it as often as you like."""

    folder: Path
    portal: FakeTaskPortal
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def work(self) -> Path:
        return self.folder / "work"

    def environment(self) -> dict[str, str]:
        token = self.folder / "token"
        token.write_text(TOKEN + "\n")
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith(("YARDMASTER_", "DJANGO"))},
            "PYTHONPATH": str(SOURCE),
            "YARDMASTER_URL": self.portal.url,
            "YARDMASTER_TOKEN_FILE": str(token),
            "YARDMASTER_ROLE": "worker",
            "YARDMASTER_INDEX": "0",
            "YARDMASTER_CLUSTER": "{}",
            "YARDMASTER_WORK_DIR": str(self.work),
            **self.variables,
        }

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command or (sys.executable, "-m", "yardmaster_runner"),
            env=self.environment(),
            cwd=self.folder,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def run(self, *command: str, timeout: float = 60) -> int:
        with self.start(*command) as process:  # its pipe is closed, also where it was too slow
            try:
                _, self.said = process.communicate(timeout=timeout)
            finally:
                process.kill()
        return process.returncode

    said: bytes = b""


@pytest.fixture
def task(tmp_path: Path, portal: FakeTaskPortal) -> Task:
    return Task(tmp_path, portal)
