"""The API of models and their versions."""

from __future__ import annotations

from uuid import UUID

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_view
from rest_framework.request import Request
from rest_framework.response import Response

from apps.registry.selectors import MODELS
from apps.registry.serializers import (
    ModelFileSerializer,
    ModelSerializer,
    ModelVersionDetailSerializer,
    ModelVersionSerializer,
)
from apps.uploads.versioned import views


@extend_schema_view(
    get=extend_schema(parameters=[views.NAMESPACE, views.SEARCH], responses=ModelSerializer(many=True)),
)
class ModelsView(views.CollectionsView):
    """Models that are visible to you. Jobs make them."""

    scope = "jobs"
    store = MODELS
    answers_with = ModelSerializer
    http_method_names = ["get", "head", "options"]


@extend_schema_view(get=extend_schema(responses=ModelSerializer))
class ModelView(views.CollectionView):
    """One model."""

    scope = "jobs"
    store = MODELS
    answers_with = ModelSerializer
    http_method_names = ["get", "head", "options"]


@extend_schema_view(get=extend_schema(responses=ModelVersionSerializer(many=True)))
class ModelVersionsView(views.VersionsView):
    """The versions of a model, newest first."""

    scope = "jobs"
    store = MODELS
    answers_with = ModelVersionSerializer
    http_method_names = ["get", "head", "options"]


class ModelVersionView(views.VersionStoreView):
    """One version of a model, with what it was made of."""

    scope = "jobs"
    store = MODELS

    @extend_schema(responses=ModelVersionDetailSerializer)
    def get(self, request: Request, version_id: UUID) -> Response:
        return Response(ModelVersionDetailSerializer(self.version(version_id)).data)


@extend_schema_view(get=extend_schema(responses=ModelFileSerializer(many=True)))
class ModelFilesView(views.FilesView):
    """The files of a version, by path."""

    scope = "jobs"
    store = MODELS
    answers_with = ModelFileSerializer


@extend_schema_view(get=extend_schema(parameters=[views.PATH], responses={302: OpenApiResponse(description="There.")}))
class ModelContentView(views.ContentView):
    """The content of a file: a redirect to a short-lived URL."""

    scope = "jobs"
    store = MODELS


@extend_schema_view(get=extend_schema(responses={(200, "application/zip"): OpenApiTypes.BINARY}))
class ModelArchiveView(views.ArchiveView):
    """All files of a version as one ZIP."""

    scope = "jobs"
    store = MODELS


urlpatterns: list[URLPattern | URLResolver] = [
    path("models/", ModelsView.as_view(), name="models"),
    path("models/<uuid:collection_id>/", ModelView.as_view(), name="model"),
    path("models/<uuid:collection_id>/versions/", ModelVersionsView.as_view(), name="model_versions"),
    path("model-versions/<uuid:version_id>/", ModelVersionView.as_view(), name="model_version"),
    path("model-versions/<uuid:version_id>/files/", ModelFilesView.as_view(), name="model_files"),
    path("model-versions/<uuid:version_id>/files/content/", ModelContentView.as_view(), name="model_content"),
    path("model-versions/<uuid:version_id>/archive/", ModelArchiveView.as_view(), name="model_archive"),
]
