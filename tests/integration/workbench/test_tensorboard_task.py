"""A TensorBoard session's task as an engine starts it: a real runner, its gate, TensorBoard, and files of a portal."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from portal.env import task_python
from tests.integration.runner.conftest import Task
from tests.integration.runner.fake_task_portal import TOKEN, FakeTaskPortal
from tests.real.portal import free_port
from tests.unit.runner.event_writer import event, framed, scalar
from yardmaster_runner.gate_protocol import greeting, new_nonce, place_of, proof_of_portal
from yardmaster_runner.service_token import service_token

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow, pytest.mark.linux]

SESSION = "0193e5a4-0000-7000-8000-000000000001"
PATH = "digits-1/events.out.tfevents.1700000000.host"


@pytest.fixture
def portal() -> Iterator[FakeTaskPortal]:
    with FakeTaskPortal() as one:
        yield one


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.05)


def lists(portal: FakeTaskPortal, segments: list[bytes]) -> None:
    """The portal has these segments of one event file from now on."""
    found, start = [], 0
    for number, one in enumerate(segments):
        portal.files[f"segment-{number}"] = one
        found.append({"start": start, "size": len(one), "url": f"{portal.url}/objects/segment-{number}"})
        start += len(one)
    files = [{"path": PATH, "size": start, "segments": found}]
    answer = {"cursor": "1", "more": False, "wait": 1.0, "folders": ["digits-1"], "files": files}

    def in_between(method: str, path: str) -> tuple[int, str, bytes] | None:
        return (200, "application/json", json.dumps(answer).encode()) if path == "board/" else None

    portal.in_between = in_between


def get(port: int, path: str) -> object:
    """The JSON at this path, through the gate; None while there is none."""
    one = HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        one.connect()
        nonce = new_nonce()
        one.sock.sendall(greeting(nonce))
        proof = proof_of_portal(service_token(TOKEN), place_of(one.sock.getpeername()), nonce, one.sock.recv(200))
        assert proof is not None
        one.sock.sendall(proof)
        one.request("GET", f"/w/{SESSION}/data/{path}")
        answer = one.getresponse()
        return json.load(answer) if answer.status == 200 else None
    except OSError:
        return None
    finally:
        one.close()


@pytest.mark.parametrize("loopback_only", ["1", "0"])
def test_a_session_shows_the_files_of_the_portal_and_new_steps_as_they_come(
    tmp_path: Path, portal: FakeTaskPortal, loopback_only: str
):
    port = free_port()
    task = Task(
        tmp_path, portal,
        {
            "YARDMASTER_PYTHON": task_python(), "YARDMASTER_LOOPBACK_ONLY": loopback_only,
            "YARDMASTER_CLUSTER": json.dumps({"worker": [f"127.0.0.1:{port}"]}),
        },
    )  # fmt: skip
    options = {"session": SESSION, "bytes": 1 << 20}
    portal.orders("", spec_strategy="service", spec_program="tensorboard", spec_options=options, code=None)
    steps = [framed(event(step=step, time=time.time(), summary=[scalar("loss", 0.5)])) for step in range(3)]
    lists(portal, steps[:2])
    process = task.start()

    def points() -> int:
        found = get(port, "plugin/scalars/scalars?run=digits-1&tag=loss")
        return len(found) if isinstance(found, list) else 0

    until(lambda: points() == 2)
    lists(portal, steps)
    until(lambda: points() == 3, 10)
    process.terminate()
    _, said = process.communicate(timeout=20)
    assert process.returncode == 143, said
    log = b"\n".join(portal.lines()).decode()
    assert "yardmaster: 1 event files (0.0 MB) of 1 jobs are here" in log
    assert "answers; starting took" in log
    assert TOKEN not in log
    assert not (tmp_path / "work/service").exists()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 5)
