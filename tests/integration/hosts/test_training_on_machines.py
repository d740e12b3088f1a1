"""A real distributed training over three machines, through a real portal."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from portal.env import task_python
from tests.real.digits import EXAMPLE, digits
from tests.real.machines import Machines, machines
from tests.real.portal import WHOLE, real_portal
from tests.real.scene import QUICK, Scene, until

pytestmark = [pytest.mark.ssh, pytest.mark.slow, pytest.mark.tensorflow, pytest.mark.timeout(400)]
COUNT = 3


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Scene, Machines]]:
    """Machines with space for one task each, and a portal that has them."""
    folder = tmp_path_factory.mktemp("training")
    entry = f'cores = 0.6\ntask_python = "{task_python()}"'
    with machines(folder / "machines", COUNT, entry) as made:
        home = folder / "home"
        shutil.copytree(made.portal, home / "hosts")
        told = {"YARDMASTER_HOSTS": str(made.file), "YARDMASTER_ALLOWED_HOSTS": f"127.0.0.1,{made.gateway}"}
        with real_portal(home, WHOLE, {**QUICK, **told}, host=made.gateway) as portal:
            one = Scene(portal, portal.token_of("admin", is_staff=True))
            with one.client:
                yield one, made


def listening(made: Machines) -> dict[int, set[str]]:
    """The addresses on which anything but its SSH server listens, by number of the machine."""
    found = {}
    for number in range(1, COUNT + 1):
        command = ["ip", "netns", "exec", made.space(number), "ss", "-Hltn"]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        places = [line.split()[3].rpartition(":") for line in lines]
        found[number] = {host.strip("[]").removeprefix("::ffff:") for host, _, port in places if port != "22"}
    return found


@pytest.mark.long
def test_digits_are_learned_over_three_machines(training: tuple[Scene, Machines], tmp_path: Path):
    one, made = training
    data = one.client.datasets.put("digits", [digits(tmp_path / "digits")]).latest
    code = one.client.code.put("digits", [EXAMPLE]).latest
    assert data is not None
    assert code is not None
    spec = yaml.safe_load((EXAMPLE / "between_graph.yaml").read_text())
    spec |= {"code": code.id, "inputs": [{"dataset_version": data.id}], "reclaim_delay": 1}
    for role in spec["roles"].values():
        role["cpu"] = 0.5
    job = one.client.jobs.launch(spec, engine="hosts")
    until(lambda: any("step" in line for line in one.lines(job)), 120)
    assert {task["node"] for task in one.client.jobs.tasks(job.id)} == {"m1", "m2", "m3"}
    network = made.gateway.rsplit(".", 1)[0]
    for number, addresses in listening(made).items():
        assert f"{network}.{10 + number}" in addresses  # TensorFlow's server
        assert addresses <= {f"{network}.{10 + number}", "127.0.0.1", "127.0.0.53"}
    done = one.settled(job, 200)
    assert done.phase == "SUCCEEDED", done.message
    said = "\n".join(one.lines(job))
    accuracy = re.search(r"test accuracy ([01]\.\d+)", said)
    assert accuracy is not None
    assert float(accuracy[1]) > 0.9
    assert not list(made.folder.glob("*/home/.yardmaster/runs/*"))
