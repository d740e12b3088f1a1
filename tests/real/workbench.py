"""What stands behind the proxy of the workbench, in tests: a gate that asks for the proof, and programs behind it.

The gate is the smallest that keeps to `yardmaster_runner.gate_protocol`; the runner has its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import uvicorn

from apps.workbench.proxy.application import Workbench
from apps.workbench.proxy.contract import Admitted, Entered, Refusal
from apps.workbench.proxy.origins import Origins, origins
from portal.web import workbench_server
from tests.real.portal import free_port
from yardmaster.engines.base import Address
from yardmaster_runner import gate_protocol

KEY = "the key of this session"
COOKIE = "good"
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Gate:
    """A listener on loopback that lets through who proves that they know the key."""

    def __init__(self, handler: Handler, key: str = KEY) -> None:
        self._handler, self._key = handler, key
        self.refused = self.opened = 0
        self.open: set[asyncio.StreamWriter] = set()
        """Of connections that are let through now."""
        self.tasks: set[asyncio.Task[None] | None] = set()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.tasks.add(asyncio.current_task())
        try:
            place = gate_protocol.place_of(writer.get_extra_info("sockname"))
            nonce = gate_protocol.nonce_in(await reader.readline())
            own = gate_protocol.new_nonce()
            writer.write(gate_protocol.answer(self._key, place, nonce or "", own))
            if not gate_protocol.proves(self._key, place, nonce or "", own, await reader.readline()):
                self.refused += 1
                return
            self.opened += 1
            self.open.add(writer)
            await self._handler(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self.tasks.discard(asyncio.current_task())
            self.open.discard(writer)
            writer.transport.abort()


@contextlib.asynccontextmanager
async def gate(handler: Handler, key: str = KEY) -> AsyncIterator[tuple[Gate, Address]]:
    """A gate with this program behind it, and where it listens."""
    one = Gate(handler, key)
    server = await asyncio.start_server(one.connected, "127.0.0.1", 0)
    try:
        yield one, Address("127.0.0.1", server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for task in tuple(one.tasks):
            assert task is not None
            task.cancel()
            await asyncio.wait([task])


async def ask_often(
    ask: Callable[[], Awaitable[bytes]], *, seconds: float, times: int = 20, starts: bytes = b"", ends: bytes = b""
) -> None:
    """Of the answers one in ten may take longer than `seconds`, as where the machine is slow for a while, and none
    longer than 15 seconds."""
    took = []
    for _ in range(times):
        begun = time.monotonic()
        async with asyncio.timeout(15):
            answer = await ask()
        took.append(time.monotonic() - begun)
        assert answer.startswith(starts)
        assert answer.endswith(ends)
    assert sum(one > seconds for one in took) <= times // 10, took


def piped_to(path: Path) -> Handler:
    """The program that listens on this unix socket."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, there = await asyncio.open_unix_connection(path)
        try:
            ways = [asyncio.create_task(_copy(reader, there)), asyncio.create_task(_copy(back, writer))]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        finally:
            there.transport.abort()

    return handler


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()


@contextlib.asynccontextmanager
async def running(config: uvicorn.Config) -> AsyncIterator[uvicorn.Server]:
    """A server in this event loop."""
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server._serve())
    while not server.started:
        if serving.done():
            serving.result()
        await asyncio.sleep(0.01)
    try:
        yield server
    finally:
        server.should_exit = True
        await serving


@contextlib.asynccontextmanager
async def program(app: Any, path: Path, **options: Any) -> AsyncIterator[Handler]:
    """An ASGI application on a unix socket, as a program that is served behind a gate."""
    config = uvicorn.Config(
        app, uds=str(path), lifespan="off", log_level="warning", ws_per_message_deflate=False, **options
    )
    async with running(config):
        yield piped_to(path)


class Sessions:
    """Who may pass, in memory: any session that was put here, with the cookie `good`."""

    def __init__(self) -> None:
        self.of: dict[uuid.UUID, Admitted | Exception] = {}
        self.used: list[uuid.UUID] = []
        self.asked = 0

    def put(self, address: Address, key: str = KEY, session_id: uuid.UUID | None = None) -> uuid.UUID:
        session_id, user_id = session_id or uuid.uuid4(), uuid.uuid4()
        caller = {"user": SimpleNamespace(pk=user_id), "session": SimpleNamespace(session_key="none")}
        self.of[session_id] = Admitted(session_id, user_id, address, key, caller)
        return session_id

    async def admit(self, session_id: uuid.UUID, cookie: str, whence: Callable[[], str] = str) -> Admitted:
        self.asked += 1
        found = self.of.get(session_id)
        if cookie != COOKIE or found is None:
            raise Refusal(401, "not_signed_in", "Not signed in", "The cookie is not good.")
        if isinstance(found, Exception):
            raise found
        return found

    async def enter(self, session_id: uuid.UUID, ticket: str, entries: Sequence[str]) -> Entered:
        self.entries = list(entries)
        if ticket != "ticket":
            raise Refusal(403, "ticket_not_valid", "Open the session again", "The ticket is over.")
        return Entered(COOKIE)


@contextlib.asynccontextmanager
async def workbench(sessions: Sessions, *, behind: int | None = None, **options: Any) -> AsyncIterator[Origins]:
    """The proxy, served as the web process serves it. Names below `localhost` need not resolve: connect to the port
    of the origins on 127.0.0.1. `behind`: where it listens itself, if something else listens at that port."""
    port = free_port()
    places = origins(f"http://*.localhost:{port}", "http://127.0.0.1:8080")
    app = Workbench(places, sessions.admit, sessions.enter, sessions.used.append, **options)
    async with running(workbench_server(app, "127.0.0.1", behind or port)):
        yield places
