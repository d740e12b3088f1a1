"""Connections to programs end with what they are for, whatever the program does."""

from __future__ import annotations

import asyncio
import socket
import uuid
from typing import Any

import pytest

from apps.workbench.proxy import gate_connection
from apps.workbench.proxy.contract import Admitted
from apps.workbench.proxy.socket_upstream import SocketUpstream
from tests.integration.workbench.test_sockets_that_hold import opened
from tests.integration.workbench.test_streams import handshake
from tests.real.workbench import Sessions, gate, workbench
from yardmaster.engines.base import Address

PINGS = (b"\x89\x7d" + bytes(125)) * 500


async def test_a_connection_that_cannot_be_used_is_closed(monkeypatch: pytest.MonkeyPatch):
    made, other = socket.socketpair()

    async def through_gate(address: Address, key: str) -> socket.socket:
        return made

    async def open_connection(**options: Any) -> None:
        raise OSError("too many open files")

    monkeypatch.setattr(gate_connection, "through_gate", through_gate)
    monkeypatch.setattr(asyncio, "open_connection", open_connection)
    one = Admitted(uuid.uuid4(), uuid.uuid4(), Address("127.0.0.1", 1), "", {})
    with other, pytest.raises(OSError, match="too many"):
        await SocketUpstream.opened(one, "ws://session/", [], [])
    assert made.fileno() == -1


async def test_a_program_that_pings_and_reads_nothing_does_not_keep_what_its_client_has_left():
    is_full = asyncio.Event()

    async def pings(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        writer.write(handshake(await reader.readuntil(b"\r\n\r\n")))
        while True:
            writer.write(PINGS)
            draining = asyncio.ensure_future(writer.drain())
            if not (await asyncio.wait([draining], timeout=1))[0]:
                is_full.set()  # the proxy waits until its answers are read
            await draining

    sessions = Sessions()
    async with gate(pings) as (one, address), workbench(sessions) as places, asyncio.timeout(60):
        _, writer = await opened(places, sessions.put(address))
        await is_full.wait()
        writer.transport.abort()
        async with asyncio.timeout(15):
            while one.open:
                await asyncio.sleep(0.01)
