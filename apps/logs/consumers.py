"""`/ws/jobs/{id}/logs/`: the lines of a job as they come (docs/protocols.md, section 6).

Plain ASGI rather than a Channels consumer: those subscribe each connection to the message server and cannot open while
it is away. Here a process listens once per job (`tails`), and can do without. What clients send is not read.
"""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any
from urllib.parse import parse_qsl

from channels.db import database_sync_to_async
from django.urls import URLPattern, path
from rest_framework.exceptions import ValidationError

from apps.accounts.websocket_auth import reads, still_signed_in
from apps.errors import DomainError
from apps.jobs.models import Job
from apps.jobs.selectors import job_for
from apps.logs.followers import Follower, Wanted
from apps.logs.selectors import first_lines
from apps.logs.serializers import WhichLogs
from apps.logs.tails import following
from yardmaster.errors import YardmasterError
from yardmaster.logs.keys import LINE_LIMIT

log = logging.getLogger(__name__)

NOT_SIGNED_IN, NOT_FOUND, BAD_QUERY, FINISHED, TROUBLE = 4401, 4404, 4400, 1000, 1011
LOOK_AGAIN = 60.0
"""Seconds after which it is asked again whether the reader may still read."""

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class Refused(Exception):
    """The socket is closed with this code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


async def follow_logs(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """The ASGI application of one socket."""
    await receive()
    await send({"type": "websocket.accept"})  # a browser learns the code only of a socket that was open
    code = await _first_of(_until_gone(receive), _serve(scope, send), _watch_permission(scope))
    if code is not None:
        await send({"type": "websocket.close", "code": code})


async def _first_of(*ways: Coroutine[Any, Any, int | None]) -> int | None:
    """Run all until one ends, and say what it said: the code to close with, None when the client is gone."""
    tasks = [asyncio.create_task(way) for way in ways]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return next(task for task in tasks if task.done()).result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "websocket.disconnect":
        pass


async def _watch_permission(scope: dict[str, Any]) -> int:
    """Ends once the reader may no longer read."""
    while True:
        await asyncio.sleep(LOOK_AGAIN)
        try:
            await _job_of(scope)
        except Refused as refused:
            return refused.code


async def _serve(scope: dict[str, Any], send: Send) -> int | None:
    """Send until there is nothing more to come."""
    try:
        job = await _job_of(scope)
        attempt, wanted = await database_sync_to_async(_wanted)(scope, job)
        await _follow(job.pk, attempt, wanted, send)
    except Refused as refused:
        return refused.code
    except OSError:
        return None  # the client went while something was being sent
    except YardmasterError as trouble:
        log.error("A log cannot be followed: %s", trouble)
        return TROUBLE
    return FINISHED


async def _follow(job_id: uuid.UUID, attempt: int, wanted: Wanted, send: Send) -> None:
    shared = following()

    async def send_text(text: str) -> None:
        await send({"type": "websocket.send", "text": text})

    async with shared.tail(job_id, attempt) as tail:
        await Follower(tail, shared.frames, wanted, send_text).run()


async def _job_of(scope: dict[str, Any]) -> Job:
    if not scope["user"].is_authenticated:
        raise Refused(NOT_SIGNED_IN)
    if not reads(scope, "jobs"):
        raise Refused(NOT_FOUND)
    job: Job = await database_sync_to_async(_find_job)(scope, scope["url_route"]["kwargs"]["id"])
    return job


def _find_job(scope: dict[str, Any], job_id: uuid.UUID) -> Job:
    user = still_signed_in(scope)
    if user is None:
        raise Refused(NOT_SIGNED_IN)
    try:
        return job_for(user, job_id)
    except DomainError as problem:
        raise Refused(NOT_FOUND) from problem


def _wanted(scope: dict[str, Any], job: Job) -> tuple[int, Wanted]:
    """The attempt and the streams that the address names. Raises `Refused`."""
    values = dict(parse_qsl(scope["query_string"].decode("latin-1")))
    query = WhichLogs(data=values)
    try:
        query.is_valid(raise_exception=True)
        begin = json.loads(values.get("from", "0"))
    except (ValidationError, ValueError, RecursionError) as error:
        raise Refused(BAD_QUERY) from error
    which = query.validated_data
    attempt, role, index = which.get("attempt", job.attempt), which.get("role"), which["index"]
    lines = begin if isinstance(begin, dict) else {}
    first = 0 if isinstance(begin, dict) else begin
    if not all(type(line) is int and -LINE_LIMIT <= line <= LINE_LIMIT for line in [first, *lines.values()]):
        raise Refused(BAD_QUERY)
    if first < 0:
        lines, first = first_lines(job.pk, attempt, role, index, -first), 0
    return attempt, Wanted(role, index, first, {name: max(0, line) for name, line in lines.items()})


websocket_urlpatterns: list[URLPattern] = [path("ws/jobs/<uuid:id>/logs/", follow_logs)]  # type: ignore[arg-type]
