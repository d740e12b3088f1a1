"""The API below one job: why it is where it is, and what it did and made; and the API of engines."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpResponse
from django.urls import URLPattern, URLResolver, path
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.audit.services import download_record
from apps.errors import Conflict, NotFound
from apps.jobs import selectors
from apps.jobs.api.detail_serializers import (
    AttemptChoiceSerializer,
    AttemptSerializer,
    CheckpointSerializer,
    CurvesSerializer,
    EnginesSerializer,
    EventsQuerySerializer,
    EventsSerializer,
    ManifestsSerializer,
    PackagesSerializer,
    ScalarsQuerySerializer,
    TasksSerializer,
    WhySerializer,
)
from apps.jobs.api.job_views import JobAddress
from apps.jobs.engines.listing import engines_with_quotas
from apps.jobs.engines.manifests import manifests_of_job, yaml_file
from apps.jobs.engines.serving import is_served, notebook_of, serving_of
from apps.jobs.explanations.why import why
from apps.jobs.state import curves
from apps.registry.selectors import version_of_job
from apps.registry.serializers import ExportedModelSerializer


class JobWhyView(JobAddress):
    """Why the job is in its current state."""

    @extend_schema(responses=WhySerializer)
    def get(self, request: Request, job_id: UUID) -> Response:
        job = self.job(job_id)
        return Response(WhySerializer(why(self.user, job, selectors.facts_of(job), timezone.now())).data)


class JobAttemptsView(JobAddress):
    """Every attempt and how it ended, the newest first."""

    pagination_class = None

    @extend_schema(responses=AttemptSerializer(many=True))
    def get(self, request: Request, job_id: UUID) -> Response:
        return Response(AttemptSerializer(selectors.attempts_of(self.job(job_id)), many=True).data)


class JobEventsView(JobAddress):
    """The job's history, oldest first, 200 at a time."""

    @extend_schema(parameters=[EventsQuerySerializer], responses=EventsSerializer)
    def get(self, request: Request, job_id: UUID) -> Response:
        after = self.read_query(EventsQuerySerializer)["after"]
        events, following = selectors.events_of(self.job(job_id), after=after)
        return Response(EventsSerializer({"results": events, "next": following}).data)


class JobTasksView(JobAddress):
    """Every task of an attempt, as last reported by its engine and its runner."""

    @extend_schema(parameters=[AttemptChoiceSerializer], responses=TasksSerializer)
    def get(self, request: Request, job_id: UUID) -> Response:
        job = self.job(job_id)
        attempt = self.read_query(AttemptChoiceSerializer).get("attempt", job.attempt)
        return Response(TasksSerializer({"attempt": attempt, "results": selectors.tasks_of(job, attempt)}).data)


class JobScalarsView(JobAddress):
    """The job's scalars, optionally of one run or tag, each downsampled to `points`."""

    @extend_schema(parameters=[ScalarsQuerySerializer], responses=CurvesSerializer)
    def get(self, request: Request, job_id: UUID) -> Response:
        job = self.job(job_id)
        wanted = self.read_query(ScalarsQuerySerializer)
        attempt = wanted.get("attempt", job.attempt)
        found = curves.curves_of(job, attempt, run=wanted.get("run"), tag=wanted.get("tag"), most=wanted["points"])
        return Response(CurvesSerializer({"attempt": attempt, "attempts": job.attempt, "results": found}).data)


class JobCheckpointsView(JobAddress):
    """The stored checkpoints, starting with the one to resume from."""

    pagination_class = None

    @extend_schema(responses=CheckpointSerializer(many=True))
    def get(self, request: Request, job_id: UUID) -> Response:
        return Response(CheckpointSerializer(selectors.checkpoints_of(self.job(job_id)), many=True).data)


class JobModelView(JobAddress):
    """The version of a model that the job exported last, with URLs to download its files."""

    @extend_schema(responses=ExportedModelSerializer)
    def get(self, request: Request, job_id: UUID) -> Response:
        version = version_of_job(self.job(job_id).pk)
        model = version.parent
        download_record(self.user, "model", model.pk, model.namespace, name=model.name, version=version.number)
        return Response(ExportedModelSerializer(version).data)


class JobPackagesView(JobAddress):
    """The packages that were installed for an attempt. Empty where the image had all that were asked for."""

    @extend_schema(parameters=[AttemptChoiceSerializer], responses=PackagesSerializer)
    def get(self, request: Request, job_id: UUID) -> Response:
        attempt, lock = self.lock(job_id)
        return Response(PackagesSerializer({"attempt": attempt, "results": lock}).data)

    def lock(self, job_id: UUID) -> tuple[int, list[dict[str, str]]]:
        """The attempt that is asked for, and its packages. Raises `NotFound` where it has none."""
        job = self.job(job_id)
        attempt = self.read_query(AttemptChoiceSerializer).get("attempt", job.attempt)
        lock = selectors.packages_of(job, attempt)
        if lock is None:
            raise NotFound("No packages were installed for this attempt of the job.")
        return attempt, lock


class JobLockFileView(JobPackagesView):
    """The same as a requirements file with exact versions and hashes."""

    @extend_schema(parameters=[AttemptChoiceSerializer], responses={(200, "text/plain"): OpenApiTypes.STR})
    def get(self, request: Request, job_id: UUID) -> HttpResponse:  # type: ignore[override]
        headers = {"Content-Disposition": 'attachment; filename="requirements.txt"'}
        text = selectors.lock_file(self.lock(job_id)[1])
        return HttpResponse(text, content_type="text/plain; charset=utf-8", headers=headers)


class JobNotebookView(JobAddress):
    """A starter notebook that connects to the job's servers. For `in_graph` jobs, while they run."""

    @extend_schema(responses={(200, "application/x-ipynb+json"): OpenApiTypes.OBJECT})
    def get(self, request: Request, job_id: UUID) -> HttpResponse:
        job = self.job(job_id)
        if not is_served(job):
            raise NotFound("The job has no notebook: it runs its own script.")
        serving = serving_of(job)
        if serving is None:
            raise Conflict("The job's servers are not running, so there is nothing to connect to.")
        headers = {"Content-Disposition": f'attachment; filename="in-graph-{job.pk}.ipynb"'}
        return HttpResponse(notebook_of(job, serving), content_type="application/x-ipynb+json", headers=headers)


class JobManifestsView(JobAddress):
    """The objects that the engine creates for the job, as JSON."""

    @extend_schema(responses=ManifestsSerializer)
    def get(self, request: Request, job_id: UUID) -> Response:
        return Response(ManifestsSerializer(manifests_of_job(self.job(job_id))).data)


class JobManifestsFileView(JobAddress):
    """The objects as YAML, one document for each."""

    @extend_schema(responses={(200, "application/yaml"): OpenApiTypes.STR})
    def get(self, request: Request, job_id: UUID) -> HttpResponse:
        return yaml_file(manifests_of_job(self.job(job_id)), f"job-{job_id}.yaml")


class EnginesView(ApiView):
    """Every engine, its capacity, and whether you may launch on it."""

    scope = "jobs"
    pagination_class = None

    @extend_schema(responses=EnginesSerializer)
    def get(self, request: Request) -> Response:
        return Response(EnginesSerializer({"results": engines_with_quotas(self.user)}).data)


urlpatterns: list[URLPattern | URLResolver] = [
    path("engines/", EnginesView.as_view(), name="engines"),
    path("jobs/<uuid:job_id>/why/", JobWhyView.as_view(), name="job_why"),
    path("jobs/<uuid:job_id>/attempts/", JobAttemptsView.as_view(), name="job_attempts"),
    path("jobs/<uuid:job_id>/events/", JobEventsView.as_view(), name="job_events"),
    path("jobs/<uuid:job_id>/tasks/", JobTasksView.as_view(), name="job_tasks"),
    path("jobs/<uuid:job_id>/scalars/", JobScalarsView.as_view(), name="job_scalars"),
    path("jobs/<uuid:job_id>/checkpoints/", JobCheckpointsView.as_view(), name="job_checkpoints"),
    path("jobs/<uuid:job_id>/model/", JobModelView.as_view(), name="job_model"),
    path("jobs/<uuid:job_id>/packages/", JobPackagesView.as_view(), name="job_packages"),
    path("jobs/<uuid:job_id>/packages.txt", JobLockFileView.as_view(), name="job_lock_file"),
    path("jobs/<uuid:job_id>/manifests/", JobManifestsView.as_view(), name="job_manifests"),
    path("jobs/<uuid:job_id>/manifests.yaml", JobManifestsFileView.as_view(), name="job_manifests_file"),
    path("jobs/<uuid:job_id>/notebook/", JobNotebookView.as_view(), name="job_notebook"),
]
