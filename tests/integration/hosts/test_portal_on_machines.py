"""A real portal whose jobs run on machines: it is stopped, and a machine is lost for good."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.real.machines import Machines, machines
from tests.real.portal import WHOLE, real_portal
from tests.real.scene import QUICK, SMALL, Scene, until

pytestmark = [pytest.mark.ssh, pytest.mark.slow, pytest.mark.timeout(400)]
SCRIPT = """
import os, sys, time
print("begun on attempt", flush=True)
while not os.path.exists({path!r}):
    time.sleep(0.1)
print("ended", flush=True)
"""


@pytest.fixture(scope="module")
def park(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Scene, Machines]]:
    """Three machines with space for two small tasks each, and a portal that has them."""
    folder = tmp_path_factory.mktemp("park")
    with machines(folder / "machines", 3, 'cores = 0.25\ntask_python = "python3"') as made:
        home = folder / "home"
        shutil.copytree(made.portal, home / "hosts")
        told = {
            "YARDMASTER_HOSTS": str(made.file),
            "YARDMASTER_ALLOWED_HOSTS": f"127.0.0.1,{made.gateway}",
            "YARDMASTER_HOSTS_LOST_AFTER": "10",
        }
        with real_portal(home, WHOLE, {**QUICK, **told}, host=made.gateway) as portal:
            one = Scene(portal, portal.token_of("admin", is_staff=True))
            with one.client:
                yield one, made


def launched(one: Scene, path: str, workers: int, **changes: object):
    code = one.put_code({"main.py": SCRIPT.format(path=path)})
    spec = one.spec(code, strategy="batch", roles={"worker": {**SMALL, "replicas": workers}}, **changes)
    return one.client.jobs.launch(spec, engine="hosts")


def nodes(one: Scene, job) -> dict[int, str]:
    return {task["index"]: task["node"] for task in one.client.jobs.tasks(job.id)}


def is_running(one: Scene, job, workers: int) -> bool:
    tasks = one.client.jobs.tasks(job.id)
    return len(tasks) == workers and all(task["phase"] == "RUNNING" for task in tasks)


def test_a_job_runs_on_while_the_portal_is_stopped_and_its_log_arrives_afterwards(park, tmp_path):
    one, _ = park
    path = tmp_path / "end"
    job = launched(one, str(path), 3)
    until(lambda: is_running(one, job, 3))
    one.portal.stop()
    path.touch()
    one.portal.start_stopped()
    assert one.settled(job, 120).phase == "SUCCEEDED"
    assert [one.lines(job, index=index)[-1] for index in range(3)] == ["ended"] * 3


@pytest.mark.long
def test_tasks_of_a_machine_that_is_lost_for_good_run_to_their_end_elsewhere(park, tmp_path):
    one, made = park
    path = tmp_path / "end"
    job = launched(one, str(path), 3, retries=3)
    until(lambda: is_running(one, job, 3))
    gone = nodes(one, job)[2]
    lost = [index for index, node in nodes(one, job).items() if node == gone]
    made.crash(int(gone[1:]))
    try:
        until(
            lambda: gone not in nodes(one, job).values() and is_running(one, job, 3), 150, "a start on another machine"
        )
        restarts = {task["index"]: task["restarts"] for task in one.client.jobs.tasks(job.id)}
        assert {index for index, count in restarts.items() if count} == set(lost)
        path.touch()
        assert one.ended(job, 120).phase == "SUCCEEDED"
    finally:
        made.boot(int(gone[1:]))
    until(lambda: not list(made.home(int(gone[1:])).glob(".yardmaster/runs/*")), 120, "the old part to be removed")
