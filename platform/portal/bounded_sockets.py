"""uvicorn's WebSocket protocol with bounds on what a client makes it parse and keep.

It parses all that has arrived at once, however many frames that are, and keeps the pieces of a message until the last
one. Here little is parsed at a time, users whose frames are costly to parse rest between them, and what is kept counts
against the memory of a user's sockets (`apps.accounts.socket_memory`). Nothing is parsed before the socket is accepted.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import deque
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.http11 import Request

from apps.accounts.socket_memory import (
    BELONGS,
    MOST_FRAGMENTS,
    OF_FRAGMENT,
    TOO_BIG,
    Account,
    Held,
    TooMuch,
    account_of,
    rest_after,
)

_PIECE = 4 << 10
"""Bytes that are parsed at a time: seven hundred frames at most."""
_LINGER = 20.0
"""Seconds in which a client may take what was sent to it before the end."""


class _Turns:
    """The sockets of one user, one piece of one after another."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_due = False

    def ask(self, parse: Callable[[], None]) -> None:
        self._waiting.append(parse)
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        if not self._waiting:
            self._is_due = False
            return
        begun = time.perf_counter()
        try:
            self._waiting.popleft()()
        finally:
            spent = time.perf_counter() - begun
            asyncio.get_running_loop().call_later(rest_after(spent), self._next)


_TURNS: WeakValueDictionary[uuid.UUID, _Turns] = WeakValueDictionary()


class BoundedSocket(WebSocketsSansIOProtocol):
    """Closes with 1009 what holds too much."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._turns, self._held = _Turns(), Held(Account())
        self._rest = b""
        """What has arrived and is not parsed yet."""
        self._asked = self._is_running = False
        self._untaken = 0
        """Bytes of messages that the application has not taken."""
        self._abort: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        self._rest += data
        self._proceed()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._rest = b""
        if self._abort is not None:
            self._abort.cancel()
        self._leave()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._count()

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if not self.close_sent:
            self.scope["extensions"][BELONGS] = {"user": self._belongs_to}

    def handle_cont(self, event: Frame) -> None:
        super().handle_cont(event)
        if len(self.frames) > MOST_FRAGMENTS and not self.close_sent:
            self._give_up(f"A message has at most {MOST_FRAGMENTS} fragments.")

    def send_receive_event_to_app(self) -> None:
        self._untaken += sum(len(piece) for piece in self.frames)
        super().send_receive_event_to_app()

    def handle_parser_exception(self) -> None:
        super().handle_parser_exception()
        self._abort_later()

    async def run_asgi(self) -> None:
        self._is_running = True
        try:
            await super().run_asgi()
        finally:
            self._is_running = False
            self._abort_later()
            self._leave()

    async def receive(self) -> Any:
        message = await super().receive()
        if not self.read_paused:
            self._untaken = 0
        self._count()
        self._proceed()
        return message

    async def send(self, message: Any) -> None:
        if message["type"] == "websocket.close":
            self.writable.set()  # the end does not wait for a client that does not read
        await super().send(message)
        self._count()
        self._proceed()

    def _belongs_to(self, user_id: uuid.UUID) -> None:
        self._held.leave()
        self._held = Held(account_of(user_id))
        self._turns = _TURNS.setdefault(user_id, _Turns())

    def _proceed(self) -> None:
        """Parse more, or read more, where neither the handshake nor a message is still to be taken."""
        waits = self.read_paused or (self.handshake_initiated and not self.handshake_complete)
        if self._rest and not waits and not self._asked:
            self._asked = True
            self._turns.ask(self._parse)
        if self.transport.is_closing():
            return
        if waits or len(self._rest) > _PIECE:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def _parse(self) -> None:
        self._asked = False
        piece, self._rest = self._rest[:_PIECE], self._rest[_PIECE:]
        if piece:
            super().data_received(piece)
            self._count()
            self._proceed()

    def _count(self) -> None:
        if self.disconnected:
            return
        unfinished = len(self.conn.reader.buffer) + (self.conn.current_size or 0)
        size = unfinished + OF_FRAGMENT * len(self.frames) + self._untaken + self.transport.get_write_buffer_size()
        try:
            self._held.set(size)
        except TooMuch as error:
            self._give_up(str(error))

    def _give_up(self, reason: str) -> None:
        if self.close_sent:
            self.transport.abort()
            return
        self.conn.fail(TOO_BIG, reason)
        self.handle_parser_exception()

    def _abort_later(self) -> None:
        if self._abort is None and not self.disconnected:
            self._abort = self.loop.call_later(_LINGER, self.transport.abort)

    def _leave(self) -> None:
        """What a message holds is counted until the application has ended too: it may have taken none of it."""
        if self.disconnected and not self._is_running:
            self._held.leave()
