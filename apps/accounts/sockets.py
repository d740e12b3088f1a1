"""How every WebSocket of the portal runs: it is accepted, the caller is looked at, and what there is to hear is sent
until one side ends it. Whether the caller still may listen is asked again every so often. What clients send is
dropped.

Plain ASGI rather than consumers of Channels: those subscribe each connection to the message server, and cannot open
while that is away. Not here: who the caller is (`websocket_auth`), and what is sent (`consumers` of each app).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from channels.db import database_sync_to_async

from apps.accounts.models import User
from apps.accounts.socket_tasks import first_of
from apps.accounts.websocket_auth import reads, still_signed_in

BAD_QUERY, NOT_SIGNED_IN, NOT_FOUND = 4400, 4401, 4404
FINISHED, TROUBLE, TRY_AGAIN_LATER = 1000, 1011, 1013

T = TypeVar("T")
Scope = dict[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
SendText = Callable[[str], Awaitable[None]]


class Refused(Exception):
    """The socket is closed with this code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


async def _nothing_more(before: Any, now: Any, send: SendText) -> None:
    """What was found may change."""


async def run(
    scope: Scope,
    receive: Receive,
    send: Send,
    *,
    look: Callable[[Scope], T],
    follow: Callable[[T, SendText], Coroutine[Any, Any, int]],
    every: float,
    again: Callable[[T, T, SendText], Awaitable[None]] = _nothing_more,
) -> None:
    """One socket. `look` asks the database what the caller may hear, at the start and after each `every` seconds, and
    raises `Refused`; `follow` sends it, and returns the code to close with. `again` is called with what was found at
    the start and what is found now."""

    async def send_text(text: str) -> None:
        await send({"type": "websocket.send", "text": text})

    async def serve() -> int | None:
        try:
            found = await database_sync_to_async(look)(scope)
            watch = _watch(lambda: database_sync_to_async(look)(scope), found, again, send_text, every)
            return await first_of(follow(found, send_text), watch)
        except Refused as refused:
            return refused.code
        except OSError:
            return None  # the client went while something was being sent

    await receive()
    await send({"type": "websocket.accept"})  # a browser learns the code only of a socket that was open
    code = await first_of(_until_gone(receive), serve())
    if code is not None:
        with contextlib.suppress(OSError):  # the client went meanwhile
            await send({"type": "websocket.close", "code": code})


def caller(scope: Scope, needed: str) -> User:
    """Who is behind the socket, as things are now, with a token (if any) of this scope. Raises `Refused`."""
    user = still_signed_in(scope) if reads(scope, needed) else None
    if user is None:
        raise Refused(NOT_SIGNED_IN)
    return user


async def _watch(
    look: Callable[[], Awaitable[T]],
    found: T,
    again: Callable[[T, T, SendText], Awaitable[None]],
    send: SendText,
    every: float,
) -> int:
    """Ends by what `look` raises, once the caller may no longer listen."""
    while True:
        await asyncio.sleep(every)
        await again(found, await look(), send)


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "websocket.disconnect":
        pass
