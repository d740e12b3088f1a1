"""The web process: `python -m portal.web --host … --port … --workbench-port …`.

Two servers in one event loop, which begin and end together: the portal, and the sessions of the workbench on a port,
and so an origin, of their own. Not here: what each answers (`asgi`, `workbench_asgi`).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
from collections.abc import Iterator
from types import FrameType
from typing import Any

from uvicorn import Config, Server

from apps.accounts.socket_memory import LONGEST_SESSION_MESSAGE

GRACE = 3
"""Seconds that requests under way have when the process ends."""


def portal_server(app: Any, host: str, port: int) -> Config:
    """How the portal is served. What clients send over its WebSockets is a few words."""
    return _config(app, host, port, ws_max_size=64 << 10, ws_max_queue=8)


def workbench_server(app: Any, host: str, port: int) -> Config:
    """How sessions are served. Their answers are passed as they are, with their own dates."""
    return _config(app, host, port, server_header=False, date_header=False, ws_max_size=LONGEST_SESSION_MESSAGE)


def _config(app: Any, host: str, port: int, **more: Any) -> Config:
    return Config(
        app,
        host=host,
        port=port,
        http="portal.bounded_head:BoundedHead",
        ws="portal.bounded_sockets:BoundedSocket",
        access_log=False,
        log_level="warning",
        # Whom to believe is said in the settings; uvicorn would believe every client on this machine.
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE,
        ws_ping_interval=25,
        # Fifty followers get the same frame: compressing it once for each costs more than all the rest.
        ws_per_message_deflate=False,
        **more,
    )


class _Second(Server):
    """A server that leaves signals to the first."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _First(Server):
    """A server that ends another one with itself."""

    def __init__(self, config: Config, second: Server) -> None:
        super().__init__(config)
        self._second = second

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self._second.should_exit, self._second.force_exit = self.should_exit, self.force_exit


async def serve(portal: Config, workbench: Config) -> None:
    """Both, until SIGTERM or SIGINT. A port that is taken ends the process."""
    second = _Second(workbench)
    first = _First(portal, second)
    await asyncio.gather(first.serve(), second.serve())


def main() -> None:
    parser = argparse.ArgumentParser(prog="portal.web", description="Serves the portal and the workbench.")
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--workbench-port", type=int, required=True)
    options = parser.parse_args()
    workbench = workbench_server("portal.workbench_asgi:application", options.host, options.workbench_port)
    portal = portal_server("portal.asgi:application", options.host, options.port)
    workbench.load()  # before the portal, whose module keeps all that is loaded from the garbage collector
    portal.load()
    # It sends itself the signal again that it has ended on.
    with contextlib.suppress(KeyboardInterrupt), asyncio.Runner(loop_factory=portal.get_loop_factory()) as runner:
        runner.run(serve(portal, workbench))


if __name__ == "__main__":
    main()
