"""A whole job beside its data: two machines that are reached by SSH, a node of Ignite on each, and a real portal."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator

import pytest

from portal.env import task_python
from tests.integration.ignite.conftest import in_task
from tests.real.ignite import Ignite, ignite_within
from tests.real.machines import Machines, machines
from tests.real.portal import WHOLE, real_portal
from tests.real.scene import QUICK, Scene

pytestmark = [
    pytest.mark.ignite, pytest.mark.ssh, pytest.mark.tensorflow, pytest.mark.slow, pytest.mark.timeout(500),
]  # fmt: skip
ROWS = 300
SCRIPT = """
import json, os
from yardmaster_runner import data

keys = sorted(int(row["key"]) for row in data.ignite(batch=None, fields=["key"], connections=2))
with open(os.environ["YARDMASTER_DATA"]) as file:
    print("machines", json.dumps(json.load(file)["machines"]))
print("keys", json.dumps(keys))
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Scene, Machines, Ignite]]:
    """Each machine has space for one of the job's tasks."""
    folder = tmp_path_factory.mktemp("beside")
    entry = f'cores = 1.5\ntask_python = "{task_python()}"'
    with machines(folder / "machines", 2, entry) as made:
        addresses = {made.space(number): made.address(number) for number in (1, 2)}
        with ignite_within(folder / "ignite", addresses) as server:
            server.fill(f"longs one-longs 0 {ROWS}")
            home = folder / "home"
            shutil.copytree(made.portal, home / "hosts")
            told = {
                "YARDMASTER_HOSTS": str(made.file),
                "YARDMASTER_ALLOWED_HOSTS": f"127.0.0.1,{made.gateway}",
                "YARDMASTER_IGNITE_HOSTS": ",".join(addresses.values()),
                "YARDMASTER_IGNITE_PORTS": "1-65535",
            }
            with real_portal(home, WHOLE, {**QUICK, **told}, host=made.gateway) as portal:
                one = Scene(portal, portal.token_of("admin", is_staff=True))
                with one.client:
                    yield one, made, server


def said(one: Scene, job, index: int) -> dict:
    """What the script of a worker printed, by the first word of each line."""
    lines = one.lines(job, index=index)
    found = dict(line.split(" ", 1) for line in lines if line.startswith(("machines ", "keys ")))
    assert set(found) == {"machines", "keys"}, lines[-20:]
    return {name: json.loads(text) for name, text in found.items()}


@pytest.mark.long
def test_each_worker_reads_what_the_node_of_its_machine_holds_and_every_row_is_read_once(place):
    one, made, server = place
    own = next(space.id for space in one.client.namespaces() if space.personal)
    one.client.connection_set(own, "beside", hosts=f"{server.address}:{server.ports[0]}")
    spec = one.spec(
        one.put_code({"main.py": SCRIPT}), strategy="multi_worker_mirrored",
        roles={"worker": {"cpu": 1, "memory": "1536Mi", "replicas": 2}},
        connection={"name": "beside", "cache": "one-longs"},
    )  # fmt: skip
    job = one.client.jobs.launch(spec, engine="hosts")
    ended = one.ended(job, 300)
    assert ended.phase == "SUCCEEDED", [*one.lines(job)[-20:], *one.lines(job, index=1)[-20:], ended]
    nodes = {task["index"]: task["node"] for task in one.client.jobs.tasks(job.id)}
    assert sorted(nodes.values()) == ["m1", "m2"]
    held = in_task(server, "with_ignite.py", "held", "one-longs")
    assert sorted(held) == [made.address(1), made.address(2)]
    found = {index: said(one, job, index) for index in nodes}
    places = {index: made.address(int(node[1:])) for index, node in nodes.items()}
    for index, address in places.items():
        assert found[index]["machines"] == [places[0], places[1]]
        assert found[index]["keys"] == held[address]
    assert sorted(found[0]["keys"] + found[1]["keys"]) == list(range(ROWS))
