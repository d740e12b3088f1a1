"""WebSockets whose sides send what is costly to parse or to keep: they end, and others do not notice."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator

import pytest

from apps.accounts import socket_memory
from apps.workbench.proxy.contract import Admitted
from apps.workbench.proxy.origins import Origins
from apps.workbench.proxy.socket_upstream import SocketUpstream
from tests.integration.workbench.test_streams import MIB, Streams, asked, client_of, handshake, head
from tests.real.workbench import KEY, Handler, Sessions, ask_often, gate, workbench
from tests.real.workbench_server import own_process

TOO_BIG = (1009).to_bytes(2, "big")
PING = b"\x89"
LONG = 15 * MIB
HEALTH = b"GET /.yardmaster/healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


def upgrade(places: Origins, session_id: uuid.UUID) -> bytes:
    more = (
        f"Origin: {places.of(session_id)}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    )
    return head(places, session_id, more=more)


async def opened(places: Origins, session_id: uuid.UUID) -> Streams:
    reader, writer = await client_of(places)
    writer.write(upgrade(places, session_id))
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101")
    return reader, writer


async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A program that accepts each WebSocket and reads nothing."""
    writer.write(handshake(await reader.readuntil(b"\r\n\r\n")))
    await asyncio.Event().wait()


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A program that reads and says nothing."""
    writer.write(handshake(await reader.readuntil(b"\r\n\r\n")))
    while await reader.read(MIB):
        pass


async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A program that sends the first fragment of a long message, and no more."""
    writer.write(handshake(await reader.readuntil(b"\r\n\r\n")))
    writer.write(b"\x02\x7f" + LONG.to_bytes(8, "big") + bytes(LONG))
    await asyncio.Event().wait()


async def whole(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A program that sends long messages to a client that does not read."""
    writer.write(handshake(await reader.readuntil(b"\r\n\r\n")))
    for _ in range(3):
        writer.write(b"\x82\x7f" + LONG.to_bytes(8, "big") + bytes(LONG))
    await asyncio.Event().wait()


def masked(length: int, first: int = 0x82) -> bytes:
    """The head of a frame of a client."""
    return bytes([first, 0xFF]) + length.to_bytes(8, "big") + bytes(4)


async def sent(writer: asyncio.StreamWriter, data: bytes) -> None:
    with contextlib.suppress(OSError):
        writer.write(data)
        await writer.drain()


async def end_of(reader: asyncio.StreamReader) -> bytes:
    """All that came until the end."""
    read = b""
    with contextlib.suppress(OSError):
        while piece := await reader.read(MIB):
            read = (read + piece)[-200:]
    return read


async def heard(reader: asyncio.StreamReader) -> bytes:
    """What comes first, apart from pings: on a busy machine the portal asks whether its client is there."""
    found = PING
    while found[:1] == PING:
        found = await reader.read(200)
    return found


@pytest.mark.parametrize(("frame", "ends"), [(b"\x00\x80\0\0\0\0", True), (b"\x81\x80\0\0\0\0", False)])
async def test_a_client_that_floods_with_empty_frames_does_not_stop_the_process(frame: bytes, ends: bool):
    session_id = uuid.uuid4()

    async def floods(writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            writer.write(b"\x02\x80\0\0\0\0" if ends else b"")
            while True:
                writer.write(frame * 20_000)
                await writer.drain()

    async with gate(silent) as (_, address), asyncio.timeout(60):
        with own_process(address.port, session_id) as (places, _):
            sockets = [await opened(places, session_id) for _ in range(5)]
            flooding = [asyncio.create_task(floods(writer)) for _, writer in sockets]
            await ask_often(lambda: asked(places, session_id, HEALTH), seconds=2, times=30, ends=b"ok\n")
            if ends:
                for reader, _ in sockets:
                    assert TOO_BIG in await end_of(reader)
            for task, (_, writer) in zip(flooding, sockets, strict=True):
                task.cancel()
                writer.transport.abort()


@contextlib.asynccontextmanager
async def two_sessions(handler: Handler) -> AsyncIterator[tuple[Origins, uuid.UUID, uuid.UUID]]:
    """The session of one user behind whose gate this program is, and that of another with a program that reads."""
    sessions = Sessions()
    async with (
        gate(handler) as (_, address),
        gate(silent) as (_, other),
        workbench(sessions) as places,
        asyncio.timeout(60),
    ):
        yield places, sessions.put(address), sessions.put(other)
    async with asyncio.timeout(10):
        while socket_memory._in_all:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("handler", "from_client"),
    [
        (half, b""),
        (whole, b""),
        (deaf, (masked(LONG) + bytes(LONG)) * 2),
        (silent, masked(16 * MIB) + bytes(LONG)),
        (silent, masked(LONG, 0x02) + bytes(LONG)),
    ],
    ids=["program, half", "program, unread", "client, unread", "client, half a frame", "client, half a message"],
)
async def test_what_all_sockets_of_a_user_hold_is_bounded(handler: Handler, from_client: bytes):
    async with two_sessions(handler) as (places, session_id, other):
        sockets = [await opened(places, session_id) for _ in range(10)]
        sending = [asyncio.create_task(sent(writer, from_client)) for _, writer in sockets]
        waiting = {asyncio.create_task(heard(reader)) for reader, _ in sockets} if handler is not whole else set()
        most = 0
        while not waiting or len([one for one in waiting if one.done()]) < 3:
            most = max(most, socket_memory._in_all)
            assert most <= socket_memory.OF_USER
            if not waiting and most > socket_memory.OF_USER // 2:
                break
            await asyncio.sleep(0.01)
        for ended in [one for one in waiting if one.done() and one.exception() is None]:
            assert TOO_BIG in ended.result() or not ended.result()
        reader, writer = await opened(places, other)
        await sent(writer, masked(LONG) + bytes(LONG) + b"\x88\x82\0\0\0\0\x03\xe8")
        assert TOO_BIG not in await end_of(reader)
        for task in (*sending, *waiting):
            task.cancel()
        for one in (writer, *(writer for _, writer in sockets)):
            one.transport.abort()


async def test_short_messages_pass_while_the_memory_of_the_user_is_taken(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(socket_memory, "OF_USER", 0)
    async with two_sessions(silent) as (places, session_id, _):
        reader, writer = await opened(places, session_id)
        for _ in range(5):
            await sent(writer, masked(50_000) + bytes(50_000))
        await sent(writer, b"\x88\x82\0\0\0\0\x03\xe8")
        assert (await end_of(reader)).endswith(b"\x03\xe8")
        writer.transport.abort()
        reader, writer = await opened(places, session_id)
        await sent(writer, masked(100_000) + bytes(100_000))
        assert TOO_BIG in await end_of(reader)
        writer.transport.abort()


async def test_what_was_held_of_a_message_goes_with_the_socket_that_held_too_much(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(socket_memory, "OF_USER", MIB)
    async with gate(half) as (_, address), asyncio.timeout(20):
        admitted = Admitted(uuid.uuid4(), uuid.uuid4(), address, KEY, {})
        upstream = await SocketUpstream.opened(admitted, "ws://x/", (), [])
        with pytest.raises(socket_memory.TooMuch) as kept:
            async for _ in upstream.messages():
                pass
        assert len(upstream._protocol.reader.buffer) > MIB // 2
        upstream.abort()
        assert not upstream._protocol.reader.buffer
        assert kept.value.__traceback__ is not None, "it keeps the socket's frames"
