"""A notebook session as the local engine runs it: the runner with its gate, JupyterLab behind it, and what is kept."""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from portal.env import task_python, workbench_python
from tests.contract.engine_harness import new_key
from tests.integration.runner.fake_task_portal import TOKEN, FakeTaskPortal
from tests.integration.workbench.jupyter_session import PATIENCE, Jupyter, socket_of_task
from yardmaster.engines.base import TaskAccess
from yardmaster.engines.local import LocalEngine
from yardmaster.ids import JobKey, new_id
from yardmaster.job.programs import JUPYTER
from yardmaster.job.spec import Resources, Role, RoleSpec, Strategy, TrainingSpec
from yardmaster.job.spec_json import spec_to_json

pytestmark = [pytest.mark.slow, pytest.mark.workbench, pytest.mark.linux, pytest.mark.timeout(300)]

SESSION, OWNER = str(new_id()), str(new_id())
SECRET = {"name": "YARDMASTER_TOKEN", "env": "YARDMASTER_TOKEN", "file": "", "value": "the-users-own-token"}
LISTEN = """
import socket
with socket.create_server(("0.0.0.0", 0)) as server:
    print(server.getsockname()[0])
"""
SEEN = "import json, os, sys; print(json.dumps([sys.prefix, os.getcwd(), dict(os.environ)]))"


@pytest.fixture
def engine(tmp_path: Path) -> LocalEngine:
    return LocalEngine(
        tmp_path / "engine", python=task_python(), workbench_python=workbench_python(), cpus=2, memory=8 << 30,
        control_group="",
    )  # fmt: skip


@contextlib.contextmanager
def running(engine: LocalEngine, key: JobKey) -> Iterator[Jupyter]:
    roles = {Role.WORKER: RoleSpec(1, Resources(cpu=1, memory=2 << 30))}
    options = {"session": SESSION, "owner": OWNER}
    spec = TrainingSpec(
        "s", Strategy.SERVICE, roles, None, "", program=JUPYTER, options=options, grace_period=timedelta(seconds=20)
    )
    home = engine.root / "workbench" / str(key.namespace_id) / OWNER
    with FakeTaskPortal() as portal:
        portal.orders("", code=None, secrets=[SECRET])
        portal.order["spec"] = spec_to_json(spec)
        engine.submit(spec, key, TaskAccess(portal.url, TOKEN))
        try:
            yield Jupyter(socket_of_task(engine.root / "runs" / key.name), home, SESSION)
            engine.stop(key, spec.grace_period)
            begun = time.monotonic()
            until_ended(engine, key)
            assert time.monotonic() - begun < 20
        finally:
            engine.clean_up(key)


def until_ended(engine: LocalEngine, key: JobKey) -> None:
    deadline = time.monotonic() + PATIENCE
    while not all(one.phase.is_ended for one in engine.observe([key])[key].tasks):
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.long
def test_the_runner_runs_it_with_a_python_of_the_task_and_a_home_that_outlives_it(engine: LocalEngine):
    key = new_key()
    with running(engine, key) as jupyter:
        prefix, folder, seen = json.loads(jupyter.run(SEEN))
        assert prefix == f"{engine.root}/runs/{key.name}/tasks/worker-0/work/python"
        assert folder == seen["HOME"] == str(jupyter.home)
        assert seen["YARDMASTER_TOKEN"] == "the-users-own-token"
        assert TOKEN not in json.dumps(seen), "the task's own token is the runner's alone"
        assert jupyter.run(LISTEN) == "127.0.0.1\n", "what a cell starts is reached from this machine alone"
        jupyter.run("open('kept.txt', 'w').write('mine')")
        jupyter.close()
    again = JobKey(key.namespace_id, new_id(), 1)
    with running(engine, again) as jupyter:
        assert jupyter.run("print(open('kept.txt').read())") == "mine\n"
        jupyter.close()
    whose = (key.namespace_id, uuid.UUID(OWNER))
    assert engine.home_use(*whose).size > 0
    assert engine.remove_home(*whose)
    assert not jupyter.home.exists()
