"""What comes through the proxy comes as it is sent, and no side makes it keep what the other does not take."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import socket
import uuid
from collections.abc import AsyncIterator

import psutil
import pytest

from apps.workbench.proxy import gate_connection
from apps.workbench.proxy.limits import REQUESTS
from apps.workbench.proxy.origins import Origins, prefix_of
from tests.real.workbench import COOKIE, Handler, Sessions, ask_often, gate, workbench
from tests.real.workbench_server import own_process
from yardmaster.engines.base import Address
from yardmaster_runner import gate_protocol

MIB = 1 << 20
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def head(places: Origins, session_id: uuid.UUID, path: str = "x", method: str = "GET", more: str = "") -> bytes:
    return (
        f"{method} {prefix_of(session_id)}{path} HTTP/1.1\r\nHost: {places.host_of(session_id)}\r\n"
        f"Cookie: yardmaster_workbench={COOKIE}\r\n{more}\r\n"
    ).encode()


async def client_of(places: Origins) -> Streams:
    return await asyncio.open_connection("127.0.0.1", places.port)


@contextlib.asynccontextmanager
async def shown(handler: Handler, **options: float) -> AsyncIterator[tuple[Origins, uuid.UUID]]:
    """A proxy with one session, whose program speaks HTTP by itself."""
    sessions = Sessions()
    async with gate(handler) as (_, address), workbench(sessions, **options) as places:
        yield places, sessions.put(address)


async def asked(places: Origins, session_id: uuid.UUID, sent: bytes | None = None) -> bytes:
    """Everything that comes back on a connection of its own."""
    reader, writer = await client_of(places)
    try:
        writer.write(sent or head(places, session_id, more="Connection: close\r\n"))
        async with asyncio.timeout(20):
            return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


async def test_pieces_arrive_while_the_rest_is_still_to_come():
    more, ended = asyncio.Event(), asyncio.Event()

    async def slowly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n")
        await more.wait()
        writer.write(b"4\r\nlast\r\n0\r\n\r\n")
        await ended.wait()

    async with shown(slowly) as (places, session_id):
        reader, writer = await client_of(places)
        writer.write(head(places, session_id))
        async with asyncio.timeout(10):
            assert (await reader.readuntil(b"first\r\n")).startswith(b"HTTP/1.1 200")
            more.set()
            assert (await reader.readuntil(b"0\r\n\r\n")) == b"4\r\nlast\r\n0\r\n\r\n"
        ended.set()
        writer.close()


async def test_an_upload_is_passed_before_it_is_whole():
    heard: asyncio.Queue[bytes] = asyncio.Queue()

    async def listens(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await heard.put(await reader.readexactly(5))
        await heard.put(await reader.readexactly(5))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()

    async with shown(listens) as (places, session_id), asyncio.timeout(10):
        reader, writer = await client_of(places)
        writer.write(head(places, session_id, method="POST", more="Content-Length: 10\r\n") + b"first")
        assert await heard.get() == b"first"
        writer.write(b"again")
        assert await heard.get() == b"again"
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        writer.close()


async def test_a_client_that_goes_ends_the_request_at_once():
    begun, gone = asyncio.Event(), asyncio.Event()

    async def waits(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        begun.set()
        await reader.read()
        gone.set()

    async with shown(waits) as (places, session_id), asyncio.timeout(10):
        _, writer = await client_of(places)
        writer.write(head(places, session_id))
        await begun.wait()
        writer.transport.abort()
        await gone.wait()


PIECE = b"x" * (1 << 16)
PIECES = (1 << 30) // len(PIECE)


class Pump:
    """A gibibyte that one side sends, and the other takes once it is told to."""

    def __init__(self) -> None:
        self.sent = 0
        self.taking = asyncio.Event()

    async def send(self, writer: asyncio.StreamWriter) -> None:
        for _ in range(PIECES):
            writer.write(PIECE)
            await writer.drain()
            self.sent += len(PIECE)

    async def take(self, reader: asyncio.StreamReader) -> None:
        await self.taking.wait()
        for _ in range(PIECES):
            await reader.readexactly(len(PIECE))

    async def stalls(self) -> None:
        before = -1
        while self.sent != before or not self.sent:
            before = self.sent
            await asyncio.sleep(0.3)


async def most_memory(pid: int, work: asyncio.Task[None]) -> int:
    most = 0
    while not work.done():
        most = max(most, psutil.Process(pid).memory_info().rss)
        await asyncio.sleep(0.02)
    await work
    return most


@pytest.mark.parametrize("direction", ["down", "up"])
async def test_a_side_that_does_not_read_stops_the_other_and_nothing_is_kept(direction: str):
    pump, session_id, is_up = Pump(), uuid.uuid4(), direction == "up"

    async def program(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if is_up:
            await pump.take(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (0 if is_up else len(PIECE) * PIECES))
        await (writer.drain() if is_up else pump.send(writer))

    async def client(places: Origins) -> None:
        reader, writer = await client_of(places)
        length = f"Content-Length: {len(PIECE) * PIECES}\r\n"
        writer.write(head(places, session_id, method="PUT" if is_up else "GET", more=length if is_up else ""))
        if is_up:
            await pump.send(writer)
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        if not is_up:
            await pump.take(reader)
        writer.close()

    async with gate(program) as (_, address), asyncio.timeout(120):
        with own_process(address.port, session_id) as (places, pid):
            before = psutil.Process(pid).memory_info().rss
            work = asyncio.create_task(client(places))
            await pump.stalls()
            assert pump.sent < 64 * MIB, "what was sent is somewhere"
            pump.taking.set()
            assert await most_memory(pid, work) < before + 16 * MIB
    assert pump.sent == 1 << 30


async def test_a_side_that_does_nothing_is_not_waited_for_for_ever():
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        if b"/stops" in request:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf")
        await reader.read()

    async with shown(silent, patience=3) as (places, session_id):  # in which the first half surely comes
        answer = await asked(places, session_id, head(places, session_id, "stops"))
        assert answer.startswith(b"HTTP/1.1 200")
        assert answer.endswith(b"half")
    async with shown(silent, patience=0.3) as (places, session_id):
        assert (await asked(places, session_id)).startswith(b"HTTP/1.1 504")
        half = head(places, session_id, method="POST", more="Content-Length: 10\r\n") + b"half"
        assert (await asked(places, session_id, half)).startswith(b"HTTP/1.1 504")


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"no HTTP\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"x" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 300 + b"\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 20,
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\na b: c\r\n\r\n",
    ],
)
async def test_answers_that_are_none(answer: bytes):
    async def odd(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.write_eof()
        await reader.read()

    async with shown(odd) as (places, session_id):
        assert (await asked(places, session_id)).startswith(b"HTTP/1.1 502")


async def test_an_answer_in_more_than_one_framing_is_one_answer():
    async def both(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n"
            b"5\r\nhello\r\n0\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nother"
        )
        await reader.read()

    async with shown(both) as (places, session_id):
        for _ in range(2):
            answer = await asked(places, session_id)
            assert b"content-length" not in answer
            assert answer.endswith(b"5\r\nhello\r\n0\r\n\r\n")


async def test_a_body_that_breaks_off_is_not_taken_for_a_whole_one():
    async def breaks_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n")
        await writer.drain()

    async with shown(breaks_off) as (places, session_id):
        answer = await asked(places, session_id)
        assert b"hello" in answer
        assert not answer.endswith(b"0\r\n\r\n")


async def test_a_connection_that_ended_while_it_waited_costs_no_answer():
    answered = 0

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal answered
        await reader.readuntil(b"\r\n\r\n")
        answered += 1
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        await reader.readuntil(b"\r\n\r\n")  # and says nothing to the second

    async with shown(once) as (places, session_id):
        for _ in range(4):
            assert (await asked(places, session_id)).startswith(b"HTTP/1.1 200")
    assert answered == 4


async def test_an_answer_that_was_not_asked_for_is_never_that_of_the_next_request():
    async def says_more(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answer = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(answer + b"mine")
            await asyncio.sleep(0.1)
            writer.write(answer + b"odd!")

    async with shown(says_more) as (places, session_id):
        for _ in range(2):
            assert (await asked(places, session_id)).endswith(b"mine")
            await asyncio.sleep(0.3)


@pytest.mark.parametrize(
    "more",
    [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Content-Length: +5\r\n",
        "X-Header: a\nContent-Length: 5\r\n",
        "Content-Length : 5\r\n",
    ],
)
async def test_a_request_never_becomes_two(more: str):
    heard: list[bytes] = []
    smuggled = "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"

    async def program(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            request = await reader.readuntil(b"\r\n\r\n")
            heard.append(request)
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    async with shown(program) as (places, session_id):
        sent = head(places, session_id, method="POST", more=more + "Connection: close\r\n") + smuggled.encode()
        await asked(places, session_id, sent)
        assert not [one for one in heard if one.startswith(b"GET /smuggled")]
        assert len(heard) <= 1


async def test_a_session_that_hangs_does_not_hold_up_another(monkeypatch):
    for module, name in ((gate_connection, "CONNECT"), (gate_protocol, "SECONDS")):
        monkeypatch.setattr(module, name, 60.0)  # a wait for the deaf one is longer than a slow machine's

    async def hangs(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await reader.read()

    async def answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    sessions = Sessions()
    with socket.create_server(("127.0.0.1", 0), backlog=1) as mute:
        async with gate(hangs) as (one, stuck), gate(answers) as (_, well), workbench(sessions) as places:
            deaf = Address("127.0.0.1", mute.getsockname()[1])
            stalled, unproven, working = sessions.put(stuck), sessions.put(deaf), sessions.put(well)
            waiting = []
            for session_id in (stalled, unproven):
                for _ in range(150):
                    _, writer = await client_of(places)
                    writer.write(head(places, session_id))
                    waiting.append(writer)
            async with asyncio.timeout(20):
                while one.opened < REQUESTS:
                    await asyncio.sleep(0.01)
            await ask_often(lambda: asked(places, working), seconds=2, starts=b"HTTP/1.1 200")
            for writer in waiting:
                writer.transport.abort()


def handshake(request: bytes) -> bytes:
    """The answer that accepts a WebSocket."""
    lines = [line for line in request.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key:")]
    key = lines[0].partition(b":")[2].strip()
    accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    return (
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
        b"sec-websocket-accept: " + accept + b"\r\n\r\n"
    )


@pytest.mark.parametrize("over", ["a socket", "an answer"])
async def test_a_program_that_floods_its_own_readers_does_not_stop_the_process(over: str):
    session_id = uuid.uuid4()

    async def floods(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        if over == "a socket":
            writer.write(handshake(request))
            piece = b"\x81\x00" * 20_000  # messages with nothing in them
        else:
            writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            piece = b"1\r\nx\r\n" * 7_000
        while True:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)

    async def reads(reader: asyncio.StreamReader) -> None:
        while await reader.read(1 << 16):
            await asyncio.sleep(0)

    async with gate(floods) as (one, address), asyncio.timeout(60):
        with own_process(address.port, session_id) as (places, _):
            upgrade = (
                f"Origin: {places.of(session_id)}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
            )
            readers = []
            for _ in range(3):
                reader, writer = await client_of(places)
                writer.write(head(places, session_id, more=upgrade if over == "a socket" else ""))
                readers.append((asyncio.create_task(reads(reader)), writer))
            while len(one.open) < 3:
                await asyncio.sleep(0.01)
            sent = b"GET /.yardmaster/healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
            await ask_often(lambda: asked(places, session_id, sent), seconds=5, ends=b"ok\n")
            for task, writer in readers:
                task.cancel()
                writer.transport.abort()
