"""The API of datasets."""

from __future__ import annotations

from typing import cast
from uuid import UUID

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema, extend_schema_view
from rest_framework.request import Request
from rest_framework.response import Response

from apps.datasets.integrity import version_check
from apps.datasets.models import DatasetVersion
from apps.datasets.preview import preview_file
from apps.datasets.selectors import DATASETS
from apps.datasets.serializers import (
    CheckResultSerializer,
    DatasetFileSerializer,
    DatasetSerializer,
    DatasetVersionSerializer,
    PreviewSerializer,
)
from apps.uploads.versioned import views
from apps.uploads.versioned.selectors import file_for
from apps.uploads.versioned.serializers import (
    CollectionChangesSerializer,
    FolderEntrySerializer,
    NewCollectionSerializer,
    NewVersionSerializer,
)

_AFTER = OpenApiParameter("after", str, description="Continue here: `next` of the previous response.")


@extend_schema_view(
    get=extend_schema(parameters=[views.NAMESPACE, views.SEARCH], responses=DatasetSerializer(many=True)),
    post=extend_schema(request=NewCollectionSerializer, responses={201: DatasetSerializer}),
)
class DatasetsView(views.CollectionsView):
    """Datasets that are visible to you. A new dataset is created from a complete upload."""

    store = DATASETS
    answers_with = DatasetSerializer


@extend_schema_view(
    get=extend_schema(responses=DatasetSerializer),
    patch=extend_schema(request=CollectionChangesSerializer, responses=DatasetSerializer),
    delete=extend_schema(responses={204: None}),
)
class DatasetView(views.CollectionView):
    """One dataset. It cannot be deleted while an unfinished job uses one of its versions."""

    store = DATASETS
    answers_with = DatasetSerializer


@extend_schema_view(
    get=extend_schema(responses=DatasetVersionSerializer(many=True)),
    post=extend_schema(request=NewVersionSerializer, responses={201: DatasetVersionSerializer}),
)
class DatasetVersionsView(views.VersionsView):
    """The versions of a dataset, newest first. A new version is created from a complete upload."""

    store = DATASETS
    answers_with = DatasetVersionSerializer


@extend_schema_view(get=extend_schema(responses=DatasetVersionSerializer), delete=extend_schema(responses={204: None}))
class DatasetVersionView(views.VersionView):
    """One version: what a job names as its input."""

    store = DATASETS
    answers_with = DatasetVersionSerializer


@extend_schema_view(get=extend_schema(parameters=[views.ADDRESSES], responses=DatasetFileSerializer(many=True)))
class DatasetFilesView(views.FilesView):
    """The files of a version, by path."""

    store = DATASETS
    answers_with = DatasetFileSerializer


@extend_schema_view(get=extend_schema(parameters=[views.FOLDER], responses=FolderEntrySerializer(many=True)))
class DatasetEntriesView(views.EntriesView):
    """What lies in one folder of a version, by path, with the files and bytes below each of its folders."""

    store = DATASETS
    answers_with = FolderEntrySerializer


@extend_schema_view(get=extend_schema(parameters=[views.PATH], responses={302: OpenApiResponse(description="There.")}))
class DatasetContentView(views.ContentView):
    """The content of a file: a redirect to a short-lived URL."""

    store = DATASETS


@extend_schema_view(get=extend_schema(responses={(200, "application/zip"): OpenApiTypes.BINARY}))
class DatasetArchiveView(views.ArchiveView):
    """All files of a version as one ZIP."""

    store = DATASETS


class DatasetPreviewView(views.VersionStoreView):
    """A preview of a file, without downloading it."""

    store = DATASETS

    @extend_schema(parameters=[views.PATH], responses=PreviewSerializer)
    def get(self, request: Request, version_id: UUID) -> Response:
        version = cast(DatasetVersion, self.version(version_id))
        file = file_for(version, self.wanted_path())
        return Response(PreviewSerializer(preview_file(version, file)).data)


class DatasetCheckView(views.VersionStoreView):
    """Verify the integrity of all files by checksum. Large versions take several requests."""

    store = DATASETS

    @extend_schema(parameters=[_AFTER], responses=CheckResultSerializer)
    def get(self, request: Request, version_id: UUID) -> Response:
        version = cast(DatasetVersion, self.version(version_id))
        result = version_check(version, after=request.query_params.get("after", ""))
        return Response(CheckResultSerializer(result).data)


urlpatterns: list[URLPattern | URLResolver] = [
    path("datasets/", DatasetsView.as_view(), name="datasets"),
    path("datasets/<uuid:collection_id>/", DatasetView.as_view(), name="dataset"),
    path("datasets/<uuid:collection_id>/versions/", DatasetVersionsView.as_view(), name="dataset_versions"),
    path("dataset-versions/<uuid:version_id>/", DatasetVersionView.as_view(), name="dataset_version"),
    path("dataset-versions/<uuid:version_id>/files/", DatasetFilesView.as_view(), name="dataset_files"),
    path("dataset-versions/<uuid:version_id>/entries/", DatasetEntriesView.as_view(), name="dataset_entries"),
    path("dataset-versions/<uuid:version_id>/files/content/", DatasetContentView.as_view(), name="dataset_content"),
    path("dataset-versions/<uuid:version_id>/archive/", DatasetArchiveView.as_view(), name="dataset_archive"),
    path("dataset-versions/<uuid:version_id>/preview/", DatasetPreviewView.as_view(), name="dataset_preview"),
    path("dataset-versions/<uuid:version_id>/check/", DatasetCheckView.as_view(), name="dataset_check"),
]
