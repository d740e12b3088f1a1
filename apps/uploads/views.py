"""The API of uploads. The bytes themselves go to the addresses that it signs (`delivery`)."""

from __future__ import annotations

from uuid import UUID

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.api.audience import audience
from apps.api.idempotency import IdempotentPosts
from apps.namespaces.models import Role
from apps.namespaces.selectors import namespace_for
from apps.uploads import selectors, services
from apps.uploads.announcing import upload_extend
from apps.uploads.parsers import FileListParser
from apps.uploads.part_addresses import parts_sign
from apps.uploads.serializers import (
    CompletionSerializer,
    FilesProgressSerializer,
    MoreFilesSerializer,
    NewUploadSerializer,
    SignedPartsSerializer,
    UploadSerializer,
    UploadSummarySerializer,
    WantedPartsSerializer,
    WhichFilesSerializer,
    signed_parts_json,
)

PROGRESS_AT_ONCE = 1_000
_FILES = OpenApiParameter("files", str, description="`0`: without the list of files, for those who wait for the end.")
_NAMESPACE = OpenApiParameter("namespace", str, description="Only this namespace, by id or slug.")


class UploadsView(IdempotentPosts, ApiView):
    """Uploads that were not made into a version yet. Starting one reserves its size in the storage quota."""

    scope = "data"
    parser_classes = [FileListParser]

    @extend_schema(parameters=[_NAMESPACE], responses=UploadSummarySerializer(many=True))
    def get(self, request: Request) -> Response:
        rows = selectors.uploads_visible(self.user)
        if wanted := request.query_params.get("namespace"):
            rows = rows.filter(namespace=namespace_for(self.user, wanted))
        return self.page(rows, UploadSummarySerializer)

    @extend_schema(request=NewUploadSerializer, responses={201: UploadSerializer})
    def post(self, request: Request) -> Response:
        data = self.read(NewUploadSerializer).validated_data
        namespace = namespace_for(self.user, data.get("namespace"), at_least=Role.MEMBER)
        upload = services.upload_begin(namespace=namespace, actor=self.user, kind=data["kind"], files=data["files"])
        return Response(UploadSerializer(upload).data, status=201)


class UploadView(ApiView):
    """One upload. `done` lists the parts that were received, so that a client can resume."""

    scope = "data"

    @extend_schema(parameters=[_FILES], responses=UploadSerializer)
    def get(self, request: Request, upload_id: UUID) -> Response:
        upload = selectors.upload_for(self.user, upload_id, at_least=Role.VIEWER)
        context = {"without_files": request.query_params.get("files") == "0"}
        return Response(UploadSerializer(upload, context=context).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, upload_id: UUID) -> Response:
        services.upload_abort(selectors.upload_to_discard(self.user, upload_id))
        return Response(status=204)


class UploadFilesView(IdempotentPosts, ApiView):
    """The files of an upload by page, and announcing more of them."""

    scope = "data"
    parser_classes = [FileListParser]

    @extend_schema(parameters=[WhichFilesSerializer], responses=FilesProgressSerializer)
    def get(self, request: Request, upload_id: UUID) -> Response:
        upload = selectors.upload_for(self.user, upload_id, at_least=Role.VIEWER)
        which = WhichFilesSerializer(data=request.query_params)
        which.is_valid(raise_exception=True)
        first = which.validated_data["first"]
        results = selectors.files_progress(upload, first, PROGRESS_AT_ONCE)
        following = first + len(results) if first + len(results) < upload.file_count else None
        return Response(FilesProgressSerializer({"next": following if results else None, "results": results}).data)

    @extend_schema(request=MoreFilesSerializer, responses=UploadSummarySerializer)
    def post(self, request: Request, upload_id: UUID) -> Response:
        upload = selectors.own_upload_for(self.user, upload_id)
        data = self.read(MoreFilesSerializer).validated_data
        return Response(UploadSummarySerializer(upload_extend(upload, data["files"], after=data["after"])).data)


class UploadPartsView(ApiView):
    """Signed URLs for the upload of parts. A repeated request changes nothing and gets new URLs, so answers are not
    kept: they are credentials."""

    scope = "data"

    @extend_schema(request=WantedPartsSerializer, responses=SignedPartsSerializer)
    def post(self, request: Request, upload_id: UUID) -> Response:
        upload = selectors.own_upload_for(self.user, upload_id)
        urls = parts_sign(upload, self.read(WantedPartsSerializer).validated_data["parts"], audience())
        return Response(signed_parts_json(urls))


class UploadCompleteView(IdempotentPosts, ApiView):
    """Assemble and verify the files. For large uploads the response is 202, the state `completing`: GET the upload
        until it is
    `complete`, or `open` or `failed` again with a `problem`."""

    scope = "data"

    @extend_schema(request=CompletionSerializer, responses={200: UploadSummarySerializer, 202: UploadSummarySerializer})
    def post(self, request: Request, upload_id: UUID) -> Response:
        upload = selectors.own_upload_for(self.user, upload_id)
        data = self.read(CompletionSerializer).validated_data
        upload = services.upload_complete(upload, unpack=data["unpack"])
        return Response(UploadSummarySerializer(upload).data, status=200 if upload.is_complete else 202)


urlpatterns: list[URLPattern | URLResolver] = [
    path("uploads/", UploadsView.as_view(), name="uploads"),
    path("uploads/<uuid:upload_id>/", UploadView.as_view(), name="upload"),
    path("uploads/<uuid:upload_id>/files/", UploadFilesView.as_view(), name="upload_files"),
    path("uploads/<uuid:upload_id>/parts/", UploadPartsView.as_view(), name="upload_parts"),
    path("uploads/<uuid:upload_id>/complete/", UploadCompleteView.as_view(), name="upload_complete"),
]
