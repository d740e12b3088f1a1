"""`/ws/jobs/{id}/logs/`: the lines of a job as they come (docs/protocols.md, section 6).

A process listens once per job (`tails`), and can do without the message server. Not here: how a socket runs
(`apps.accounts.sockets`).
"""

from __future__ import annotations

import json
import logging
import uuid
from typing import Any
from urllib.parse import parse_qsl

from channels.db import database_sync_to_async
from django.urls import URLPattern, path
from rest_framework.exceptions import ValidationError

from apps.accounts.sockets import (
    BAD_QUERY,
    FINISHED,
    NOT_FOUND,
    TROUBLE,
    Receive,
    Refused,
    Scope,
    Send,
    SendText,
    caller,
    run,
)
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

LOOK_AGAIN = 60.0
"""Seconds after which it is asked again whether the reader may still read."""


async def follow_logs(scope: Scope, receive: Receive, send: Send) -> None:
    """The ASGI application of one socket."""

    async def follow(job: Job, send_text: SendText) -> int:
        try:
            attempt, wanted = await database_sync_to_async(_wanted)(scope, job)
            await _follow(job.pk, attempt, wanted, send_text)
        except YardmasterError as trouble:
            log.error("A log cannot be followed: %s", trouble)
            return TROUBLE
        return FINISHED

    await run(scope, receive, send, look=_job_of, follow=follow, every=LOOK_AGAIN)


async def _follow(job_id: uuid.UUID, attempt: int, wanted: Wanted, send_text: SendText) -> None:
    shared = following()
    async with shared.tail(job_id, attempt) as tail:
        await Follower(tail, shared.frames, wanted, send_text).run()


def _job_of(scope: Scope) -> Job:
    user = caller(scope, "jobs")
    try:
        return job_for(user, scope["url_route"]["kwargs"]["id"])
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
