"""The command behind `make up` as a test's own portal: with its keeper, unlike `tests.real.portal`."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx2

from tests.real.migrated import migrated
from tests.real.portal import ROOT, free_port
from tests.real.scene import QUICK, end_all_runs, until


class Up:
    """A running `python -m portal.up`. `settings` are environment variables."""

    def __init__(self, home: Path, settings: Mapping[str, str]) -> None:
        self.home = home
        self.url = f"http://127.0.0.1:{free_port()}"
        self.output = home / "said"
        base = {name: value for name, value in os.environ.items() if not name.startswith(("YARDMASTER_", "PYTEST_"))}
        told = {
            **base, **QUICK, **settings, "YARDMASTER_HOME": str(home), "PYTHONPATH": f"{ROOT / 'platform'}:{ROOT}",
        }  # fmt: skip
        command = [sys.executable, "-m", "portal.up", "--port", self.url.rpartition(":")[2]]
        command += ["--workbench-port", str(free_port())]
        shutil.copyfile(migrated(), home / "portal.sqlite3")  # to migrate takes longer than all the rest
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(command, cwd=ROOT, env=told, stdout=output, stderr=output)
        try:
            until(lambda: "is ready" in self.said() or self.process.poll() is not None, what="the portal")
            assert self.process.poll() is None, self.said()
        except BaseException:
            self.stop()
            raise

    def said(self) -> str:
        return self.output.read_text(errors="replace")

    def pid(self, name: str) -> int:
        rows = json.loads((self.home / "run" / "processes.json").read_text())
        return next(int(row["pid"]) for row in rows if row["name"] == name)

    def answers(self) -> bool:
        try:
            return httpx2.get(f"{self.url}/healthz", timeout=20).status_code == 200
        except httpx2.TransportError:
            return False

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(60)
        finally:
            self.process.kill()
            self.process.wait()


@contextlib.contextmanager
def running_up(settings: Mapping[str, str]) -> Iterator[Up]:
    """It, in a home of its own; gone, with every process of its jobs, at the end."""
    with tempfile.TemporaryDirectory(prefix="yardmaster-up-") as folder:
        one = Up(Path(folder), settings)
        try:
            yield one
        finally:
            one.stop()
            end_all_runs(Path(folder))
