"""Where tasks write their logs (docs/protocols.md, section 5).

No query per request once a token is known, and no work per line. Most writes do not even come here (`append_at_once`).
Not here: what a token is (`apps.jobs.task_auth`), how lines are kept (`yardmaster.logs`), reading (`views`).
"""

from __future__ import annotations

import time
from typing import Any, ClassVar

from django.contrib.auth.models import AnonymousUser
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.api.problems import ApiProblem, Gone, body_of
from apps.jobs.task_auth import IsTask, TaskIdentity, TaskTokenAuthentication
from apps.logs.intake import MOST_BYTES, lines_in, times_in
from apps.logs.nudges import log_moved
from apps.logs.serializers import EndQuery, GapBody, GapQuery, NextLine, Place, WriteQuery, WriterQuery
from apps.logs.store import log_store
from yardmaster.logs.keys import JobGone, OutOfStep, StreamKey

TOKEN_REMEMBERED = 5.0
"""Seconds. That much longer a token may write after it was outlived."""


class RememberedTaskToken(TaskTokenAuthentication):
    """The same, but a token that was good is believed for a few seconds without asking the database."""

    known: ClassVar[dict[str, tuple[float, TaskIdentity]]] = {}

    @classmethod
    def identity_behind(cls, header: str) -> TaskIdentity | None:
        """Whom this `Authorization` header stood for a few seconds ago; None: nobody, or it is too long ago."""
        until, identity = cls.known.get(header, (0.0, None))
        return identity if until > time.monotonic() else None

    def authenticate(self, request: Request) -> tuple[AnonymousUser, TaskIdentity] | None:
        header = request.META.get("HTTP_AUTHORIZATION", "")
        identity = self.identity_behind(header)
        if identity is not None:
            return AnonymousUser(), identity
        found = super().authenticate(request)
        if found is not None:
            if len(self.known) >= 10_000:
                self.known.clear()
            self.known[header] = (time.monotonic() + TOKEN_REMEMBERED, found[1])
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
        if isinstance(exc, OutOfStep):
            problem = body_of(ApiProblem(409, exc.code, exc.message, remedy=exc.remedy))
            return Response({**problem, "next_line": exc.next_line}, 409, content_type="application/problem+json")
        if isinstance(exc, JobGone):
            exc = Gone(exc.message)
        return super().handle_exception(exc)


class TaskLinesView(TaskLogView):
    """The lines of one task."""

    @extend_schema(parameters=[WriterQuery], responses=Place)
    def get(self, request: Request) -> Response:
        """Where the stream goes on, and where what this writer has written of it ends."""
        query = WriterQuery.of(request)
        stream = self.stream(request, query)
        next_line, mine = log_store().place(stream, query["writer"])
        return Response({"next_line": next_line, "mine": mine})

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
        """Write whole lines. What is there already is skipped. Past the end, or over lines of another `writer`, is 409
        with `next_line`."""
        query = WriteQuery.of(request)
        raw = request._request.read(MOST_BYTES + 1)
        data = lines_in(raw, request.headers.get("Content-Encoding", "identity").lower())
        times = times_in(request.headers.get("X-Times", "")) or [(0, time.time_ns() // 1_000_000)]
        stream = self.stream(request, query)
        lines, writer = query["lines"], query["writer"]
        next_line = log_store().append(stream, query["first_line"], data, times, lines=lines, writer=writer)
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
        first, now, writer = query["first_line"], time.time_ns() // 1_000_000, query["writer"]
        return self.answer(stream, log_store().mark_gap(stream, first, lines, dropped, now, writer=writer))


class TaskEndView(TaskLogView):
    """The end of a stream."""

    @extend_schema(parameters=[EndQuery], request=None, responses=NextLine)
    def post(self, request: Request) -> Response:
        """Say that no more lines are coming, unless the task restarts."""
        query = EndQuery.of(request)
        stream = self.stream(request, query)
        return self.answer(stream, log_store().mark_end(stream, query["lines"]))
