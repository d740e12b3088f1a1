"""A WebSocket to the program of a session: the client's side of it.

The library's own client parses whatever has arrived in one go, however many messages that are. A program that sends
nothing but empty ones would stop the whole process with it, so here little is read at a time, and a session whose
messages are costly to read rests between them. Not here: whose WebSocket is passed (`socket_passing`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import struct
import time
import uuid
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import Any
from weakref import WeakValueDictionary

from websockets.client import ClientProtocol
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.frames import Close, Frame, Opcode
from websockets.protocol import State
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from apps.accounts.socket_memory import (
    LONGEST_SESSION_MESSAGE,
    MOST_FRAGMENTS,
    OF_FRAGMENT,
    Held,
    TooMuch,
    account_of,
    rest_after,
)
from apps.workbench.proxy.contract import Admitted
from apps.workbench.proxy.gate_connection import streams_through_gate
from apps.workbench.proxy.headers import Headers

_READ = 4 << 10
"""Bytes that are parsed at a time: two thousand messages at most."""
_WRITE = 64 << 10
_HANDSHAKE = 20.0
_PATIENCE = 60.0
"""Seconds in which a program must take a message."""
_GOODBYE = 2.0
"""Seconds in which a program may take the last word."""

_LOG = logging.getLogger("websockets.client")
_TURNS: WeakValueDictionary[uuid.UUID, asyncio.Lock] = WeakValueDictionary()
"""Of each session: its WebSockets rest together."""


class SocketUpstream:
    """One that is open. `code` and `reason` say how it has ended, once `messages` has. What it holds of messages counts
    for the user whose it is; `messages` and `send` raise TooMuch."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        protocol: ClientProtocol,
        turn: asyncio.Lock,
        held: Held,
    ) -> None:
        self._reader, self._writer, self._protocol, self._turn = reader, writer, protocol, turn
        self._held = held
        self._down = self._up = 0
        """Bytes of messages that are held in each direction."""
        self._events: deque[Any] = deque()
        self._parsed = 0
        """Bytes in them."""
        self._fragments: list[bytes] = []
        self._is_text = False

    @classmethod
    async def opened(
        cls, admitted: Admitted, uri: str, subprotocols: Sequence[str], headers: Headers
    ) -> SocketUpstream:
        """Raises: NoMoreConnections, Unreachable, OSError, InvalidHandshake, InvalidURI."""
        offered = [Subprotocol(one) for one in subprotocols] or None
        protocol = ClientProtocol(parse_uri(uri), subprotocols=offered, max_size=LONGEST_SESSION_MESSAGE, logger=_LOG)
        request = protocol.connect()
        for name, value in headers:
            request.headers[name.decode("latin-1")] = value.decode("latin-1")
        protocol.send_request(request)
        reader, writer = await streams_through_gate(admitted.address, admitted.key, _WRITE)
        turn = _TURNS.setdefault(admitted.session_id, asyncio.Lock())
        held = Held(account_of(admitted.user_id))
        one = cls(reader, writer, protocol, turn, held)
        try:
            async with asyncio.timeout(_HANDSHAKE):
                await one._shake_hands()
        except BaseException:
            one.abort()
            raise
        return one

    @property
    def subprotocol(self) -> str | None:
        return self._protocol.subprotocol

    @property
    def code(self) -> int:
        return 1006 if (end := self._end) is None else end.code

    @property
    def reason(self) -> str:
        return "" if (end := self._end) is None else end.reason

    @property
    def _end(self) -> Close | None:
        return self._protocol.close_rcvd or self._protocol.close_sent

    async def messages(self) -> AsyncIterator[str | bytes]:
        """All, until one side closes. What is not taken is not read."""
        while True:
            while self._events:
                event = self._events.popleft()
                self._parsed -= len(event.data)
                message = self._message(event)
                if message is not None:
                    self._count(down=self._unfinished() + len(message))
                    yield message
            if self._protocol.state is not State.OPEN or not await self._read():
                return

    async def send(self, message: str | bytes) -> None:
        """Waits while the program does not read. Raises ConnectionClosed, OSError."""
        if self._protocol.state is not State.OPEN:
            raise ConnectionClosed(None, None)
        data = message.encode() if isinstance(message, str) else message
        try:
            self._count(up=len(data))
            (self._protocol.send_text if isinstance(message, str) else self._protocol.send_binary)(data)
            self._write()
            self._count(up=len(data) + self._writer.transport.get_write_buffer_size())
            async with asyncio.timeout(_PATIENCE):
                await self._writer.drain()
        except TimeoutError:
            self.abort()
            raise
        finally:
            self._count(up=0)

    async def say_goodbye(self, code: int, reason: str) -> None:
        """Say why it ends. Without effect where that has been said. Raises OSError, also where it is not taken soon."""
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(code, reason)
            async with asyncio.timeout(_GOODBYE):
                await self._flush()

    async def close(self, code: int, reason: str) -> None:
        """The same, and end it. Nothing else may read or send any more."""
        try:
            async with asyncio.timeout(_GOODBYE):
                await self.say_goodbye(code, reason)
                while self._protocol.close_rcvd is None and await self._read():
                    pass
        except (OSError, TooMuch):
            self._send_nothing_more()  # it has gone, does not answer in time, or floods: it is ended all the same
        finally:
            self.abort()

    def _send_nothing_more(self) -> None:
        """Once it is closed. Else the system would keep what the program does not read, and the program might not learn
        for minutes that its other side has gone."""
        with contextlib.suppress(OSError):
            sock = self._writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def abort(self) -> None:
        self._writer.transport.abort()
        # What is left of messages goes now: the error that ends a socket and its frames keep each other for a while.
        self._events, self._fragments = deque(), []
        self._protocol.reader.discard()
        self._held.leave()

    async def _shake_hands(self) -> None:
        await self._flush()
        while self._protocol.state is State.CONNECTING and self._protocol.handshake_exc is None:
            if not await self._read():
                break
        if self._protocol.handshake_exc is not None:
            raise self._protocol.handshake_exc
        if self._protocol.state is State.CONNECTING:
            raise InvalidHandshake("the program has closed the connection without an answer")
        self._events = deque(event for event in self._events if isinstance(event, Frame))

    async def _read(self) -> bool:
        """Parse a little more; False at the end of all."""
        data = await self._reader.read(_READ)
        async with self._turn:
            begun = time.perf_counter()
            if data:
                self._protocol.receive_data(data)
            else:
                self._protocol.receive_eof()
            self._events = deque(self._protocol.events_received())
            self._parsed = sum(len(event.data) for event in self._events if isinstance(event, Frame))
            self._count(down=self._unfinished())
            spent = time.perf_counter() - begun
            await asyncio.sleep(rest_after(spent))
        await self._flush()  # pongs, and what answers a close
        return bool(data)

    def _unfinished(self) -> int:
        pieces = (self._protocol.current_size or 0) + OF_FRAGMENT * len(self._fragments)
        return pieces + len(self._protocol.reader.buffer) + self._parsed

    def _count(self, *, down: int | None = None, up: int | None = None) -> None:
        self._down = self._down if down is None else down
        self._up = self._up if up is None else up
        self._held.set(self._down + self._up)

    def _write(self) -> None:
        for data in self._protocol.data_to_send():
            if data:
                self._writer.write(data)

    async def _flush(self) -> None:
        self._write()
        await self._writer.drain()

    def _message(self, frame: Frame) -> str | bytes | None:
        """The message that is whole with this frame."""
        if frame.opcode not in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
            return None
        if frame.opcode is not Opcode.CONT:
            self._is_text = frame.opcode is Opcode.TEXT
        self._fragments.append(bytes(frame.data))
        if len(self._fragments) > MOST_FRAGMENTS:
            raise OSError(f"a message in more than {MOST_FRAGMENTS} pieces")
        if not frame.fin:
            return None
        whole, self._fragments = b"".join(self._fragments), []
        try:
            return whole.decode() if self._is_text else whole
        except UnicodeDecodeError as error:
            raise OSError("a text that is not UTF-8") from error
