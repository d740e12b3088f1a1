"""Where tasks write their logs (docs/protocols.md, section 5).

No query per request once a token is known, and no work per line. Most writes do not even come here (`append_at_once`).
Not here: what a token is (`apps.jobs.state.task_auth`), how lines are kept (`yardmaster.logs`), reading (`views`).
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.api.problems import body_of
from apps.errors import Conflict, Gone, NotFound
from apps.jobs.state.log_charges import charged
from apps.jobs.state.task_auth import IsTask, TaskIdentity
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
from apps.logs.serializers import (
    EndQuery,
    GapBody,
    GapQuery,
    NextLine,
    OpenLineBody,
    OpenLineQuery,
    ShownLine,
    WritePosition,
    WriteQuery,
    WriterQuery,
)
from apps.stores import counted_log, log_moved, open_line_show
from yardmaster.logs.keys import JobGone, OutOfStep, StreamKey
from yardmaster.logs.store import END_RESERVE, Written


class TaskLogView(APIView):
    """Of one task, told by its token."""

    authentication_classes = [RememberedTaskToken]
    permission_classes = [IsTask]

    def stream(self, request: Request, query: dict[str, Any]) -> StreamKey:
        identity = request.auth
        assert isinstance(identity, TaskIdentity)
        if not identity.has_task(query["role"], query["index"]):
            name = f"{query['role']}-{query['index']}"
            raise NotFound(f"The job has no task {name}.", "unknown_task", remedy="Write as a task that it has.")
        return StreamKey(identity.job_id, identity.attempt, query["role"], query["index"])

    def answer(self, stream: StreamKey, written: Written) -> Response:
        log_moved(stream.job_id, stream.role, stream.index, written.next_line)
        return Response(next_line_json(written))

    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, OutOfStep):
            problem = body_of(Conflict(exc.message, exc.code, remedy=exc.remedy))
            return Response({**problem, "next_line": exc.next_line}, 409, content_type="application/problem+json")
        if isinstance(exc, JobGone):
            exc = Gone(exc.message)
        return super().handle_exception(exc)


class TaskLinesView(TaskLogView):
    """The lines of one task."""

    @extend_schema(parameters=[WriterQuery], responses=WritePosition)
    def get(self, request: Request) -> Response:
        """Where the stream continues, and where what this writer has written of it ends."""
        query = WriterQuery.of(request)
        stream = self.stream(request, query)
        next_line, mine = counted_log().place(stream, query["writer"])
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
        with `next_line`. Where `full` is answered the log takes no more and nothing has changed: count the lines as a
        gap, and send the task's last ones with `tail=1`. Without `tail` they are dropped and counted at once."""
        query = WriteQuery.of(request)
        data, marks = _lines_of(request), request.headers.get("X-Times", "")
        stream = self.stream(request, query)
        assert isinstance(request.auth, TaskIdentity)
        numbers = {name: query[name] for name in ("first_line", "lines", "writer")}
        write = partial(append, stream, data, marks, **numbers, **when_full(request.auth, query["tail"]))
        return self.answer(stream, charged(stream, write))


def _lines_of(request: Request) -> bytes:
    """What the request brings; unpacked here unless it was on its way (`append_at_once`)."""
    judged: Judged | None = getattr(request._request, "scope", {}).get(JUDGED)
    if judged is not None:
        return judged.lines()
    headers = {name.lower(): value for name, value in request.headers.items()}
    return lines_of(request._request.read(MOST_BYTES + 1), headers)


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
        write = partial(counted_log().mark_gap, stream, first, lines, dropped, now, writer=writer)
        return self.answer(stream, charged(stream, write))


class TaskEndView(TaskLogView):
    """The end of a stream."""

    @extend_schema(parameters=[EndQuery], request=None, responses=NextLine)
    def post(self, request: Request) -> Response:
        """Say that no more lines are coming, unless the task restarts."""
        query = EndQuery.of(request)
        stream = self.stream(request, query)
        assert isinstance(request.auth, TaskIdentity)
        reserve = END_RESERVE * sum(request.auth.replicas.values())
        next_line = charged(stream, partial(counted_log().mark_end, stream, query["lines"], reserve))
        return self.answer(stream, Written(next_line, None))


class TaskOpenLineView(TaskLogView):
    """The line that a task has not finished, such as a progress bar."""

    @extend_schema(parameters=[OpenLineQuery], request=OpenLineBody, responses=ShownLine)
    def post(self, request: Request) -> Response:
        """Show those who follow the log this line, in place of the one shown before. It is not kept. Worth sending only
        while the answer to a report says `followed`."""
        query = OpenLineQuery.of(request)
        body = OpenLineBody(data=request.data)
        body.is_valid(raise_exception=True)
        open_line_show(self.stream(request, query), query["line"], body.validated_data["text"])
        return Response({"line": query["line"]})  # a runner takes no answer without JSON for the portal's


urlpatterns: list[URLPattern | URLResolver] = [
    path("task/log/", TaskLinesView.as_view(), name="task-log"),
    path("task/log/gap/", TaskGapView.as_view(), name="task-log-gap"),
    path("task/log/open/", TaskOpenLineView.as_view(), name="task-log-open"),
    path("task/log/end/", TaskEndView.as_view(), name="task-log-end"),
]
