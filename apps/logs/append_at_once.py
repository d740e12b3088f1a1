"""The shortest way from a task to the log store: ASGI, before Django.

Tasks that print send lines some times a second each, and all of Django around one append costs ten times the append.
So the plain case is dealt with here: a token that was good a moment ago, a sound address, whole lines that fit.
Whatever is not plain is passed to the view, which then says what is wrong. A body is unpacked once: the view hears what
became of it.

Each job has few slots for its writes and all of them threads of their own, so that one that sends bodies which are
small to send and slow to unpack holds up no other user. Who waits too long for a slot comes again later (429).
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import parse_qsl

from apps.api.problems import CONTENT_TYPE, answer_to, body_of
from apps.api.slots import Slot, Slots
from apps.errors import DomainError, TooMany
from apps.logs.intake import (
    JUDGED,
    MOST_BYTES,
    Judged,
    RememberedTaskToken,
    append,
    lines_of,
    next_line_json,
    when_full,
)
from apps.stores import log_moved
from yardmaster.errors import YardmasterError
from yardmaster.job.spec import Role
from yardmaster.logs.keys import WRITER_LIMIT, StreamKey
from yardmaster.logs.store import Written
from yardmaster.logs.volume import NeedsGrant

PATH = "/api/v1/task/log/"
AT_ONCE = 2
"""Writes of one job that are unpacked and kept at a time."""
THREADS = 4
PATIENCE = 1.0
"""Seconds that a write waits for others of its job."""
_NAMES = {"role", "index", "first_line", "lines", "writer", "tail"}

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[..., Awaitable[None]]


class AppendAtOnce:
    """ASGI middleware around Django."""

    def __init__(self, inner: Application) -> None:
        self._inner = inner
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="append")
        self._slots = Slots()

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] != PATH:
            await self._inner(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        body, receive = await _body(receive)
        token = headers.get("authorization", "").rpartition(" ")[2]
        try:
            async with self._slots.hold([Slot(token, AT_ONCE, PATIENCE)]):
                await self._write(scope, headers, body, receive, send)
        except TooMany:
            await _refuse(send)

    async def _write(
        self, scope: dict[str, Any], headers: dict[str, str], body: bytes, receive: Receive, send: Send
    ) -> None:
        write = _plain_write(scope, headers)
        if write is not None:
            done = asyncio.get_running_loop().run_in_executor(self._threads, _append, *write, headers, body)
            written = await done
            if isinstance(written, Written):
                await _answer(send, 200, next_line_json(written))
                return
            scope = {**scope, JUDGED: written}
        await self._inner(scope, receive, send)


def _plain_write(scope: dict[str, Any], headers: dict[str, str]) -> tuple[StreamKey, dict[str, Any]] | None:
    """(stream, what the query says of the write); None when anything about it is not plain."""
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
    return StreamKey(identity.job_id, identity.attempt, role, index), {**numbers, **options}


async def _body(receive: Receive) -> tuple[bytes, Receive]:
    """The body, up to a little more than is allowed, and a `receive` that tells all of it again."""
    received: deque[Message] = deque()
    body = bytearray()
    while len(body) <= MOST_BYTES:
        message = await receive()
        received.append(message)
        body += message.get("body", b"")
        if not message.get("more_body"):
            break

    async def again() -> Message:
        return received.popleft() if received else await receive()

    return bytes(body), again


def _append(stream: StreamKey, options: dict[str, Any], headers: dict[str, str], body: bytes) -> Written | Judged:
    data = b""
    try:
        data = lines_of(body, headers)
        written = append(stream, data, headers.get("x-times", ""), **options)
    except NeedsGrant:
        return Judged(data)
    except (DomainError, YardmasterError) as problem:
        return Judged(problem=problem)
    log_moved(stream.job_id, stream.role, stream.index, written.next_line)
    return written


async def _refuse(send: Send) -> None:
    problem = answer_to(TooMany("Too many log writes of this job are under way at once.", "too_many_at_once", wait=1))
    await _answer(send, problem.status, body_of(problem), CONTENT_TYPE, problem.headers)


async def _answer(
    send: Send,
    status: int,
    answer: Mapping[str, Any],
    kind: str = "application/json",
    more: Mapping[str, str] | None = None,
) -> None:
    body = json.dumps(answer).encode()
    named = {"content-type": kind, "content-length": str(len(body)), **(more or {})}
    headers = [(name.lower().encode(), value.encode()) for name, value in named.items()]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
