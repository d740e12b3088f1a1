"""The shortest way from a store that is a folder to who reads a small object of it: ASGI, before Django.

A task that stages many small files sends a request for each, and all of Django around one takes ten times as long as
to read it. So the plain case is dealt with here: a GET of a whole object of one piece, at a sound address.
Whatever is not plain is passed to the view (`delivery`), which then says what is wrong. The answer is the view's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import parse_qsl

from apps.stores import storage
from apps.uploads.delivery import object_headers
from yardmaster.errors import YardmasterError

PATH = "/storage/objects/"
LARGEST = 256 << 10
"""Bytes of an object that is read here, as one piece. Of larger ones, Django is the smaller part."""
THREADS = 2
_NOT_PLAIN = {b"range", b"if-none-match"}
"""With these a part of an object is asked for, or nothing of it."""

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[..., Awaitable[None]]


class ReadAtOnce:
    """ASGI middleware around Django."""

    def __init__(self, inner: Application) -> None:
        self._inner = inner
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="objects")

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        found = None
        if _is_plain(scope):
            query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
            loop = asyncio.get_running_loop()
            found = await loop.run_in_executor(self._threads, _read, scope["path"].removeprefix(PATH), query)
        if found is None:
            await self._inner(scope, receive, send)
            return
        headers, body = found
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _is_plain(scope: Mapping[str, Any]) -> bool:
    return (
        scope["type"] == "http"
        and scope["method"] == "GET"
        and scope["path"].startswith(PATH)
        and not any(name in _NOT_PLAIN for name, _ in scope["headers"])
    )


def _read(key: str, query: Mapping[str, str]) -> tuple[list[tuple[bytes, bytes]], bytes] | None:
    """Headers and body; None where the view has to answer."""
    try:
        served = storage().served()
        if served is None:
            return None
        grant = served.addresses.read_grant(key, query)
        found = storage().stat(grant.key)
        if found.size > LARGEST:
            return None
        with storage().open_range(grant.key) as source:
            body = source.read(found.size + 1)
    except YardmasterError:
        return None
    if len(body) != found.size:  # another object has just taken its place
        return None
    headers = object_headers(found, grant.filename, grant.content_type) | {"Content-Length": str(found.size)}
    return [(name.lower().encode("ascii"), value.encode("ascii")) for name, value in headers.items()], body
