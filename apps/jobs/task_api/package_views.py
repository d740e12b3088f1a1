"""What tasks ask about the packages of their job: the environment that has them, the package index, and a note of what
was installed. pip itself speaks to the index, so it may give the task's token as a password."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.http import HttpResponseBase, StreamingHttpResponse
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from apps.environments import package_index
from apps.environments.models import Environment
from apps.environments.services import archive_begin, environment_claim
from apps.errors import NotFound, TooLarge
from apps.jobs.models import Job, JobAttempt, JobPackages
from apps.jobs.state.results import lock_job
from apps.jobs.state.task_auth import TaskTokenAuthentication, identity_of
from apps.jobs.task_api.orders import job_of, remote_files
from apps.jobs.task_api.serializers import BegunUploadSerializer, RemoteFileSerializer, WhichTaskSerializer
from apps.jobs.task_api.views import TaskView
from apps.uploads.delivery import stream_pieces
from apps.uploads.models import Upload
from apps.uploads.parsers import FileListParser
from apps.uploads.selectors import stored_files
from apps.uploads.serializers import DeclaredFilesField, UploadSerializer
from yardmaster.job.spec import Role
from yardmaster.job.spec_stored import stored_spec

MOST_LINES = 500
MOST_PACKAGES = 1_000
METADATA = ".metadata"


class _Lines(serializers.ListField):
    """Requirement lines."""

    def __init__(self, **given: Any) -> None:
        super().__init__(child=serializers.CharField(max_length=1000), max_length=MOST_LINES, **given)


class WantedEnvironmentSerializer(WhichTaskSerializer):
    """The packages that the task's script needs, and the image that they are for."""

    requirements = _Lines(allow_empty=False)
    constraints = _Lines(default=list)
    python = serializers.RegexField(r"^[0-9]{1,3}\.[0-9]{1,3}$")
    image = serializers.RegexField(r"^[0-9a-f]{64}$", help_text="SHA-256 of the image's Python and distributions.")
    holder = serializers.UUIDField(help_text="The caller, always the same.")


class InstalledPackageSerializer(serializers.Serializer[Any]):
    """A distribution that was installed."""

    name = serializers.CharField(max_length=200)
    version = serializers.CharField(max_length=200)
    sha256 = serializers.RegexField(r"^([0-9a-f]{64})?$", allow_blank=True, help_text="Of its wheel. May be empty.")


class EnvironmentAnswerSerializer(serializers.Serializer[Any]):
    """`ready`: read its archive. `build`: install the packages, then send the archive. `wait`: ask again."""

    state = serializers.ChoiceField(choices=["ready", "build", "wait"])
    environment = serializers.UUIDField()
    index = serializers.CharField(help_text="The path of the package index.")
    online = serializers.BooleanField(help_text="Whether there is one: a portal may be offline.")
    limit = serializers.IntegerField(help_text="The most bytes that the installed packages may take.")
    lock = InstalledPackageSerializer(many=True)
    files = RemoteFileSerializer(many=True)


class NewArchiveSerializer(serializers.Serializer[Any]):
    environment = serializers.UUIDField()
    holder = serializers.UUIDField()
    lock = serializers.ListField(child=InstalledPackageSerializer(), max_length=MOST_PACKAGES)
    files = DeclaredFilesField()


class InstalledSerializer(WhichTaskSerializer):
    lock = serializers.ListField(child=InstalledPackageSerializer(), max_length=MOST_PACKAGES)


class TaskEnvironmentView(TaskView):
    """The environment with the packages of the job. The first task that asks installs them."""

    @extend_schema(request=WantedEnvironmentSerializer, responses=EnvironmentAnswerSerializer)
    def post(self, request: Request) -> Response:
        data = self.read(WantedEnvironmentSerializer)
        wanted = {key: data[key] for key in ("image", "python", "requirements", "constraints")}
        job = job_of(self.task)
        wanted["image"] += _pinned_digest(job, self.task.attempt, data["role"])
        claim = environment_claim(
            namespace=job.namespace, wanted=wanted, holder=str(data["holder"]), now=timezone.now()
        )
        found = claim.environment
        answer = {
            "state": claim.state,
            "environment": found.pk,
            "index": reverse("task_index"),
            "online": bool(settings.YARDMASTER_PACKAGE_INDEX),
            "limit": settings.YARDMASTER_PACKAGES_LIMIT,
            "lock": found.lock,
            "files": [],
        }
        if claim.state == "ready":
            answer["files"] = _files(found)
        return Response(EnvironmentAnswerSerializer(answer).data, headers={"Cache-Control": "no-store"})


def _pinned_digest(job: Job, attempt: int, role: str) -> str:
    """Of the image that the task was launched in; empty: the engine's own. What two images have may look alike."""
    spec = stored_spec(JobAttempt.objects.values_list("spec", flat=True).get(job=job, number=attempt))
    pinned = spec.image_of(Role(role))
    return "" if pinned is None else pinned.digest


def _files(environment: Environment) -> list[dict[str, Any]]:
    """Its archive, with an address that tasks read it from."""
    archive = environment.upload_id
    upload = None if archive is None else Upload.objects.filter(pk=archive).first()
    if upload is None:
        raise NotFound("The packages were removed just now.")
    return remote_files(stored_files(upload))


class TaskArchiveView(TaskView):
    """Start the upload of an environment's archive."""

    parser_classes = [FileListParser]

    @extend_schema(request=NewArchiveSerializer, responses={201: BegunUploadSerializer})
    def post(self, request: Request) -> Response:
        data = self.read(NewArchiveSerializer)
        job = job_of(self.task)
        upload = archive_begin(
            namespace=job.namespace, environment_id=data["environment"], holder=str(data["holder"]),
            lock=data["lock"], files=data["files"], job_id=job.pk, lock_job=lambda: lock_job(job.pk),
        )  # fmt: skip
        return Response({"upload": UploadSerializer(upload).data}, status=201)


class TaskPackagesView(TaskView):
    """Note with the job which packages were installed for it."""

    @extend_schema(request=InstalledSerializer, responses=InstalledSerializer)
    def post(self, request: Request) -> Response:
        data = self.read(InstalledSerializer)
        job, lock = job_of(self.task), [dict(one) for one in data["lock"]]
        JobPackages.objects.update_or_create(job=job, attempt=self.task.attempt, defaults={"lock": lock})
        return Response(InstalledSerializer(data).data)


class IndexAuthentication(TaskTokenAuthentication):
    """The token of a task as every other view takes it, or as the password of `Basic`."""

    def authenticate(self, request: Request) -> Any:
        kind, _, given = request.headers.get("Authorization", "").partition(" ")
        if kind.lower() == "basic":
            try:
                token = base64.b64decode(given.strip(), validate=True).decode().partition(":")[2]
            except (binascii.Error, UnicodeDecodeError):
                token = ""
            identity = identity_of(token, timezone.now())
            return None if identity is None else (AnonymousUser(), identity)
        return super().authenticate(request)

    def authenticate_header(self, request: Request) -> str:
        return 'Basic realm="packages"'


class SimpleJSON(JSONRenderer):
    """A page of an index (PEP 691)."""

    media_type = package_index.JSON_TYPE


class IndexView(TaskView):
    authentication_classes = [IndexAuthentication]

    def perform_content_negotiation(self, request: Request, force: bool = False) -> tuple[BaseRenderer, str]:
        """Whatever pip accepts: there is one form."""
        renderer = SimpleJSON()
        return renderer, renderer.media_type


class TaskIndexView(IndexView):
    """The root of the package index. It lists no projects."""

    @extend_schema(exclude=True)
    def get(self, request: Request) -> Response:
        return Response({"meta": {"api-version": "1.0"}, "projects": []})


class TaskIndexPageView(IndexView):
    """The files of a project, from the index that the administrator has chosen."""

    @extend_schema(exclude=True)
    def get(self, request: Request, project: str) -> Response:
        def address(token: str, filename: str) -> str:
            return reverse("task_index_file", args=[token, filename])

        return Response(package_index.project_page(project, address))


class TaskIndexFileView(IndexView):
    """One file of a project, or its metadata."""

    @extend_schema(exclude=True)
    def get(self, request: Request, token: str, filename: str) -> HttpResponseBase:
        suffix = METADATA if filename.endswith(METADATA) else ""
        file = package_index.file_passed(token, suffix)
        if (file.size or 0) > settings.YARDMASTER_PACKAGES_LIMIT:
            raise TooLarge(f"The file has {file.size} bytes, more than YARDMASTER_PACKAGES_LIMIT.")
        pieces = stream_pieces(request._request, file.pieces)
        length = {} if file.size is None else {"Content-Length": str(file.size)}
        return StreamingHttpResponse(pieces, content_type="application/octet-stream", headers=length)


urlpatterns: list[URLPattern | URLResolver] = [
    path("task/environment/", TaskEnvironmentView.as_view(), name="task_environment"),
    path("task/environment/archive/", TaskArchiveView.as_view(), name="task_environment_archive"),
    path("task/packages/", TaskPackagesView.as_view(), name="task_packages"),
    path("task/index/", TaskIndexView.as_view(), name="task_index"),
    path("task/index/<str:project>/", TaskIndexPageView.as_view(), name="task_index_page"),
    path("task/index/files/<str:token>/<str:filename>", TaskIndexFileView.as_view(), name="task_index_file"),
]
