"""A process of `make up` that lives and does not answer is started again, and a busy portal is left alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.real.portal import ROOT, free_port
from tests.real.scene import QUICK, end_all_runs, until

pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(300)]


class Up:
    """`python -m portal.up` that waits only seconds for a silent process."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.url = f"http://127.0.0.1:{free_port()}"
        self.output = home / "said"
        base = {name: value for name, value in os.environ.items() if not name.startswith(("YARDMASTER_", "PYTEST_"))}
        told = {
            **base, **QUICK, "YARDMASTER_HOME": str(home), "PYTHONPATH": f"{ROOT / 'platform'}:{ROOT}",
            "YARDMASTER_SILENCE_LIMIT": "15",
        }  # fmt: skip
        command = [sys.executable, "-m", "portal.up", "--port", self.url.rpartition(":")[2]]
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(command, cwd=ROOT, env=told, stdout=output, stderr=output)
        until(lambda: "is ready" in self.said() or self.process.poll() is not None, what="the portal")
        assert self.process.poll() is None, self.said()

    def said(self) -> str:
        return self.output.read_text(errors="replace")

    def pid(self, name: str) -> int:
        rows = json.loads((self.home / "run" / "processes.json").read_text())
        return next(int(row["pid"]) for row in rows if row["name"] == name)

    def answers(self) -> bool:
        try:
            return httpx2.get(f"{self.url}/healthz", timeout=2).status_code == 200
        except httpx2.TransportError:
            return False

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(60)
        finally:
            self.process.kill()
            self.process.wait()


@pytest.fixture(scope="module")
def up() -> Iterator[Up]:
    with tempfile.TemporaryDirectory(prefix="yardmaster-up-") as folder:
        one = Up(Path(folder))
        try:
            yield one
        finally:
            one.stop()
            end_all_runs(Path(folder))


def freeze(up: Up, *names: str) -> None:
    """SIGSTOP: they live, their ports accept connections, and no SIGTERM ends them. Until there are others."""
    first = {name: up.pid(name) for name in names}
    for pid in first.values():
        os.kill(pid, signal.SIGSTOP)
    for name, pid in first.items():
        until(lambda name=name, pid=pid: up.pid(name) != pid, 120, f"another {name}")
        assert f"{name} has not answered for 15 s and is ended" in up.said()


def test_a_frozen_web_process_is_replaced_and_no_other_is(up: Up):
    until(up.answers, what="the portal's answer")
    freeze(up, "web")
    until(up.answers, what="the portal's answer")
    assert up.said().count("has not answered") == 1


def test_every_other_frozen_process_is_replaced_too(up: Up):
    others = ("worker", "beat", "conductor")
    for name in others:
        until(lambda name=name: (up.home / "run" / f"{name}.alive").exists(), what=f"a sign of {name}")
    freeze(up, *others, "valkey")
    until(up.answers, what="the portal's answer")
