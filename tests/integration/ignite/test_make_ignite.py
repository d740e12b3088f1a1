"""`make ignite` and `make ignite-down`: where it listens, what it says, that its lines work, and how it ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.env import task_python
from tests.real.portal import ROOT, free_port
from tests.real.scene import scene, until

pytestmark = [pytest.mark.ignite, pytest.mark.slow]
LAST_LINE = "gradients.yaml"


def make(target: str, folder: Path, **variables: object) -> list[str]:
    return ["make", target, f"FOLDER={folder}", *(f"{name}={value}" for name, value in variables.items())]


def finished(command: list[str]) -> tuple[int, str]:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stderr


class Running:
    """One in the background of a shell, which ignores SIGINT for it."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.port = folder, port
        self.process = subprocess.Popen(
            make("ignite", folder, PORT=port), cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
            env={**os.environ, "IGNITE_JAVA": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"},
        )  # fmt: skip
        self.said: list[str] = []
        for line in self.process.stdout or ():
            self.said.append(line.rstrip())
            if LAST_LINE in line:
                break

    def nodes(self) -> list[str]:
        table = subprocess.run(["ps", "axww", "-o", "stat=,args="], capture_output=True, text=True, check=True).stdout
        mark = f"-Dyardmaster.folder={self.folder}/"
        return [line for line in table.splitlines() if mark in line and not line.startswith("Z")]

    def ended(self) -> str:
        rest = self.process.communicate(timeout=60)[0]
        until(lambda: not self.nodes(), 20, "the node to end")
        return rest


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    one = Running(tmp_path / "run", free_port())
    try:
        assert one.nodes(), one.said
        yield one
    finally:
        finished(make("ignite-down", one.folder))
        one.process.communicate(timeout=60)


def test_its_lines_name_the_port_and_work(running: Running) -> None:
    said = "\n".join(running.said)
    assert f"127.0.0.1, at: {running.port}." in said
    assert f"YARDMASTER_IGNITE_HOSTS=127.0.0.1:{running.port} make up" in said
    assert f"yardmaster connections set ignite --hosts 127.0.0.1:{running.port}" in said
    line = next(one for one in running.said if "points.py" in one).replace(".venv-tasks/bin/python", task_python())
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(["bash", "-c", line], cwd=ROOT, capture_output=True, text=True, env=clean, check=False)
    assert (done.returncode, done.stdout) == (0, "rows 2000\n"), done.stderr


def test_a_port_or_a_folder_that_is_in_use_is_told_in_one_line(running: Running, tmp_path: Path) -> None:
    code, said = finished(make("ignite", tmp_path / "other", PORT=running.port))
    assert code
    assert re.match(rf"ignite: port {running.port} is in use by .*\. End it, or .* make ignite PORT=\d+\n", said), said
    code, said = finished(make("ignite", running.folder, PORT=free_port()))
    assert code
    assert said.startswith(f"ignite: it already runs in {running.folder}: end that with `make ignite-down`")
    assert running.nodes()


def test_ignite_down_ends_it_wherever_it_runs(running: Running) -> None:
    assert finished(make("ignite-down", running.folder)) == (0, "")
    assert "ignite: it was ended." in running.ended()
    assert running.process.returncode == 0
    assert finished(make("ignite-down", running.folder)) == (0, f"ignite: none runs in {running.folder}.\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_its_group_ends_it_in_the_background(running: Running, number: signal.Signals) -> None:
    os.killpg(running.process.pid, number)
    running.ended()


def test_terminating_make_alone_ends_it(running: Running) -> None:
    running.process.terminate()
    running.ended()


@pytest.mark.long
@pytest.mark.tensorflow
def test_the_lines_for_the_portal_work_one_after_the_other(running: Running) -> None:
    said = "\n".join(running.said)
    allowed = re.findall(r"YARDMASTER_IGNITE_HOSTS=(\S+) make up", said)[0]
    lines = [
        one.split()[1:] for one in running.said if one.startswith(("  yardmaster connections", "  yardmaster jobs"))
    ]
    with scene(settings={"YARDMASTER_IGNITE_HOSTS": allowed}) as portal:
        for line in lines[:2]:
            done = portal.command(*line)
            assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "pass 20: 2000 rows" in done.stdout
    assert "slope 3.00, offset -2.00" in done.stdout
