"""WebSockets through the proxy: a real client, a real server behind a gate."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from apps.accounts.open_sockets import open_sockets
from apps.workbench.proxy.contract import Refusal, Unknown
from apps.workbench.proxy.origins import Origins, prefix_of
from tests.real.workbench import COOKIE, Gate, Sessions, gate, program, workbench

JUPYTERS = "v1.kernel.websocket.jupyter.org"


async def echo(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Says everything again; `close 4000`, `flood` and `headers` do what they say."""
    await receive()
    what = scope["path"].rpartition("/")[2]
    if what == "refused":
        start = {"type": "websocket.http.response.start", "status": 418, "headers": []}
        await send(start)
        await send({"type": "websocket.http.response.body", "body": b""})
        return
    if what == "moved":
        headers = [(b"location", b"ws://127.0.0.1:1/x")]
        await send({"type": "websocket.http.response.start", "status": 302, "headers": headers})
        await send({"type": "websocket.http.response.body", "body": b""})
        return
    await send({"type": "websocket.accept", "subprotocol": next(iter(scope["subprotocols"]), None)})
    while (message := await receive())["type"] == "websocket.receive":
        if message.get("text") == "close 4000":
            await send({"type": "websocket.close", "code": 4000, "reason": "enough"})
            return
        if message.get("text") == "headers":
            found = " ".join(f"{name.decode()}={value.decode()}" for name, value in scope["headers"])
            await send({"type": "websocket.send", "text": found})
        elif message.get("text") == "flood":
            for _ in range(64):
                await send({"type": "websocket.send", "bytes": b"x" * (1 << 20)})
        else:
            await send({**message, "type": "websocket.send"})
    PROGRAM_HEARD.append(message.get("code"))


PROGRAM_HEARD: list[Any] = []


class Place:
    def __init__(self, sessions: Sessions, session_id: uuid.UUID, places: Origins, one: Gate) -> None:
        self.sessions, self.id, self.origins, self.gate = sessions, session_id, places, one

    def connect(self, path: str = "channels", **more: Any) -> connect:
        origin = more.pop("origin", self.origins.of(self.id))
        headers = {"Cookie": f"yardmaster_workbench={COOKIE}; _xsrf=2", "Authorization": "Bearer x"}
        return connect(
            f"ws://{self.origins.host_of(self.id)}{prefix_of(self.id)}{path}", host="127.0.0.1",
            port=self.origins.port, origin=origin, additional_headers=headers, proxy=None, compression=None,
            max_size=None, **more,
        )  # fmt: skip


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    sessions = Sessions()
    async with (
        program(echo, tmp_path / "program.sock", ws_max_size=32 << 20) as handler,
        gate(handler) as (one, address),
        workbench(sessions, again=0.05) as places,
    ):
        yield Place(sessions, sessions.put(address), places, one)


async def end_of(socket: ClientConnection) -> tuple[int | None, str | None]:
    async with asyncio.timeout(20):
        await socket.wait_closed()
    return socket.close_code, socket.close_reason


async def test_messages_pass_both_ways_with_their_subprotocol(place: Place):
    async with place.connect(subprotocols=["other", JUPYTERS]) as socket:
        assert socket.subprotocol == "other"
        for message in ("text", b"bytes", "", b"", "ü" * 100_000, b"x" * (15 << 20)):
            await socket.send(message)
            assert await socket.recv() == message
        assert place.sessions.used == []
        await socket.send("headers")
        said = str(await socket.recv())
        assert "cookie=_xsrf=2" in said
        assert f"origin={place.origins.of(place.id)}" in said
        assert f"host={place.origins.host_of(place.id)}" in said
        assert "yardmaster" not in said.replace("yardmaster.", "")
        assert "authorization" not in said


async def test_how_a_socket_was_closed_is_said_on_both_sides(place: Place):
    async with place.connect() as socket:
        await socket.send("close 4000")
        assert await end_of(socket) == (4000, "enough")
    PROGRAM_HEARD.clear()
    async with place.connect() as socket:
        await socket.close(4001, "done")
    async with asyncio.timeout(10):
        while not PROGRAM_HEARD:
            await asyncio.sleep(0.01)
    assert PROGRAM_HEARD == [4001]


async def test_a_program_that_dies_ends_the_socket(place: Place):
    async with place.connect() as socket:
        await socket.send("here")
        await socket.recv()
        for writer in tuple(place.gate.open):
            writer.transport.abort()
        assert (await end_of(socket))[0] == 1011


@pytest.mark.parametrize(
    ("path", "origin", "status"),
    [
        ("channels", None, 403),
        ("channels", "http://evil.example", 403),
        ("channels", "null", 403),
        ("refused", "own", 418),
        ("moved", "own", 502),
    ],
)
async def test_what_is_not_accepted(place: Place, path: str, origin: str | None, status: int):
    origin = place.origins.of(place.id) if origin == "own" else origin
    with pytest.raises(InvalidStatus) as refused:
        await place.connect(path, origin=origin)
    assert refused.value.response.status_code == status


async def test_who_may_no_longer_pass_is_closed_out(place: Place):
    async with place.connect() as socket:
        place.sessions.of[place.id] = Refusal(401, "signed_out", "", "")
        assert (await end_of(socket))[0] == 4401


async def test_a_socket_stays_while_it_is_not_known_who_may_pass(place: Place):
    async with place.connect() as socket:
        asked = place.sessions.asked
        place.sessions.of[place.id] = Unknown(503, "engine_does_not_answer", "", "")
        async with asyncio.timeout(20):
            while place.sessions.asked < asked + 3:
                await asyncio.sleep(0.01)
        await socket.send("here")
        assert await socket.recv() == "here"


async def test_a_database_that_is_away_ends_no_socket(place: Place):
    async with place.connect() as socket:
        place.sessions.of[place.id] = OperationalError("it is away")
        before = place.sessions.asked
        async with asyncio.timeout(10):
            while place.sessions.asked < before + 3:
                await asyncio.sleep(0.01)
        await socket.send("here")
        assert await socket.recv() == "here"
        place.sessions.of[place.id] = Refusal(401, "signed_out", "", "")
        assert (await end_of(socket))[0] == 4401


async def test_a_sign_out_ends_it_at_once(place: Place):
    async with place.connect() as socket:
        await socket.send("here")
        await socket.recv()
        (held,) = [one for sockets in open_sockets()._of.values() for one in sockets]
        held.end()
        assert (await end_of(socket))[0] == 4401
    async with asyncio.timeout(10):
        while place.gate.open:
            await asyncio.sleep(0.01)


async def test_two_hundred_sockets_of_one_session(place: Place):
    sockets = [await place.connect() for _ in range(200)]
    try:
        for number, socket in enumerate(sockets):
            await socket.send(str(number))
        assert [await socket.recv() for socket in sockets] == [str(number) for number in range(200)]
    finally:
        await asyncio.gather(*(socket.close() for socket in sockets))
    async with asyncio.timeout(10):
        while place.gate.open:
            await asyncio.sleep(0.01)


async def test_more_sockets_than_one_user_may_have(tmp_path: Path):
    sessions = Sessions()
    async with (
        program(echo, tmp_path / "program.sock") as handler,
        gate(handler) as (one, address),
        workbench(sessions, of_user=2) as places,
    ):
        place = Place(sessions, sessions.put(address), places, one)
        async with place.connect(), place.connect():
            with pytest.raises(InvalidStatus) as refused:
                await place.connect()
            assert refused.value.response.status_code == 429
        async with asyncio.timeout(10):
            while one.open:
                await asyncio.sleep(0.01)
        async with place.connect():
            pass


async def test_a_client_that_does_not_read_holds_up_only_its_own_program(place: Place):
    async with place.connect(max_queue=1) as slow, place.connect() as quick:
        await slow.send("flood")
        for number in range(50):
            await quick.send(str(number))
            async with asyncio.timeout(5):
                assert await quick.recv() == str(number)
        received = 0
        for _ in range(64):
            received += len(await slow.recv())
        assert received == 64 << 20


async def test_a_message_that_is_too_long_ends_the_socket(place: Place):
    async with place.connect() as socket:
        with contextlib.suppress(ConnectionClosed):
            await socket.send(b"x" * ((16 << 20) + 1))
        assert (await end_of(socket))[0] == 1009
