"""The API that a job's own tasks speak to (docs/protocols.md, section 5). Log lines are `apps.logs`' matter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import IntegrityError
from django.urls import URLPattern, URLResolver, path
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from apps.environments.services import archive_settle
from apps.errors import Gone, NotFound
from apps.jobs.models import Job
from apps.jobs.state import outputs
from apps.jobs.state.agreed import agreed_take
from apps.jobs.state.exports import export_settle, model_begin
from apps.jobs.state.publications import part_begin, part_settle
from apps.jobs.state.results import checkpoint_begin, result_settle
from apps.jobs.state.task_auth import IsTask, TaskIdentity, TaskTokenAuthentication
from apps.jobs.task_api.orders import files_for, job_of, order_for
from apps.jobs.task_api.reports import report_take
from apps.jobs.task_api.serializers import (
    AgreedSerializer,
    AgreedValueSerializer,
    BegunUploadSerializer,
    EventFilesSerializer,
    FilesPageSerializer,
    NewCheckpointSerializer,
    NewModelSerializer,
    NewOutputsSerializer,
    NewPublishedSerializer,
    OrderSerializer,
    PublishedUploadSerializer,
    ReportAnswerSerializer,
    ReportSerializer,
    WhichFilesSerializer,
    WhichTaskSerializer,
    WhoseOutputsSerializer,
)
from apps.uploads.models import Upload
from apps.uploads.parsers import FileListParser
from apps.uploads.part_addresses import parts_sign
from apps.uploads.selectors import upload_for_job
from apps.uploads.serializers import (
    SignedPartsSerializer,
    UploadSerializer,
    UploadSummarySerializer,
    WantedPartsSerializer,
    signed_parts_json,
)
from apps.uploads.services import upload_complete
from yardmaster.storage.base import Audience


class TaskView(GenericAPIView[Any]):
    """A view that only a job's tasks reach, and each only its own job."""

    authentication_classes = [TaskTokenAuthentication]
    permission_classes = [IsTask]
    pagination_class = None

    @property
    def task(self) -> TaskIdentity:
        assert isinstance(self.request.auth, TaskIdentity), "IsTask has seen to it"
        return self.request.auth

    def handle_exception(self, exc: Exception) -> Response:
        """What was written for a job that was deleted meanwhile was rolled back by the database."""
        if (
            isinstance(exc, IntegrityError | Job.DoesNotExist)
            and not Job.objects.filter(pk=self.task.job_id, deleted_at__isnull=True).exists()
        ):
            exc = Gone("This job was deleted and accepts no more data.")
        return super().handle_exception(exc)

    def read(self, serializer: type[BaseSerializer[Any]], data: Any = None) -> Mapping[str, Any]:
        """What was sent, checked. Raises the problem `invalid`."""
        found = serializer(data=self.request.data if data is None else data)
        found.is_valid(raise_exception=True)
        return found.validated_data  # type: ignore[no-any-return]


class TaskOrderView(TaskView):
    """The task's order: what to run, and with which inputs."""

    @extend_schema(parameters=[WhichTaskSerializer], responses=OrderSerializer)
    def get(self, request: Request) -> Response:
        which = self.read(WhichTaskSerializer, request.query_params)
        order = order_for(self.task, which["role"], which["index"])
        return Response(order, headers={"Cache-Control": "no-store"})  # it contains the values of secrets


class TaskFilesView(TaskView):
    """The files of a dataset or code version that the job uses, by page: those that the order does not list."""

    @extend_schema(parameters=[WhichFilesSerializer], responses=FilesPageSerializer)
    def get(self, request: Request, version_id: UUID) -> Response:
        which = self.read(WhichFilesSerializer, request.query_params)
        return Response(files_for(self.task, version_id, which["after"], which["most"]))


class TaskReportView(TaskView):
    """Report the task's state. At most once per second."""

    @extend_schema(request=ReportSerializer, responses=ReportAnswerSerializer)
    def post(self, request: Request) -> Response:
        return Response(report_take(self.task, self.read(ReportSerializer), timezone.now()))


class TaskAgreedView(TaskView):
    """Agree with the other tasks of the attempt: the first value under a name counts for all."""

    @extend_schema(request=AgreedSerializer, responses=AgreedValueSerializer)
    def post(self, request: Request) -> Response:
        data = self.read(AgreedSerializer)
        if not self.task.has_task(data["role"], data["index"]):
            raise NotFound(f"The job has no task {data['role']}-{data['index']}.")
        return Response({"value": agreed_take(job_of(self.task), data["name"], data["value"])})


class TaskCheckpointsView(TaskView):
    """Start the upload of a checkpoint. `complete/` makes it the one to resume from."""

    parser_classes = [FileListParser]

    @extend_schema(request=NewCheckpointSerializer, responses={201: BegunUploadSerializer})
    def post(self, request: Request) -> Response:
        data = self.read(NewCheckpointSerializer)
        upload = checkpoint_begin(
            job=job_of(self.task), attempt=self.task.attempt, step=data["step"], files=data["files"]
        )
        return Response({"upload": UploadSerializer(upload).data}, status=201)


class TaskModelView(TaskView):
    """Start the upload of the model."""

    parser_classes = [FileListParser]

    @extend_schema(request=NewModelSerializer, responses={201: BegunUploadSerializer})
    def post(self, request: Request) -> Response:
        data = self.read(NewModelSerializer)
        upload = model_begin(
            job=job_of(self.task), attempt=self.task.attempt, files=data["files"], stopped=data["stopped"],
            continues=data["continues"], found_in=data["found_in"],
        )  # fmt: skip
        return Response({"upload": UploadSerializer(upload).data}, status=201)


class TaskOutputsView(TaskView):
    """Start the upload of outputs, and list the event files that the portal has."""

    parser_classes = [FileListParser]

    @extend_schema(parameters=[WhoseOutputsSerializer], responses=EventFilesSerializer)
    def get(self, request: Request) -> Response:
        which = self.read(WhoseOutputsSerializer, request.query_params)
        found = outputs.event_files_of_task(job_of(self.task), self.task.attempt, self._folder(which))
        return Response(EventFilesSerializer({"files": found}).data)

    @extend_schema(request=NewOutputsSerializer, responses={201: BegunUploadSerializer})
    def post(self, request: Request) -> Response:
        data = self.read(NewOutputsSerializer)
        upload = outputs.outputs_begin(
            job=job_of(self.task), attempt=self.task.attempt, task=self._folder(data), files=data["files"],
            starts=data["starts"],
        )  # fmt: skip
        return Response({"upload": UploadSerializer(upload).data}, status=201)

    def _folder(self, which: Mapping[str, Any]) -> str:
        if not self.task.has_task(which["role"], which["index"]):
            raise NotFound(f"The job has no task {which['role']}-{which['index']}.")
        return "" if which["shared"] else f"{which['role']}-{which['index']}"


class TaskPublishedView(TaskView):
    """Start the upload of what a task publishes, which replaces what the same task sent before."""

    parser_classes = [FileListParser]

    @extend_schema(request=NewPublishedSerializer, responses={201: PublishedUploadSerializer})
    def post(self, request: Request) -> Response:
        data = self.read(NewPublishedSerializer)
        if not self.task.has_task(data["role"], data["index"]):
            raise NotFound(f"The job has no task {data['role']}-{data['index']}.")
        task = f"{data['role']}-{data['index']}"
        upload = part_begin(job=job_of(self.task), attempt=self.task.attempt, task=task, files=data.get("files", []))
        return Response({"upload": None if upload is None else UploadSerializer(upload).data}, status=201)


class TaskUploadAddress(TaskView):
    """Below one upload: one of this job, for a task of its present attempt. An earlier one's must touch nothing."""

    def upload(self, upload_id: UUID) -> Upload:
        return upload_for_job(job_of(self.task).pk, upload_id)


class TaskUploadView(TaskUploadAddress):
    """An upload of this job, and which parts have arrived."""

    @extend_schema(responses=UploadSerializer)
    def get(self, request: Request, upload_id: UUID) -> Response:
        return Response(UploadSerializer(self.upload(upload_id)).data)


class TaskUploadPartsView(TaskUploadAddress):
    """Signed URLs for the upload of parts, as reachable from the task."""

    @extend_schema(request=WantedPartsSerializer, responses=SignedPartsSerializer)
    def post(self, request: Request, upload_id: UUID) -> Response:
        wanted = self.read(WantedPartsSerializer)["parts"]
        urls = parts_sign(self.upload(upload_id), wanted, Audience.TASKS)
        return Response(signed_parts_json(urls))


class TaskUploadCompleteView(TaskUploadAddress):
    """Assemble and verify the files. For large uploads the response is 202: repeat the request."""

    @extend_schema(request=None, responses={200: UploadSummarySerializer, 202: UploadSummarySerializer})
    def post(self, request: Request, upload_id: UUID) -> Response:
        upload = upload_complete(self.upload(upload_id))
        result_settle(upload.pk, timezone.now())
        export_settle(upload.pk, timezone.now())
        outputs.outputs_settle(upload.pk, timezone.now())
        part_settle(upload.pk, timezone.now())
        archive_settle(upload.pk, timezone.now())
        return Response(UploadSummarySerializer(upload).data, status=200 if upload.is_complete else 202)


urlpatterns: list[URLPattern | URLResolver] = [
    path("task/order/", TaskOrderView.as_view(), name="task_order"),
    path("task/versions/<uuid:version_id>/files/", TaskFilesView.as_view(), name="task_files"),
    path("task/report/", TaskReportView.as_view(), name="task_report"),
    path("task/agreed/", TaskAgreedView.as_view(), name="task_agreed"),
    path("task/checkpoints/", TaskCheckpointsView.as_view(), name="task_checkpoints"),
    path("task/model/", TaskModelView.as_view(), name="task_model"),
    path("task/outputs/", TaskOutputsView.as_view(), name="task_outputs"),
    path("task/published/", TaskPublishedView.as_view(), name="task_published"),
    path("task/uploads/<uuid:upload_id>/", TaskUploadView.as_view(), name="task_upload"),
    path("task/uploads/<uuid:upload_id>/parts/", TaskUploadPartsView.as_view(), name="task_upload_parts"),
    path("task/uploads/<uuid:upload_id>/complete/", TaskUploadCompleteView.as_view(), name="task_upload_complete"),
]
