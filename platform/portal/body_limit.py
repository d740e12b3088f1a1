"""ASGI middleware: a body that is too large is refused before it is on this machine's disk.

Django writes every body to a temporary file before any view sees the request, however long it is and whoever sends it.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl

from django.conf import settings

from apps.api.problems import CONTENT_TYPE, TooLarge, body_of
from apps.uploads.storage import storage
from yardmaster.storage.base import AddressRefused
from yardmaster.storage.local import LocalStorage

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Receive, Send], Awaitable[None]]

PARTS = "/storage/parts/"
"""Where parts of files go: the largest bodies there are."""
FOR_ANYBODY = ("/accounts/", "/sign-in/", "/storage/", "/api/v1/auth/")
"""Addresses that read a body, or refuse it, without knowing who sends it."""
FORM = 64 << 10
"""What such a request may carry: 16 MiB of JSON are some 500 MiB of objects once they are read."""


class BodyLimit:
    """Around the rest of the application. Answers 413 with a problem."""

    def __init__(self, inner: Application) -> None:
        self._inner = inner

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        limit = limit_of(scope["path"], scope.get("query_string", b""))
        if _declared(scope) > limit:
            await _refuse(send, limit)
            return
        passed = _Counted(limit, receive, send)
        await self._inner(scope, passed.receive, passed.send)
        if passed.exceeded and not passed.answered:
            await _refuse(send, limit)


class _Counted:
    """A body that does not say how long it is: cut off, as if the client had gone, once it is too long."""

    def __init__(self, limit: int, receive: Receive, send: Send) -> None:
        self._left = limit
        self._receive = receive
        self._send = send
        self.exceeded = False
        self.answered = False

    async def receive(self) -> Message:
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            self.exceeded = True
            return {"type": "http.disconnect"}
        return message

    async def send(self, message: Message) -> None:
        self.answered = True
        await self._send(message)


def limit_of(path: str, query: bytes = b"") -> int:
    """The most bytes that a request to this address may carry."""
    if path.startswith(PARTS):
        return _size_of_part(path, query)
    limit: int = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    return min(FORM, limit) if path.startswith(FOR_ANYBODY) else limit


def _size_of_part(path: str, query: bytes) -> int:
    """As many bytes as were signed. Whoever has no signature sends next to nothing."""
    upload_id, _, part = path.removeprefix(PARTS).partition("/")
    store = storage()
    if not isinstance(store, LocalStorage) or not (part.isascii() and part.isdigit() and len(part) < 9):
        return FORM
    try:
        return max(
            FORM, store.addresses.part_grant(upload_id, int(part), dict(parse_qsl(query.decode("latin-1")))).size
        )
    except AddressRefused:
        return FORM


def _declared(scope: Any) -> int:
    """What Content-Length says; 0 where it says nothing that is a number."""
    value = dict(scope["headers"]).get(b"content-length", b"")
    return int(value) if value.isdigit() and len(value) < 20 else 0


async def _refuse(send: Send, limit: int) -> None:
    problem = TooLarge(f"A request may carry {limit} bytes here.", remedy="Send less at once; files go up in parts.")
    body = json.dumps(body_of(problem)).encode()
    headers = [
        (b"content-type", CONTENT_TYPE.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
