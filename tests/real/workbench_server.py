"""The proxy in a process of its own, with one session that anyone with the cookie `good` may look at."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import uuid
from collections.abc import Iterator

import uvicorn

from apps.workbench.proxy.application import Workbench
from apps.workbench.proxy.origins import Origins, origins
from portal.web import workbench_server
from tests.real.portal import ROOT, free_port
from tests.real.workbench import KEY, Sessions
from yardmaster.engines.base import Address

_RUN = "import django; django.setup(); from tests.real.workbench_server import main; main()"


def places_at(port: int) -> Origins:
    return origins(f"http://*.localhost:{port}", "http://127.0.0.1:8080")


@contextlib.contextmanager
def own_process(gate_port: int, session_id: uuid.UUID, key: str = KEY) -> Iterator[tuple[Origins, int]]:
    """The origins of one that runs, and its process id."""
    port = free_port()
    command = [sys.executable, "-c", _RUN, str(port), str(gate_port), str(session_id), key]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield places_at(port), process.pid
        finally:
            process.kill()


async def _serve(port: int, gate_port: int, session_id: uuid.UUID, key: str) -> None:
    sessions = Sessions()
    made = sessions.put(Address("127.0.0.1", gate_port), key, session_id)
    app = Workbench(places_at(port), sessions.admit, sessions.enter, lambda _: None)
    server = uvicorn.Server(workbench_server(app, "127.0.0.1", port))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    assert made == session_id
    print("ready", flush=True)
    await serving


def main() -> None:
    """The other process: its arguments are the proxy's port, the gate's, the session and its key. It says `ready`."""
    port, gate_port, session_id = int(sys.argv[1]), int(sys.argv[2]), uuid.UUID(sys.argv[3])
    loop = workbench_server(None, "127.0.0.1", port).get_loop_factory()
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(_serve(port, gate_port, session_id, sys.argv[4]))
