"""WebSockets that are open, and their end with the sign-in that opened them.

Whatever ends sign-ins of a user says so (`sign_ins_changed`); each web process hears it and looks at their sockets.
A nudge that is lost costs time only: consumers look for themselves now and then. It is lost with a message server that
is away, not with one that stands still. Not here: who may open one (`websocket_auth`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Awaitable, Callable
from typing import Any
from weakref import WeakKeyDictionary

from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from django.db import transaction
from django.dispatch import Signal
from redis.exceptions import RedisError

from apps.accounts.socket_memory import BELONGS
from apps.accounts.socket_tasks import end_tasks
from apps.api.nudging import Nudger, tell

log = logging.getLogger(__name__)

SIGNED_OUT = 4401
DEAF = 5.0
"""Seconds until a message server that was away is tried again."""
_GROUP = "accounts.sign-ins"

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]


sign_ins_ended = Signal()
"""A token or session of the user `user_id` has ended: for what this process keeps of it."""


def sign_ins_changed(user_id: uuid.UUID) -> None:
    """A token or session of the user has ended: have open sockets looked at once the transaction is committed."""
    transaction.on_commit(lambda: _announce(user_id))


def _announce(user_id: uuid.UUID) -> None:
    sign_ins_ended.send(None, user_id=user_id)
    _nudger.add(user_id, None)


async def _send(users: dict[uuid.UUID, None]) -> None:
    for user_id in users:
        await tell(_GROUP, {"type": "sign_ins.changed", "user": str(user_id)})


_nudger = Nudger("ended sign-ins", _send, again=True)


class OpenSocket:
    """One socket of a user who is signed in. `end` closes it from outside, whatever its consumer does meanwhile."""

    def __init__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        self.scope = scope
        self._receive, self._send = receive, send
        self._ended = asyncio.Event()
        self._closed = False

    def end(self) -> None:
        self._ended.set()

    async def receive(self) -> Message:
        """The next message; once the socket has ended, that the other side has gone."""
        message = asyncio.ensure_future(self._receive())
        end = asyncio.ensure_future(self._ended.wait())
        try:
            await asyncio.wait([message, end], return_when=asyncio.FIRST_COMPLETED)
            if not self._ended.is_set():
                return message.result()
        finally:
            message.cancel()
            end.cancel()
            await asyncio.gather(message, end, return_exceptions=True)
        await self.send({"type": "websocket.close", "code": SIGNED_OUT})
        return {"type": "websocket.disconnect", "code": SIGNED_OUT}

    async def send(self, message: Message) -> None:
        if self._closed or (self._ended.is_set() and message["type"] != "websocket.close"):
            return
        self._closed = message["type"] == "websocket.close"
        await self._send(message)


class OpenSockets:
    """All of this event loop, by user. It listens while there is any."""

    def __init__(self) -> None:
        self._of: dict[uuid.UUID, set[OpenSocket]] = {}
        self._listener: asyncio.Task[None] | None = None

    async def hold(self, inner: Application, socket: OpenSocket, still: Callable[[dict[str, Any]], object]) -> None:
        """Run the consumer; `still` says whether the caller of a scope is signed in now."""
        user_id = socket.scope["user"].pk
        if (whose := socket.scope.get("extensions", {}).get(BELONGS)) is not None:
            whose["user"](user_id)
        self._of.setdefault(user_id, set()).add(socket)
        self._listener = self._listener or asyncio.create_task(self._listen(still))
        try:
            await inner(socket.scope, socket.receive, socket.send)
        finally:
            self._of[user_id].discard(socket)
            if not self._of[user_id]:
                del self._of[user_id]
            if not self._of and self._listener is not None:
                listener, self._listener = self._listener, None
                await end_tasks(listener)

    async def _listen(self, still: Callable[[dict[str, Any]], object]) -> None:
        while True:
            try:
                await self._hear(still)
            except Exception as error:  # noqa: BLE001 - the message server or the database is away: it listens again
                log.warning("Sockets of users who are signed out close later: %s", error)
            await asyncio.sleep(DEAF)

    async def _hear(self, still: Callable[[dict[str, Any]], object]) -> None:
        layer = get_channel_layer()
        if layer is None:
            return
        channel = await layer.new_channel()
        await layer.group_add(_GROUP, channel)
        try:
            while True:
                message = await layer.receive(channel)
                for socket in tuple(self._of.get(uuid.UUID(message["user"]), ())):
                    if not await database_sync_to_async(still)(socket.scope):
                        socket.end()
        finally:
            with contextlib.suppress(RedisError, OSError):
                await layer.group_discard(_GROUP, channel)


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, OpenSockets] = WeakKeyDictionary()


def open_sockets() -> OpenSockets:
    """Those of the running event loop."""
    return _by_loop.setdefault(asyncio.get_running_loop(), OpenSockets())
