"""Where people read logs (docs/protocols.md, section 6): viewers of the namespace. To others the job is not there."""

from __future__ import annotations

import uuid
from typing import Any

from django.http import StreamingHttpResponse
from django.urls import URLPattern, URLResolver, path
from django.utils.http import content_disposition_header
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.audit.services import download_record
from apps.errors import Invalid
from apps.jobs.models import Job
from apps.jobs.selectors import job_for
from apps.jobs.state.retention import refuse_cleared
from apps.logs.selectors import (
    MergedPosition,
    levels_of,
    lines_of,
    matches_of,
    merged_lines,
    raw_of,
    streams_named,
    streams_of,
)
from apps.logs.serializers import (
    LEVELS,
    LevelsAnswer,
    LinesAnswer,
    LinesQuery,
    SearchAnswer,
    SearchQuery,
    StreamsAnswer,
    WhichLogs,
)
from apps.uploads.delivery import stream_pieces
from yardmaster.errors import Problem
from yardmaster.lifecycle.retention import Kind
from yardmaster.logs.keys import LinesRejected, StreamKey
from yardmaster.logs.search import Query


class LogView(ApiView):
    """About the logs of one job."""

    scope = "jobs"

    def job(self, id: uuid.UUID) -> Job:
        return job_for(self.user, id)

    def attempt(self, job: Job, asked: int | None) -> int:
        """The attempt whose log is read: the asked one, or the newest. Raises `Gone` where a rule has removed it."""
        attempt = job.attempt if asked is None else asked
        refuse_cleared(job, Kind.LOGS, attempt)
        return attempt


class StreamsView(LogView):
    @extend_schema(responses=StreamsAnswer)
    def get(self, request: Request, id: uuid.UUID) -> Response:
        """Every task's stream of lines, of all attempts."""
        job = self.job(id)
        self.attempt(job, None)
        return Response({"streams": streams_of(job.pk)})


class LinesView(LogView):
    @extend_schema(parameters=[LinesQuery], responses=LinesAnswer)
    def get(self, request: Request, id: uuid.UUID) -> Response:
        """Lines of one task by number, or of all tasks by time."""
        job, query = self.job(id), LinesQuery.of(request)
        attempt = self.attempt(job, query.get("attempt"))
        role, first, limit = query.get("role"), query["from"], query["limit"]
        if role is not None:
            return Response(lines_of(StreamKey(job.pk, attempt, role, query["index"]), first, limit))
        around = query.get("around")
        place = MergedPosition(
            query.get("cursor"),
            query.get("after"),
            query.get("before"),
            (StreamKey(job.pk, attempt, around[0], around[1]), around[2]) if around else None,
            first,
        )
        try:
            return Response(merged_lines(job.pk, attempt, place, limit))
        except LinesRejected as error:
            raise _invalid("cursor", error, query.get("cursor", "")) from error


class SearchView(LogView):
    @extend_schema(parameters=[SearchQuery], responses=SearchAnswer)
    def get(self, request: Request, id: uuid.UUID) -> Response:
        """Search the whole log for a text, a regular expression or a level. Bounded in time: continue at `next`."""
        job, query = self.job(id), SearchQuery.of(request)
        streams = streams_named(job.pk, self.attempt(job, query.get("attempt")), query.get("role"), query["index"])
        try:
            wanted = Query(query["q"], query["regex"], query["case"], LEVELS.get(query.get("level", "")))
            return Response(matches_of(streams, wanted, query.get("from", "0"), query["limit"]))
        except LinesRejected as error:
            raise _invalid("q", error, query["q"]) from error


class LevelsView(LogView):
    @extend_schema(parameters=[WhichLogs], responses=LevelsAnswer)
    def get(self, request: Request, id: uuid.UUID) -> Response:
        """Count errors and warnings. Bounded in time: repeat the request to continue the count."""
        job, query = self.job(id), WhichLogs.of(request)
        streams = streams_named(job.pk, self.attempt(job, query.get("attempt")), query.get("role"), query["index"])
        return Response(levels_of(streams))


class RawView(LogView):
    @extend_schema(parameters=[WhichLogs], responses={(200, "text/plain"): OpenApiTypes.STR})
    def get(self, request: Request, id: uuid.UUID) -> StreamingHttpResponse:
        """The full log as text: of one task, or of all tasks by time with the task's name before each line."""
        job, query = self.job(id), WhichLogs.of(request)
        attempt, role, index = self.attempt(job, query.get("attempt")), query.get("role"), query["index"]
        task = f"-{role}-{index}" if role else ""
        download_record(self.user, "log", job.pk, job.namespace, name=job.name)
        pieces = stream_pieces(request._request, raw_of(job.pk, attempt, role, index))
        response = StreamingHttpResponse(pieces, content_type="text/plain; charset=utf-8")
        name = content_disposition_header(True, f"{job.name}-{attempt}{task}.log")
        response.headers["Content-Disposition"] = name or "attachment"
        return response


def _invalid(field: str, error: LinesRejected, value: Any) -> Invalid:
    return Invalid([Problem(field, error.code, error.message, error.remedy, str(value)[:200])])


urlpatterns: list[URLPattern | URLResolver] = [
    path("jobs/<uuid:id>/logs/", StreamsView.as_view(), name="job-logs"),
    path("jobs/<uuid:id>/logs/lines/", LinesView.as_view(), name="job-log-lines"),
    path("jobs/<uuid:id>/logs/search/", SearchView.as_view(), name="job-log-search"),
    path("jobs/<uuid:id>/logs/levels/", LevelsView.as_view(), name="job-log-levels"),
    path("jobs/<uuid:id>/logs/raw/", RawView.as_view(), name="job-log-raw"),
]
