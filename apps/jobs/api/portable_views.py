"""The API of jobs that come from Kubeflow, and of jobs that leave the portal as manifests."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.urls import URLPattern, URLResolver, path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.jobs.api.job_views import JobAddress
from apps.jobs.api.portable_serializers import (
    ExportedSerializer,
    ExportQuerySerializer,
    ExportRequestSerializer,
    ImportedSerializer,
    ImportSerializer,
)
from apps.jobs.checking import launch_checked
from apps.jobs.engines.configured import engine_chosen
from apps.jobs.exporting import exported_yaml
from apps.jobs.launch.importing import imported_job
from apps.jobs.state.specs import asked_spec
from apps.namespaces.models import Role
from apps.namespaces.selectors import namespace_for
from yardmaster.ids import JobKey
from yardmaster.job.spec_stored import stored_spec

_TO_BE_KNOWN = UUID(int=0)
_YAML: Any = {(200, "application/yaml"): OpenApiTypes.STR}


class JobImportView(JobAddress):
    """The job file that a TFJob of Kubeflow stands for, with notes on what is not the same. Creates nothing. Code and
    datasets that it names and that the namespace does not have are notes of the kind `to_do`."""

    @extend_schema(request=ImportSerializer, responses=ImportedSerializer)
    def post(self, request: Request) -> Response:
        data = self.read(ImportSerializer).validated_data
        namespace = namespace_for(self.user, data.get("namespace"))
        return Response(ImportedSerializer(imported_job(self.user, data["text"], namespace)).data)


class JobExportView(JobAddress):
    """The job as Kubernetes manifests that need no portal, as YAML. Values of secrets are not in it."""

    @extend_schema(parameters=[ExportQuerySerializer], responses=_YAML)
    def get(self, request: Request, job_id: UUID) -> HttpResponse:
        job, wanted = self.job(job_id), self.read_query(ExportQuerySerializer)
        text = exported_yaml(self.user, stored_spec(job.spec), job.key, job.engine, **wanted)
        headers = {"Content-Disposition": f'attachment; filename="job-{job_id}.yaml"'}
        return HttpResponse(text, content_type="application/yaml; charset=utf-8", headers=headers)


class JobExportPreviewView(JobAddress):
    """The same of a job that is not launched. Creates nothing."""

    @extend_schema(request=ExportRequestSerializer, responses=ExportedSerializer)
    def post(self, request: Request) -> Response:
        data = self.read(ExportRequestSerializer).validated_data
        namespace = namespace_for(self.user, data.get("namespace"), at_least=Role.MEMBER)
        engine = engine_chosen(self.user, data.get("engine"))
        spec, _ = launch_checked(self.user, namespace, asked_spec(data["spec"]), engine)
        key = JobKey(namespace.pk, _TO_BE_KNOWN, 1)
        wanted = {name: data[name] for name in ("image", "claim")}
        text = exported_yaml(self.user, spec, key, engine, **wanted)
        return Response(ExportedSerializer({"manifests": text}).data)


urlpatterns: list[URLPattern | URLResolver] = [
    path("jobs/import/", JobImportView.as_view(), name="job_import"),
    path("jobs/export/", JobExportPreviewView.as_view(), name="job_export_preview"),
    path("jobs/<uuid:job_id>/export/", JobExportView.as_view(), name="job_export"),
]
