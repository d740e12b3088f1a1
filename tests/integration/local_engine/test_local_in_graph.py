"""Servers for real: the local engine starts TensorFlow in its tasks, the starter notebook drives it from outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from portal.env import task_python
from tests.contract.engine_harness import new_key
from tests.integration.runner.fake_task_portal import TOKEN, FakeTaskPortal
from yardmaster.engines.base import Servers, TaskAccess
from yardmaster.engines.local import LocalEngine
from yardmaster.ids import JobKey, new_id
from yardmaster.job.spec import DatasetInput, Resources, Role, RoleSpec, Strategy, TrainingSpec
from yardmaster.job.spec_json import spec_to_json
from yardmaster.job.starter_notebook import starter_notebook
from yardmaster.lifecycle.phases import TaskPhase, TaskState
from yardmaster.lifecycle.success import job_verdict

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

LONG = 150.0
WORKER, PS = Role.WORKER, Role.PS
SIZE = Resources(cpu=0.5, memory=1536 << 20)
READ_DATA = """
with tf.Graph().as_default(), tf.Session(TARGET) as session:
    for role, count in TASKS.items():
        for number in range(count):
            with tf.device("/job:%s/task:%d" % (role, number)):
                print("data", session.run(tf.io.read_file(DATA_DIR + "/words.txt")).decode())
"""


@dataclass
class Run:
    """One run of servers, and what the portal would know of it."""

    engine: LocalEngine
    portal: FakeTaskPortal
    spec: TrainingSpec
    key: JobKey

    def tasks(self) -> dict[tuple[Role, int], TaskState]:
        return {(one.role, one.index): one for one in self.engine.observe([self.key])[self.key].tasks}

    def servers(self) -> Servers:
        found = self.engine.servers(self.spec, self.key)
        assert found is not None
        return found

    def wait(self, what: Callable[[], bool]) -> None:
        deadline = time.monotonic() + LONG
        while not what():
            assert time.monotonic() < deadline, f"{self.tasks()}\n{dict(self.portal.logs)}"
            time.sleep(0.1)

    def times_served(self, role: Role, index: int) -> int:
        """How often this task has said that it serves."""
        return bytes(self.portal.logs[f"{role.value}-{index}"]).count(b" serves at grpc://")

    def drive(self, *more: str) -> str:
        """Run the notebook's code, as a person would who has TensorFlow and can reach the servers. What it printed."""
        found = self.servers()
        target = f"grpc://{found.addresses[WORKER][0]}"
        notebook = json.loads(starter_notebook("servers", target, found.addresses, data_dir=found.data_dir))
        cells = ["".join(one["source"]) for one in notebook["cells"] if one["cell_type"] == "code"]
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
        ended = subprocess.run(
            [task_python(), "-c", "\n\n".join([*cells, *more])],
            env=environment, capture_output=True, text=True, timeout=LONG, check=False,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
        return ended.stdout


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    roles = {WORKER: RoleSpec(2, SIZE), PS: RoleSpec(1, SIZE)}
    spec = TrainingSpec(
        "servers", Strategy.IN_GRAPH, roles, None, "", inputs=(DatasetInput(new_id()),), retries=1,
        grace_period=timedelta(seconds=10),
    )  # fmt: skip
    engine = LocalEngine(tmp_path / "engine", python=task_python(), cpus=2, memory=8 << 30, control_group="")
    with FakeTaskPortal() as portal:
        data = {"version": "d", "name": "", "files": [portal.add_file("words.txt", b"the same everywhere")]}
        portal.orders("", code=None, inputs=[data])
        portal.order["spec"] = spec_to_json(spec)
        made = Run(engine, portal, spec, new_key())
        engine.submit(spec, made.key, TaskAccess(portal.url, TOKEN))
        yield made
        engine.clean_up(made.key)
        made.wait(lambda: not engine.observe([made.key])[made.key].exists)


@pytest.mark.long
def test_servers_are_driven_from_outside_come_back_alone_and_end_when_they_are_stopped(run: Run) -> None:
    run.wait(lambda: all(run.times_served(*task) for task in run.spec.tasks()))
    said = run.drive(READ_DATA)
    assert "slope 3.00 (it is 3), offset 2.00 (it is 2)" in said
    for device in ("/job:ps/replica:0/task:0/device:CPU:0", "/job:worker/replica:0/task:1/device:CPU:0"):
        assert device in said
    assert said.count("data the same everywhere") == 3

    # A lost server comes back, alone, at its old address.
    before = run.servers()
    os.kill(server_of(run, WORKER, 1), signal.SIGKILL)
    run.wait(lambda: run.times_served(WORKER, 1) == 2)
    assert run.servers() == before
    assert {task: one.restarts for task, one in run.tasks().items()} == {(WORKER, 0): 0, (WORKER, 1): 1, (PS, 0): 0}
    assert "slope 3.00" in run.drive()

    run.engine.stop(run.key, run.spec.grace_period)
    run.wait(lambda: all(one.phase is TaskPhase.RELEASED for one in run.tasks().values()))


@pytest.mark.long
def test_a_server_lost_once_too_often_fails_the_job_in_plain_words(run: Run) -> None:
    for times in (1, 2):
        run.wait(lambda times=times: run.times_served(PS, 0) == times)
        os.kill(server_of(run, PS, 0), signal.SIGKILL)
    run.wait(lambda: run.tasks()[PS, 0].phase is TaskPhase.FAILED)
    verdict = job_verdict(run.spec, run.engine.observe([run.key])[run.key])
    assert verdict is not None
    assert (verdict.reason, verdict.role) == ("Killed", PS)
    assert verdict.message.startswith("Parameter server 0 was killed by signal 9 (SIGKILL)")


def server_of(run: Run, role: Role, index: int) -> int:
    """The process in which this task's TensorFlow runs."""
    work = str(run.engine.root / "runs" / run.key.name / "tasks" / f"{role.value}-{index}" / "work")
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().split(b"\0")
            variables = (folder / "environ").read_bytes().split(b"\0")
        except OSError:  # it has ended meanwhile
            continue
        is_server = any(word.endswith(b"/serve.py") for word in command)
        if is_server and f"YARDMASTER_WORK_DIR={work}".encode() in variables:
            return int(folder.name)
    raise AssertionError(f"no server of {role.value}-{index}")
