"""Where tasks write their logs (docs/protocols.md, section 5).

These are the portal's busiest addresses: no query per request once a token is known, and no work per line. Not here:
what a token is (`apps.jobs.task_auth`), how lines are kept (`yardmaster.logs`), reading (`views`).
"""

from __future__ import annotations

import time
import zlib
from typing import Any

from django.http import HttpRequest
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.api.problems import ApiProblem, Invalid, TooLarge, body_of
from apps.jobs.task_auth import IsTask, TaskIdentity, TaskTokenAuthentication
from apps.logs.nudges import log_moved
from apps.logs.serializers import EndQuery, GapBody, GapQuery, NextLine, StreamQuery, WriteQuery
from apps.logs.store import log_store
from yardmaster.errors import Problem
from yardmaster.logs.keys import PastTheEnd, StreamKey
from yardmaster.logs.lines import has_longer_line

MOST_BYTES = 1 << 20
MOST_INFLATED = 8 << 20
LONGEST_LINE = 128 << 10
"""Runners cut lines at 64 KiB; whoever else writes may not make a line that no reader can take."""
MOST_MARKS = 4096
TOKEN_REMEMBERED = 5.0
"""Seconds. That much longer a token may write after it was outlived."""


class RememberedTaskToken(TaskTokenAuthentication):
    """The same, but a token that was good is believed for a few seconds without asking the database."""

    _known: dict[bytes, tuple[float, Any]] = {}

    def authenticate(self, request: Request) -> Any:
        header = request.META.get("HTTP_AUTHORIZATION", "").encode("latin-1", "replace")
        known = self._known.get(header)
        if known is not None and known[0] > time.monotonic():
            return known[1]
        found = super().authenticate(request)
        if found is not None:
            if len(self._known) >= 10_000:
                self._known.clear()
            self._known[header] = (time.monotonic() + TOKEN_REMEMBERED, found)
        return found


class TaskLogView(APIView):
    """Of one task, told by its token."""

    authentication_classes = [RememberedTaskToken]
    permission_classes = [IsTask]

    def stream(self, request: Request, query: dict[str, Any]) -> StreamKey:
        identity = request.auth
        assert isinstance(identity, TaskIdentity)
        return StreamKey(identity.job_id, identity.attempt, query["role"], query["index"])

    def answer(self, stream: StreamKey, next_line: int) -> Response:
        log_moved(stream.job_id, stream.role, stream.index, next_line)
        return Response({"next_line": next_line})

    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, PastTheEnd):
            problem = body_of(ApiProblem(409, exc.code, exc.message, remedy=exc.remedy))
            return Response({**problem, "next_line": exc.next_line}, 409, content_type="application/problem+json")
        return super().handle_exception(exc)


class TaskLinesView(TaskLogView):
    """The lines of one task."""

    @extend_schema(parameters=[StreamQuery], responses=NextLine)
    def get(self, request: Request) -> Response:
        """Where the stream goes on."""
        stream = self.stream(request, StreamQuery.of(request))
        return Response({"next_line": log_store().next_line(stream)})

    @extend_schema(
        parameters=[
            WriteQuery,
            OpenApiParameter("X-Times", OpenApiTypes.STR, OpenApiParameter.HEADER, description="`offset:unix ms,…`"),
            OpenApiParameter("Content-Encoding", OpenApiTypes.STR, OpenApiParameter.HEADER, enum=["gzip", "identity"]),
        ],
        request={"application/octet-stream": OpenApiTypes.BINARY},
        responses=NextLine,
    )
    def post(self, request: Request) -> Response:
        """Write whole lines. What is there already is skipped; past the end is 409 with `next_line`."""
        query = WriteQuery.of(request)
        data = _body_of(request._request)
        if has_longer_line(data, LONGEST_LINE):
            raise TooLarge(f"A line holds at most {LONGEST_LINE} bytes.", remedy="Cut longer lines into several.")
        times = _times_of(request.headers.get("X-Times", "")) or [(0, time.time_ns() // 1_000_000)]
        stream = self.stream(request, query)
        next_line = log_store().append(stream, query["first_line"], data, times, lines=query["lines"])
        return self.answer(stream, next_line)


class TaskGapView(TaskLogView):
    """Lines that are lost."""

    @extend_schema(parameters=[GapQuery], request=GapBody, responses=NextLine)
    def post(self, request: Request) -> Response:
        """Mark lines that the task had to drop; they count as written."""
        query = GapQuery.of(request)
        body = GapBody(data=request.data)
        body.is_valid(raise_exception=True)
        lines, dropped = body.validated_data["lines"], body.validated_data["bytes"]
        stream = self.stream(request, query)
        now = time.time_ns() // 1_000_000
        return self.answer(stream, log_store().mark_gap(stream, query["first_line"], lines, dropped, now))


class TaskEndView(TaskLogView):
    """The end of a stream."""

    @extend_schema(parameters=[EndQuery], request=None, responses=NextLine)
    def post(self, request: Request) -> Response:
        """Say that no more lines are coming, unless the task restarts."""
        query = EndQuery.of(request)
        stream = self.stream(request, query)
        return self.answer(stream, log_store().mark_end(stream, query["lines"]))


def _body_of(request: HttpRequest) -> bytes:
    """The body, inflated within bounds."""
    raw = request.read(MOST_BYTES + 1)
    if len(raw) > MOST_BYTES:
        raise TooLarge(f"A request holds at most {MOST_BYTES} bytes of log.", remedy="Send fewer lines at once.")
    encoding = request.headers.get("Content-Encoding", "identity").lower()
    if encoding == "identity":
        return raw
    if encoding != "gzip":
        message = f"{encoding!r} is not known here."
        raise Invalid([Problem("Content-Encoding", "unknown", message, "Use gzip, or none.", encoding)])
    inflater = zlib.decompressobj(wbits=31)
    try:
        data = inflater.decompress(raw, MOST_INFLATED + 1)
    except zlib.error as error:
        raise Invalid([Problem("", "invalid", f"The body is not gzip: {error}.", "Send it again.")]) from error
    if len(data) > MOST_INFLATED:
        raise TooLarge(f"A request holds at most {MOST_INFLATED} bytes of inflated log.", remedy="Send fewer lines.")
    if not inflater.eof or inflater.unused_data:
        raise Invalid([Problem("", "invalid", "The body is not one whole gzip stream.", "Send it again.")])
    return data


def _times_of(header: str) -> list[tuple[int, int]]:
    if not header:
        return []
    try:
        times = [(int(offset), int(at)) for offset, _, at in (mark.partition(":") for mark in header.split(","))]
    except ValueError:
        times = []
    if not times or len(times) > MOST_MARKS:
        message = f"This is no list of at most {MOST_MARKS} marks offset:milliseconds."
        raise Invalid([Problem("X-Times", "invalid", message, "Write 0:1700000000000,12:1700000000100.", header[:100])])
    return times
