"""The API of jobs: list, launch, check, stop, retry, delete."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.urls import URLPattern, URLResolver, path
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from apps.accounts.api_view import ApiView
from apps.api.idempotency import IdempotentPosts
from apps.jobs import labels, selectors, services
from apps.jobs.api.detail_serializers import ManifestsSerializer
from apps.jobs.api.list_serializers import JobFilterSerializer, JobListRowSerializer
from apps.jobs.api.serializers import (
    CheckSerializer,
    JobChangeSerializer,
    JobDetailSerializer,
    JobRequestSerializer,
    JobSerializer,
    LaunchedJobSerializer,
    LaunchSerializer,
    RetrySerializer,
)
from apps.jobs.checking import job_check
from apps.jobs.engines.manifests import manifests_of_spec
from apps.jobs.engines.serving import serving_if_known
from apps.jobs.job_list import JobFilters, job_list
from apps.jobs.models import Job
from apps.jobs.state.list_values import values_of
from apps.jobs.state.specs import asked_spec
from apps.namespaces.models import Role
from apps.namespaces.selectors import namespace_for
from yardmaster.job.list_columns import ordering_of
from yardmaster.job.spec import Strategy
from yardmaster.lifecycle.phases import Phase


class JobAddress(ApiView):
    """Below one job: a stranger gets 404 at every address."""

    scope = "jobs"

    def job(self, job_id: UUID, at_least: Role = Role.VIEWER) -> Job:
        return selectors.job_for(self.user, job_id, at_least=at_least)

    def read_query(self, serializer: type[BaseSerializer[Any]]) -> dict[str, Any]:
        """The query, checked. Raises the problem `invalid`."""
        found = serializer(data=self.request.query_params)
        found.is_valid(raise_exception=True)
        return dict(found.validated_data)

    def answer(
        self, job: Job, *, status: int = 200, kind: type[JobSerializer] = JobSerializer, **context: Any
    ) -> Response:
        context["models"] = selectors.models_of([job])
        return Response(kind(job, context=context).data, status=status)


class JobsView(IdempotentPosts, JobAddress):
    """Jobs, newest first."""

    @extend_schema(parameters=[JobFilterSerializer], responses=JobListRowSerializer(many=True))
    def get(self, request: Request) -> Response:
        wanted = self.read_query(JobFilterSerializer)
        order, columns = ordering_of(wanted.get("ordering", "")), wanted.get("columns", ())
        filters = JobFilters(
            namespace=wanted.get("namespace"),
            phases=tuple(sorted(Phase(phase) for phase in wanted.get("phase", ()))),
            strategy=Strategy(wanted["strategy"]) if "strategy" in wanted else None,
            owner=wanted.get("owner"),
            search=wanted.get("search"),
            queue_state=wanted.get("queue_state"),
            reason=wanted.get("reason"),
            tags=tuple(wanted.get("tag", ())),
            archived=wanted["archived"],
            conditions=tuple(wanted.get("where", ())),
        )
        found = job_list(self.user, filters, order=order, columns=columns)
        jobs: list[Job] = self.paginate_queryset(found) or []  # type: ignore[arg-type]
        values = values_of(jobs, columns, timezone.now())
        rows = JobListRowSerializer(jobs, many=True, context={"models": selectors.models_of(jobs), "values": values})
        return self.get_paginated_response(rows.data)

    @extend_schema(request=LaunchSerializer, responses={201: LaunchedJobSerializer})
    def post(self, request: Request) -> Response:
        data = self.read(LaunchSerializer).validated_data
        namespace = namespace_for(self.user, data.get("namespace"), at_least=Role.MEMBER)
        job, warnings = services.job_launch(
            user=self.user,
            namespace=namespace,
            spec=asked_spec(data["spec"]),
            engine=data.get("engine"),
            request_key=self.request_key,
            accept_never_fits=data["accept_never_fits"],
            confirm_foreign_model=data["confirm_foreign_model"],
        )
        return self.answer(job, status=201, kind=LaunchedJobSerializer, warnings=warnings)

    @property
    def request_key(self) -> str | None:
        """What stays the same when an idempotent request is repeated after a crash."""
        return None if self._claim is None else f"idempotency:{self._claim.record_id}"


class JobCheckView(IdempotentPosts, JobAddress):
    """Check whether this job would start now, later or never. Creates nothing and reserves nothing."""

    @extend_schema(request=JobRequestSerializer, responses=CheckSerializer)
    def post(self, request: Request) -> Response:
        data = self.read(JobRequestSerializer).validated_data
        namespace = namespace_for(self.user, data.get("namespace"), at_least=Role.MEMBER)
        found = job_check(user=self.user, namespace=namespace, data=data["spec"], engine=data.get("engine"))
        return Response(CheckSerializer(found).data)


class ManifestsPreviewView(IdempotentPosts, JobAddress):
    """The objects that the engine would create for this job. Creates nothing; the job's ID is shown as zeros."""

    @extend_schema(request=JobRequestSerializer, responses=ManifestsSerializer)
    def post(self, request: Request) -> Response:
        data = self.read(JobRequestSerializer).validated_data
        namespace = namespace_for(self.user, data.get("namespace"), at_least=Role.MEMBER)
        found = manifests_of_spec(self.user, namespace, asked_spec(data["spec"]), data.get("engine"))
        return Response(ManifestsSerializer(found).data)


class JobView(JobAddress):
    """One job."""

    @extend_schema(responses=JobDetailSerializer)
    def get(self, request: Request, job_id: UUID) -> Response:
        job = self.job(job_id)
        return self.answer(job, kind=JobDetailSerializer, serving=serving_if_known(job))

    @extend_schema(request=JobChangeSerializer, responses=JobSerializer)
    def patch(self, request: Request, job_id: UUID) -> Response:
        """Rename the job, write a note, set its tags, archive it. What runs does not change."""
        data = self.read(JobChangeSerializer).validated_data
        return self.answer(labels.job_change(user=self.user, job=self.job(job_id), **data))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, job_id: UUID) -> Response:
        """Delete an ended job with its logs, scalars, checkpoints and model. Its storage is released soon after."""
        services.job_delete(user=self.user, job=self.job(job_id))
        return Response(status=204)


class JobPinView(JobAddress):
    """Whether the job is on top of your own list of jobs."""

    @extend_schema(request=None, responses={204: None})
    def put(self, request: Request, job_id: UUID) -> Response:
        labels.job_pin(user=self.user, job=self.job(job_id))
        return Response(status=204)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, job_id: UUID) -> Response:
        labels.job_unpin(user=self.user, job=self.job(job_id))
        return Response(status=204)


class JobStopView(IdempotentPosts, JobAddress):
    """Stop a job: SIGTERM, its grace period, then SIGKILL. An ended job does not change."""

    @extend_schema(request=None, responses=JobSerializer)
    def post(self, request: Request, job_id: UUID) -> Response:
        return self.answer(services.job_stop(user=self.user, job=self.job(job_id)))


class JobRetryView(IdempotentPosts, JobAddress):
    """A new attempt of an ended job. It resumes from the job's latest checkpoint."""

    @extend_schema(request=RetrySerializer, responses=JobSerializer)
    def post(self, request: Request, job_id: UUID) -> Response:
        data = self.read(RetrySerializer).validated_data
        spec = asked_spec(data["spec"]) if "spec" in data else None
        asked = {name: data[name] for name in ("accept_never_fits", "confirm_foreign_model")}
        job = self.job(job_id)
        return self.answer(services.job_retry(user=self.user, job=job, spec=spec, resumes=data["resume"], **asked))


urlpatterns: list[URLPattern | URLResolver] = [
    path("jobs/", JobsView.as_view(), name="jobs"),
    path("jobs/check/", JobCheckView.as_view(), name="job_check"),
    path("jobs/manifests/", ManifestsPreviewView.as_view(), name="manifests_preview"),
    path("jobs/<uuid:job_id>/", JobView.as_view(), name="job"),
    path("jobs/<uuid:job_id>/pin/", JobPinView.as_view(), name="job_pin"),
    path("jobs/<uuid:job_id>/stop/", JobStopView.as_view(), name="job_stop"),
    path("jobs/<uuid:job_id>/retry/", JobRetryView.as_view(), name="job_retry"),
]
