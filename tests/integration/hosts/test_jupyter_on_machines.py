"""A real JupyterLab on a machine that is reached by SSH alone, whose files stay on the machine where it ran."""

from __future__ import annotations

import contextlib
import socket
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest

from portal.env import workbench_python
from tests.contract.engine_harness import new_key
from tests.integration.runner.fake_task_portal import TOKEN, FakeTaskPortal
from tests.integration.workbench.jupyter_session import PATIENCE, Jupyter
from tests.real.machines import Machines, machines
from yardmaster.engines.base import Address, TaskAccess
from yardmaster.engines.hosts import HostsEngine
from yardmaster.errors import Misconfigured
from yardmaster.ids import JobKey, new_id
from yardmaster.job.programs import JUPYTER
from yardmaster.job.spec import Resources, Role, RoleSpec, Strategy, TrainingSpec
from yardmaster.job.spec_json import spec_to_json
from yardmaster_runner.gate_protocol import greeting, new_nonce, place_of, proof_of_portal
from yardmaster_runner.service_token import service_token

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
def gate_at(address: Address) -> Iterator[str]:
    """A unix socket whose connections lead through the session's gate, as those of the portal do."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{folder}/s")
        server.listen()
        threading.Thread(target=pass_all, args=(server, address), daemon=True).start()
        yield f"{folder}/s"
        server.shutdown(socket.SHUT_RDWR)


def pass_all(server: socket.socket, address: Address) -> None:
    with contextlib.suppress(OSError):
        while True:
            browser = server.accept()[0]
            threading.Thread(target=pass_one, args=(browser, address), daemon=True).start()


def pass_one(browser: socket.socket, address: Address) -> None:
    with contextlib.suppress(OSError), browser, socket.create_connection((address.host, address.port)) as gate:
        nonce = new_nonce()
        gate.sendall(greeting(nonce))
        proof = proof_of_portal(service_token(TOKEN), place_of(gate.getpeername()), nonce, gate.recv(200))
        assert proof is not None
        gate.sendall(proof)
        threading.Thread(target=pass_bytes, args=(browser, gate), daemon=True).start()
        pass_bytes(gate, browser)


def pass_bytes(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def running(engine: HostsEngine, two: Machines, key: JobKey) -> Iterator[Jupyter]:
    with FakeTaskPortal(two.gateway) as portal:
        portal.orders("", code=None)
        portal.order["spec"] = spec_to_json(spec())
        engine.submit(spec(), key, TaskAccess(portal.url, TOKEN))
        try:
            address = engine.address(spec(), key, Role.WORKER, 0)
            assert address is not None
            with gate_at(address) as path:
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
    deadline = time.monotonic() + PATIENCE
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
