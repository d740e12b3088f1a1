"""A real JupyterLab on a machine that is reached by SSH alone, whose files stay on the machine where it ran."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest

from portal.env import workbench_python
from tests.contract.engine_harness import new_key
from tests.integration.hosts.gates import gate_at
from tests.integration.hosts.test_spark_on_machines import install
from tests.integration.runner.fake_task_portal import TOKEN, FakeTaskPortal
from tests.integration.workbench.jupyter_session import PATIENCE, Jupyter
from tests.real.machines import Machines, machines
from yardmaster.engines.base import TaskAccess
from yardmaster.engines.hosts import HostsEngine
from yardmaster.errors import Misconfigured, SpecRejected
from yardmaster.ids import JobKey, new_id
from yardmaster.job.programs import JUPYTER
from yardmaster.job.spec import Option, Resources, Role, RoleSpec, Strategy, TrainingSpec
from yardmaster.job.spec_json import spec_to_json
from yardmaster_runner.service_token import service_token

pytestmark = [pytest.mark.ssh, pytest.mark.slow, pytest.mark.workbench, pytest.mark.timeout(500)]
SESSION, OWNER = str(new_id()), new_id()
SMALL = Resources(cpu=1, memory=2 << 30)


BEGIN = "from pyspark.sql import SparkSession; spark = SparkSession.builder.getOrCreate()"
ON_EXECUTORS = """
import socket
where = spark.sparkContext.parallelize([0], 1).map(lambda one: socket.gethostname()).first()
print("on", where, "at", spark.sparkContext.master.rpartition(":")[0])
"""


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


def spec(size: Resources = SMALL, **options: Option) -> TrainingSpec:
    all_options = {"session": SESSION, "owner": str(OWNER), **options}
    return TrainingSpec(
        "s", Strategy.SERVICE, {Role.WORKER: RoleSpec(1, size)}, None, "", program=JUPYTER, options=all_options,
        requirements=(), grace_period=timedelta(seconds=20),
    )  # fmt: skip


def spec_with_executor() -> TrainingSpec:
    size = Resources(cpu=1, memory=3 << 30)
    return spec(size, spark_executors=1, cores=1, memory=size.memory)


@contextlib.contextmanager
def running(engine: HostsEngine, two: Machines, key: JobKey, asked: TrainingSpec | None = None) -> Iterator[Jupyter]:
    asked = asked or spec()
    with FakeTaskPortal(two.gateway) as portal:
        portal.orders("", code=None)
        portal.order["spec"] = spec_to_json(asked)
        engine.submit(asked, key, TaskAccess(portal.url, TOKEN))
        try:
            address = engine.address(asked, key, Role.WORKER, 0)
            assert address is not None
            with gate_at(address, service_token(TOKEN)) as path:
                jupyter = Jupyter(path, home_of(two, key), SESSION)
                until(lambda: answers(jupyter))
                yield jupyter
            engine.stop(key, timedelta(seconds=20))
            until(lambda: all(one.phase.is_ended for one in engine.observe([key])[key].tasks))
        finally:
            engine.clean_up(key)


def answers(jupyter: Jupyter) -> bool:
    with contextlib.suppress(httpx2.TransportError), jupyter.stranger() as client:
        return client.get("api").status_code == 200
    return False


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 2 * PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.2)


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
        jupyter.run("open('kept.txt', 'w').write('mine')")
        assert jupyter.run("import yardmaster_client; print(yardmaster_client.Yardmaster.__name__)") == "Yardmaster\n"
        assert list((home_of(two, key) / "Starter notebooks").glob("*.ipynb"))
        jupyter.close()
    again = JobKey(key.namespace_id, new_id(), 1)
    with running(engine, two, again) as jupyter:
        assert jupyter.run("print(open('kept.txt').read())") == "mine\n"
        jupyter.close()
    whose = (key.namespace_id, uuid.UUID(str(OWNER)))
    assert engine.home_use(*whose).size > 0
    moved = home_of(two, key).rename(two.home(2) / "elsewhere")
    with pytest.raises(Misconfigured, match="are no longer there"):
        engine.submit(spec(), JobKey(key.namespace_id, new_id(), 1), TaskAccess("http://127.0.0.1:9", TOKEN))
    moved.rename(home_of(two, key))
    assert engine.remove_home(*whose)
    assert not home_of(two, key).exists()


@pytest.mark.long
@pytest.mark.spark
def test_a_notebook_with_executors_runs_where_both_are_and_drives_them_there(engine: HostsEngine, two: Machines):
    install(two, 1)
    engine.capacity()
    with pytest.raises(SpecRejected, match="None of the machines has both JupyterLab and Spark"):
        engine.submit(spec_with_executor(), new_key(), TaskAccess("http://127.0.0.1:9", TOKEN))
    install(two, 2, "spark-digest")
    assert [(one.has_workbench, one.has_spark) for one in engine.survey()] == [(False, True), (True, True)]
    key = new_key()
    with running(engine, two, key, spec_with_executor()) as jupyter:
        assert engine.observe([key])[key].tasks[0].node == "m2"
        kernel = jupyter.start_kernel()
        jupyter.run(BEGIN, kernel)
        assert jupyter.run(ON_EXECUTORS, kernel).splitlines()[-1] == "on m2 at spark://127.0.0.1"
        jupyter.close()
