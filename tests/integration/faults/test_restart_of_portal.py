"""`make up` stopped, killed and started again while jobs run: they go on, and nothing of them is lost.

Each test begins and ends with a portal that is up.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.migrated import migrated
from tests.real.portal import ROOT, free_port
from tests.real.scene import QUICK, SMALL, Scene, end_all_runs, is_alive, kill, until
from yardmaster_client import Job

pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(300)]

COUNT = """
import os, sys, time
lines, trace = int(sys.argv[1]), open(sys.argv[2], "a")
trace.write("start\\n"); trace.flush()
for number in range(lines):
    print("line", number, flush=True)
    time.sleep(0.02)
while os.path.exists(sys.argv[2] + ".hold"):
    time.sleep(0.05)
with open(os.path.join(os.environ["MODEL_DIR"], "weights"), "wb") as model:
    model.write(b"\\1" * 3_000_000)
trace.write("end\\n"); trace.flush()
"""


class UpPortal:
    """`python -m portal.up` as a child, which can be told and killed like one in a terminal."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.port, self.workbench_port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        base = {name: value for name, value in os.environ.items() if not name.startswith(("YARDMASTER_", "PYTEST_"))}
        self.environment = {
            **base, **QUICK, "YARDMASTER_HOME": str(home), "PYTHONPATH": f"{ROOT / 'platform'}:{ROOT}",
            "PYTHONUNBUFFERED": "1", "DJANGO_SETTINGS_MODULE": "portal.settings",
        }  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None
        self._output = home.with_name(f"{home.name}.out")
        shutil.copyfile(migrated(), home / "portal.sqlite3")  # to migrate takes longer than all the rest

    def start(self) -> None:
        command = [sys.executable, "-m", "portal.up", "--port", str(self.port)]
        command += ["--workbench-port", str(self.workbench_port)]
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(command, cwd=ROOT, env=self.environment, stdout=output, stderr=output)
        until(lambda: "is ready" in self.said() or self._process.poll() is not None, what="the portal")
        assert self._process.poll() is None, self.said()

    def said(self) -> str:
        return self._output.read_text(errors="replace")

    def interrupt(self) -> str:
        """Ctrl-C, and what the portal said to that."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        assert self._process.wait(40) == 0, self.said()
        return self.said()

    def kill_everything(self) -> None:
        """SIGKILL to `up` and to each of its processes, so that none can do anything about it."""
        assert self._process is not None
        for pid in [self._process.pid, *self.pids()]:
            kill(pid)
        self._process.wait()

    def pids(self) -> list[int]:
        return [row["pid"] for row in json.loads((self.home / "run" / "processes.json").read_text())]

    def manage(self, *arguments: str) -> str:
        command = [sys.executable, "manage.py", *arguments]
        done = subprocess.run(command, cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def end(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(40)
        self._output.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def up() -> Iterator[UpPortal]:
    with tempfile.TemporaryDirectory(prefix="yardmaster-up-") as folder:
        portal = UpPortal(Path(folder))
        try:
            portal.start()
            yield portal
        finally:
            portal.end()
            end_all_runs(portal.home)


@pytest.fixture(scope="module")
def up_scene(up: UpPortal) -> Iterator[Scene]:
    one = Scene(up, json.loads(up.manage("access"))["token"])
    with one.client:
        yield one


@pytest.fixture(scope="module")
def code(up_scene: Scene) -> str:
    return up_scene.put_code({"main.py": COUNT})


def hold(scene: Scene, name: str) -> Path:
    """While this file is there, the script of that name does not end."""
    made = scene.traces / f"{name}.hold"
    made.touch()
    return made


def begun(scene: Scene, code: str, name: str, lines: int) -> tuple[Job, Path]:
    """A job whose script runs, and the file that says how far it is."""
    trace = scene.traces / name
    spec = scene.spec(code, name=name, arguments=[str(lines), str(trace)])
    job = scene.client.jobs.launch(spec)
    until(trace.exists, what="the script's start")
    until(lambda: scene.client.jobs.get(job.id).phase == "RUNNING", what="the job to run")
    return job, trace


def assert_ended_well(scene: Scene, job: Job, trace: Path, lines: int) -> None:
    job = scene.settled(job)
    assert job.phase == "SUCCEEDED", f"{job.reason}: {job.message}"
    assert trace.read_text().split() == ["start", "end"]
    assert scene.lines(job) == [f"line {number}" for number in range(lines)]
    assert scene.client.jobs.model(job.id)["size"] == 3_000_000
    scene.assert_nothing_is_left(job)


@pytest.mark.long
def test_after_ctrl_c_jobs_go_on_and_the_next_start_finds_them(up: UpPortal, up_scene: Scene, code: str):
    held = hold(up_scene, "goes-on")
    job, trace = begun(up_scene, code, "goes-on", 400)
    pids = up.pids()
    said = up.interrupt()
    assert "1 job(s) continue without it: goes-on" in said
    assert "make stop-jobs" in said
    assert not any(is_alive(pid) for pid in pids)
    assert up_scene.runners(job)
    assert trace.read_text().split() == ["start"]

    up.start()
    held.unlink()
    assert up_scene.client.jobs.get(job.id).name == "goes-on"
    assert_ended_well(up_scene, job, trace, 400)


def test_a_job_that_ends_while_the_whole_portal_is_dead_keeps_log_and_model(up: UpPortal, up_scene: Scene, code: str):
    held = hold(up_scene, "alone")
    job, trace = begun(up_scene, code, "alone", 150)
    pids = up.pids()
    up.kill_everything()
    until(lambda: not any(is_alive(pid) for pid in pids), what="the portal's death")
    held.unlink()
    until(lambda: "end" in trace.read_text(), what="the script's end")
    time.sleep(1.0)
    assert up_scene.runners(job), "the runner must wait for the portal with what is not stored yet"

    up.start()
    assert_ended_well(up_scene, job, trace, 150)


@pytest.mark.long
def test_killing_up_alone_takes_its_processes_with_it_and_no_job(up: UpPortal, up_scene: Scene, code: str):
    job, trace = begun(up_scene, code, "orphan", 300)
    pids = up.pids()
    assert up._process is not None
    kill(up._process.pid)
    up._process.wait()
    until(lambda: not any(is_alive(pid) for pid in pids), what="the end of the portal's processes")

    up.start()
    assert_ended_well(up_scene, job, trace, 300)


@pytest.mark.long
def test_stop_jobs_without_a_portal_ends_what_runs_and_what_waits(up: UpPortal, up_scene: Scene, code: str):
    runs, _ = begun(up_scene, code, "runs", 100_000)
    engines = up_scene.client.transport.get("engines/")["results"]
    cores = next(one["total"]["cpu"] for one in engines if one["name"] == "local")
    waits = up_scene.client.jobs.launch(
        up_scene.spec(code, name="waits", arguments=["1", "x"], roles={"worker": {**SMALL, "cpu": cores}})
    )
    until(lambda: up_scene.client.jobs.get(waits.id).reason, what="the reason to wait")
    up.interrupt()

    said = up.manage("stop_jobs", "--grace", "2")
    assert "no longer wanted  runs  (running)" in said
    assert "no longer wanted  waits  (queued)" in said
    assert "stopping  runs  (worker-0)" in said
    assert "1 run(s) ended." in said
    assert up_scene.runners(runs) == []
    assert "No job runs on this machine." in up.manage("stop_jobs")

    up.start()
    for job in (runs, waits):
        ended = up_scene.settled(job) if job is runs else up_scene.ended(job)
        assert (ended.phase, ended.reason) == ("STOPPED", "Stopped")
        up_scene.assert_nothing_is_left(ended)
    asked = [event["message"] for event in up_scene.client.jobs.events(runs.id) if event["kind"] == "stop_asked"]
    assert asked == ["The portal's operator requested to stop the job."]
