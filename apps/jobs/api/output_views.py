"""The API of a job's outputs: the files that its tasks wrote below their log directories."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern, URLResolver, path, reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.jobs.api.detail_serializers import AttemptChoiceSerializer
from apps.jobs.api.job_views import JobAddress
from apps.jobs.models import Job, JobOutput
from apps.jobs.state import output_files
from apps.jobs.state.output_delivery import output_response, outputs_archive
from apps.jobs.state.retention import refuse_cleared
from yardmaster.lifecycle.retention import Kind

LARGEST_PAGE = 1_000


class OutputsQuerySerializer(AttemptChoiceSerializer):
    after = serializers.CharField(
        required=False, default="", max_length=600, allow_blank=True, trim_whitespace=False,
        help_text="Files that follow this one: `next` of the page before.",
    )  # fmt: skip
    page_size = serializers.IntegerField(required=False, default=200, min_value=1, max_value=LARGEST_PAGE)


class OutputQuerySerializer(AttemptChoiceSerializer):
    path = serializers.CharField(max_length=600, trim_whitespace=False, help_text="As the list of outputs names it.")


class OutputSerializer(serializers.Serializer[JobOutput]):
    """A file that a task wrote below its log directory, as it was when it was uploaded last."""

    path = serializers.CharField(
        source="name", help_text="Below the log directory; of a task with a directory of its own its name is in front."
    )
    task = serializers.CharField(help_text="Such as worker-1; empty where all tasks share their log directory.")
    size = serializers.IntegerField()
    has_events = serializers.BooleanField(help_text="It is an event file for TensorBoard.")
    updated_at = serializers.DateTimeField()
    url = serializers.SerializerMethodField(
        help_text="Where to read it: signed and valid for 15 minutes, or an address of the API, which needs your token."
    )

    def get_url(self, output: JobOutput) -> str:
        signed = output_files.signed_address(output)
        return signed or content_address(output)


class OutputsSerializer(serializers.Serializer[Any]):
    """By path; `next` is the `after` of the next page, null at the end."""

    attempt = serializers.IntegerField()
    results = OutputSerializer(many=True)
    next = serializers.CharField(allow_null=True)


def content_address(output: JobOutput) -> str:
    """The API's own address of a file."""
    query = {"attempt": str(output.attempt), "path": output.name}
    return reverse("job_output_content", args=[output.job_id], query=query)


class OutputsAddress(JobAddress):
    """About the outputs of one attempt."""

    def attempt(self, job: Job, asked: int | None) -> int:
        """The asked one, or the newest. Raises `Gone` where a rule has removed its files."""
        attempt = job.attempt if asked is None else asked
        refuse_cleared(job, Kind.FILES, attempt)
        return attempt


class JobOutputsView(OutputsAddress):
    """The files that the job's tasks wrote below their log directories, by path."""

    pagination_class = None

    @extend_schema(parameters=[OutputsQuerySerializer], responses=OutputsSerializer)
    def get(self, request: Request, job_id: UUID) -> Response:
        job, wanted = self.job(job_id), self.read_query(OutputsQuerySerializer)
        attempt = self.attempt(job, wanted.get("attempt"))
        found, following = output_files.outputs_page(job.pk, attempt, wanted["after"], wanted["page_size"])
        return Response(OutputsSerializer({"attempt": attempt, "results": found, "next": following}).data)


class JobOutputContentView(OutputsAddress):
    """The bytes of an output: a redirect to a short-lived address, or the bytes of an event file in segments."""

    @extend_schema(parameters=[OutputQuerySerializer], responses={200: OpenApiTypes.BINARY, 302: None})
    def get(self, request: Request, job_id: UUID) -> HttpResponseBase:
        job, wanted = self.job(job_id), self.read_query(OutputQuerySerializer)
        output = output_files.output_for(job.pk, self.attempt(job, wanted.get("attempt")), wanted["path"])
        return output_response(request._request, self.user, job, output)


class JobOutputsArchiveView(OutputsAddress):
    """All outputs of an attempt as one zip, made while it is sent."""

    @extend_schema(parameters=[AttemptChoiceSerializer], responses={(200, "application/zip"): OpenApiTypes.BINARY})
    def get(self, request: Request, job_id: UUID) -> StreamingHttpResponse:
        job = self.job(job_id)
        attempt = self.attempt(job, self.read_query(AttemptChoiceSerializer).get("attempt"))
        return outputs_archive(request._request, self.user, job, attempt)


urlpatterns: list[URLPattern | URLResolver] = [
    path("jobs/<uuid:job_id>/outputs/", JobOutputsView.as_view(), name="job_outputs"),
    path("jobs/<uuid:job_id>/outputs/content/", JobOutputContentView.as_view(), name="job_output_content"),
    path("jobs/<uuid:job_id>/outputs/archive/", JobOutputsArchiveView.as_view(), name="job_outputs_archive"),
]
