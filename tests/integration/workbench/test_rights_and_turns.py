"""Requests that last: they end with the right to them, and leave a session's threads to others."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.workbench.proxy.contract import Refusal, Unknown
from apps.workbench.proxy.limits import FIRST, FIRST_OPEN, IN_ALL, OF_SESSION_SHARED, REQUESTS, Limits
from tests.integration.workbench.test_streams import asked, client_of, head
from tests.real.workbench import Sessions, gate, workbench
from yardmaster_runner.workbench import wsgi_server


async def test_an_answer_under_way_ends_with_the_right_to_it():
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        if b"/silent" not in request:
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")  # as long as the connection stays
        while b"/silent" not in request:
            writer.write(b"x" * 10)
            await writer.drain()
            await asyncio.sleep(0.001)
        await reader.read()

    sessions = Sessions()
    async with gate(endless) as (one, address), workbench(sessions, again=0.05) as places, asyncio.timeout(20):
        session_id = sessions.put(address)
        reader, writer = await client_of(places)
        writer.write(head(places, session_id))
        await reader.readuntil(b"xxxxx")
        silent = asyncio.create_task(asked(places, session_id, head(places, session_id, "silent")))
        while one.opened < 2:
            await asyncio.sleep(0.01)
        asked_before = sessions.asked
        sessions.of[session_id] = Unknown(503, "engine_does_not_answer", "Slow", "It is not known.")
        while sessions.asked < asked_before + 4:
            await reader.readuntil(b"xxxxx")
        sessions.of[session_id] = Refusal(403, "forbidden", "No", "No.")
        assert not (await reader.read()).endswith(b"0\r\n\r\n")
        assert (await silent).startswith(b"HTTP/1.1 403")
        while one.open:
            await asyncio.sleep(0.01)
        writer.close()


async def test_a_session_works_on_some_requests_of_a_user_at_a_time():
    answering = asyncio.Event()

    async def waits(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readuntil(b"\r\n\r\n"):
            await answering.wait()
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    sessions = Sessions()
    async with gate(waits) as (one, address), workbench(sessions) as places, asyncio.timeout(20):
        session_id = sessions.put(address)
        asking = [asyncio.create_task(asked(places, session_id)) for _ in range(REQUESTS * 2)]
        while sessions.asked < len(asking):
            await asyncio.sleep(0.01)
        while one.opened < REQUESTS:
            await asyncio.sleep(0.01)
        assert one.opened == REQUESTS
        answering.set()
        assert {answer[:12] for answer in await asyncio.gather(*asking)} == {b"HTTP/1.1 200"}


async def test_a_request_does_not_wait_for_its_turn_for_ever():
    limits, user_id, session_id = Limits(300, wait=0.05), uuid.uuid4(), uuid.uuid4()
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(REQUESTS):
            await stack.enter_async_context(limits.turn(user_id, session_id))
        with pytest.raises(Refusal, match="24 requests"):
            await stack.enter_async_context(limits.turn(user_id, session_id))
        async with limits.turn(uuid.uuid4(), session_id):
            pass
    async with limits.turn(user_id, session_id):
        pass


async def test_users_who_take_all_they_may_leave_a_session_to_others():
    limits, session_id = Limits(300, wait=0.05), uuid.uuid4()
    async with contextlib.AsyncExitStack() as stack:
        for viewer in (uuid.uuid4() for _ in range(4)):
            with contextlib.suppress(Refusal):
                for _ in range(REQUESTS):
                    await stack.enter_async_context(limits.turn(viewer, session_id))
        assert limits._work[session_id].in_all < IN_ALL < wsgi_server.THREADS
        owner = uuid.uuid4()
        for _ in range(FIRST):
            await stack.enter_async_context(limits.turn(owner, session_id))
        with pytest.raises(Refusal, match="4 requests of yours"):
            await stack.enter_async_context(limits.turn(owner, session_id))
    assert not limits._work, "nothing is left of it"


async def test_those_that_wait_begin_in_their_order_and_one_that_gave_up_takes_no_place():
    limits, user_id, session_id, began = Limits(300), uuid.uuid4(), uuid.uuid4(), list[int]()

    async def asks(number: int) -> None:
        async with limits.turn(user_id, session_id):
            began.append(number)

    async with contextlib.AsyncExitStack() as stack:
        for _ in range(REQUESTS):
            await stack.enter_async_context(limits.turn(user_id, session_id))
        waiting = [asyncio.create_task(asks(number)) for number in range(4)]
        await asyncio.sleep(0)
        waiting[1].cancel()
    await asyncio.wait(waiting)
    assert began == [0, 2, 3]
    assert not limits._work


def test_connections_of_one_user_leave_some_of_a_session_to_others():
    limits, user_id, session_id = Limits(300), uuid.uuid4(), uuid.uuid4()
    with contextlib.ExitStack() as stack:
        for _ in range(OF_SESSION_SHARED):
            stack.enter_context(limits.hold(user_id, session_id))
        with pytest.raises(Refusal, match="240 requests and connections"):
            stack.enter_context(limits.hold(user_id, session_id))
        owner = uuid.uuid4()
        for _ in range(FIRST_OPEN):
            stack.enter_context(limits.hold(owner, session_id))
    assert not limits._open


@contextlib.contextmanager
def _served(path: Path, body: Callable[[dict[str, Any]], bytes]) -> Iterator[None]:
    """A server on this socket, whose answers have this body."""

    def application(environment: dict[str, Any], start: Any) -> list[bytes]:
        start("200 OK", [])
        return [body(environment)]

    server = wsgi_server.Server(str(path), application)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        yield
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


def test_an_answer_may_take_long_as_long_as_some_of_it_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(wsgi_server, "IDLE", 4.0)
    monkeypatch.setattr(wsgi_server.Handler, "timeout", 4.0)
    size, begun = 1_500_000, time.monotonic()
    with _served(tmp_path / "socket", lambda environment: b"x" * size), socket.socket(socket.AF_UNIX) as slow:
        slow.connect(str(tmp_path / "socket"))
        slow.settimeout(20)
        slow.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        taken = bytearray()
        while taken.count(b"x") < size and (piece := slow.recv(20_000)):
            taken += piece
            time.sleep(0.1)
    assert taken.count(b"x") == size
    assert time.monotonic() - begun > 1.5 * wsgi_server.IDLE


def test_a_body_that_comes_slowly_does_not_hold_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(wsgi_server, "BODY_PATIENCE", 0.5)
    with (
        _served(tmp_path / "socket", lambda environment: environment["wsgi.input"].read()),
        socket.socket(socket.AF_UNIX) as slow,
        socket.socket(socket.AF_UNIX) as quick,
    ):
        slow.connect(str(tmp_path / "socket"))
        slow.settimeout(0.1)
        slow.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 8000000\r\n\r\n")
        ended = False
        while not ended:  # a byte now and then
            with contextlib.suppress(TimeoutError):
                try:
                    slow.sendall(b"x")
                    ended = not slow.recv(1)
                except OSError as error:
                    ended = not isinstance(error, TimeoutError)
        quick.connect(str(tmp_path / "socket"))
        quick.settimeout(20)
        quick.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody")
        assert quick.recv(1000).startswith(b"HTTP/1.1 200")
