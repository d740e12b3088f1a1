"""The shortest way from a task to the log store: ASGI, before Django.

Tasks that print send lines some times a second each, and all of Django around one append costs ten times the append.
So the plain case is dealt with here: a token that was good a moment ago, a sound address, whole lines that fit.
Whatever is not plain goes on to the view as it came, which then says what is wrong: an append may be tried twice.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl

from apps.api.problems import ApiProblem
from apps.logs.intake import MOST_BYTES, lines_in, times_in
from apps.logs.nudges import log_moved
from apps.logs.store import counted_log
from apps.logs.task_views import RememberedTaskToken, next_line_json, when_full
from yardmaster.errors import YardmasterError
from yardmaster.logs.keys import WRITER_LIMIT, StreamKey
from yardmaster.logs.store import Written
from yardmaster.spec import Role

PATH = "/api/v1/task/log/"
_NAMES = {"role", "index", "first_line", "lines", "writer", "tail"}

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[..., Awaitable[None]]


class AppendAtOnce:
    """ASGI middleware around Django."""

    def __init__(self, inner: Application) -> None:
        self._inner = inner

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        is_append = scope["type"] == "http" and scope["method"] == "POST" and scope["path"] == PATH
        if is_append and (write := _plain_write(scope)) is not None:
            body, receive = await _body(receive)
            written = await asyncio.to_thread(_append, *write, body)
            if written is not None:
                await _answer(send, next_line_json(written))
                return
        await self._inner(scope, receive, send)


def _plain_write(scope: dict[str, Any]) -> tuple[StreamKey, dict[str, Any], dict[str, str]] | None:
    """(stream, what the query says of the write, headers); None when anything about it is not plain."""
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    identity = RememberedTaskToken.identity_behind(headers.get("authorization", ""))
    query = {"writer": "0", "tail": "-1", **dict(parse_qsl(scope["query_string"].decode("latin-1")))}
    if identity is None or query.keys() != _NAMES:
        return None
    try:
        role, index = Role(query["role"]), int(query["index"])
        numbers = {name: int(query[name]) for name in ("first_line", "lines", "writer", "tail")}
    except ValueError:
        return None
    if not (identity.has_task(role, index) and 0 <= numbers["writer"] <= WRITER_LIMIT):
        return None
    options = when_full(identity, numbers.pop("tail"))
    return StreamKey(identity.job_id, identity.attempt, role, index), {**numbers, **options}, headers


async def _body(receive: Receive) -> tuple[bytes, Receive]:
    """The body, up to a little more than is allowed, and a `receive` that tells all of it again."""
    heard: deque[Message] = deque()
    body = bytearray()
    while len(body) <= MOST_BYTES:
        message = await receive()
        heard.append(message)
        body += message.get("body", b"")
        if not message.get("more_body"):
            break

    async def again() -> Message:
        return heard.popleft() if heard else await receive()

    return bytes(body), again


def _append(stream: StreamKey, options: dict[str, Any], headers: dict[str, str], body: bytes) -> Written | None:
    try:
        data = lines_in(body, headers.get("content-encoding", "identity").lower())
        times = times_in(headers.get("x-times", "")) or [(0, time.time_ns() // 1_000_000)]
        written = counted_log().append(stream, data=data, times=times, **options)
    except (ApiProblem, YardmasterError):
        return None
    log_moved(stream.job_id, stream.role, stream.index, written.next_line)
    return written


async def _answer(send: Send, answer: dict[str, Any]) -> None:
    body = json.dumps(answer).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
