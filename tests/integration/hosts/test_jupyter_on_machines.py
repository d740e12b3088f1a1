"""A real JupyterLab on a machine that is reached by SSH alone: its gate is reached from the portal, and its files stay on
the machine where it ran."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from portal.env import workbench_python
from tests.contract.engine_harness import new_key
from tests.integration.runner.fake_task_portal import TOKEN, FakeTaskPortal
from tests.integration.workbench.jupyter_session import PATIENCE, Jupyter, socket_of_task
from tests.real.machines import Machines, machines
from yardmaster.engines.base import TaskAccess
from yardmaster.engines.hosts import HostsEngine
from yardmaster.errors import Misconfigured
from yardmaster.ids import JobKey, new_id
from yardmaster.job.programs import JUPYTER
from yardmaster.job.spec import Resources, Role, RoleSpec, Strategy, TrainingSpec
from yardmaster.job.spec_json import spec_to_json

pytestmark = [pytest.mark.ssh, pytest.mark.slow, pytest.mark.workbench, pytest.mark.timeout(300)]
SESSION, OWNER = str(new_id()), new_id()


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Machines]:
    """The second has JupyterLab: that of this checkout, as if it had been installed there."""
    with machines(tmp_path, 2, 'cores = 2\ntask_python = "python3"') as made:
        installed = made.home(2) / ".yardmaster" / "environments" / "digest" / "python" / "bin"
        installed.mkdir(parents=True)
        (installed / "python").write_text(f'#!/bin/sh\nexec {workbench_python()} "$@"\n')
        (installed / "python").chmod(0o755)
        (installed.parents[2] / "workbench").symlink_to("digest")
        yield made


@pytest.fixture
def engine(two: Machines) -> Iterator[HostsEngine]:
    made = HostsEngine(two.portal, two.file, owner="the tests")
    made.capacity()
    yield made
    made.close()


def spec() -> TrainingSpec:
    roles = {Role.WORKER: RoleSpec(1, Resources(cpu=1, memory=2 << 30))}
    options = {"session": SESSION, "owner": str(OWNER)}
    return TrainingSpec(
        "s", Strategy.SERVICE, roles, None, "", program=JUPYTER, options=options, grace_period=timedelta(seconds=20)
    )


@contextlib.contextmanager
def running(engine: HostsEngine, two: Machines, key: JobKey) -> Iterator[Jupyter]:
    with FakeTaskPortal(two.gateway) as portal:
        portal.orders("", code=None)
        portal.order["spec"] = spec_to_json(spec())
        engine.submit(spec(), key, TaskAccess(portal.url, TOKEN))
        try:
            run = two.home(2) / ".yardmaster" / "runs" / key.name
            yield Jupyter(socket_of_task(run), home_of(two, key), SESSION)
            engine.stop(key, timedelta(seconds=20))
            deadline = time.monotonic() + PATIENCE
            while not all(one.phase.is_ended for one in engine.observe([key])[key].tasks):
                assert time.monotonic() < deadline
                time.sleep(0.1)
        finally:
            engine.clean_up(key)


def home_of(two: Machines, key: JobKey) -> Path:
    return two.home(2) / ".yardmaster" / "workbench" / str(key.namespace_id) / str(OWNER)


@pytest.mark.long
def test_a_notebook_runs_on_the_machine_that_has_jupyterlab_and_finds_its_files_there_again(
    engine: HostsEngine, two: Machines
):
    assert [one.has_workbench for one in engine.survey()] == [False, True]
    key = new_key()
    with running(engine, two, key) as jupyter:
        assert engine.observe([key])[key].tasks[0].node == "m2"
        address = engine.address(spec(), key, Role.WORKER, 0)
        assert address is not None
        assert address.host.startswith("10.77.")
        jupyter.run("open('kept.txt', 'w').write('mine')")
        jupyter.close()
    again = JobKey(key.namespace_id, new_id(), 1)
    with running(engine, two, again) as jupyter:
        assert jupyter.run("print(open('kept.txt').read())") == "mine\n"
        jupyter.close()
    whose = (key.namespace_id, uuid.UUID(str(OWNER)))
    assert engine.home_use(*whose).size > 0
    moved = home_of(two, key).rename(two.home(2) / "elsewhere")
    with pytest.raises(Misconfigured, match="are not there any more"):
        engine.submit(spec(), JobKey(key.namespace_id, new_id(), 1), TaskAccess("http://127.0.0.1:9", TOKEN))
    moved.rename(home_of(two, key))
    assert engine.remove_home(*whose)
    assert not home_of(two, key).exists()
