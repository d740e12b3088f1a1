"""The API of models and their versions."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema, extend_schema_view
from rest_framework.request import Request
from rest_framework.response import Response

from apps.namespaces.models import Role
from apps.registry import selectors
from apps.registry.comparing import compare
from apps.registry.deletion import model_delete, model_restore, version_delete, version_restore
from apps.registry.models import Stage
from apps.registry.selectors import MODELS
from apps.registry.serializers import (
    ComparisonSerializer,
    ModelFileSerializer,
    ModelSerializer,
    ModelVersionDetailSerializer,
    ModelVersionSerializer,
    NewStageSerializer,
    StageChangeSerializer,
)
from apps.registry.stages import stage_set
from apps.uploads.versioned import views
from apps.uploads.versioned.serializers import CollectionChangesSerializer
from apps.uploads.versioned.services import collection_change

_NOW = OpenApiParameter("now", bool, description="Remove it at once, instead of after the grace period.")
_DELETED = OpenApiParameter("deleted", bool, description="Those that are deleted and can still be restored.")
_WHICH = OpenApiParameter("version", int, many=True, description="Numbers of two to five versions.")


class RegistryView(views.VersionStoreView):
    """Any address of models."""

    scope = "jobs"
    store = MODELS

    def is_asked(self, name: str) -> bool:
        """Whether the query says so."""
        return self.request.query_params.get(name, "").lower() in ("1", "true", "yes")


@extend_schema_view(
    get=extend_schema(parameters=[views.NAMESPACE, views.SEARCH, _DELETED], responses=ModelSerializer(many=True)),
)
class ModelsView(RegistryView, views.CollectionsView):
    """Models that are visible to you. Jobs make them."""

    answers_with = ModelSerializer
    http_method_names = ["get", "head", "options"]

    def get(self, request: Request) -> Response:
        if self.is_asked("deleted"):
            namespace = request.query_params.get("namespace")
            return self.page(selectors.deleted_models(self.user, namespace=namespace), ModelSerializer)
        return super().get(request)

    def with_newest(self, rows: Any) -> Any:
        return selectors.with_versions(rows)


class ModelView(RegistryView):
    """One model. Deleted, it is hidden and can be restored for a while; not while a version of it is in production."""

    @extend_schema(responses=ModelSerializer)
    def get(self, request: Request, model_id: UUID) -> Response:
        return Response(ModelSerializer(self.collection(model_id)).data)

    @extend_schema(request=CollectionChangesSerializer, responses=ModelSerializer)
    def patch(self, request: Request, model_id: UUID) -> Response:
        found = selectors.model_for(self.user, model_id, at_least=Role.MEMBER)
        changes = self.read(CollectionChangesSerializer).validated_data
        collection_change(MODELS, found, actor=self.user, **changes)
        return Response(ModelSerializer(found).data)

    @extend_schema(parameters=[_NOW], responses={204: None})
    def delete(self, request: Request, model_id: UUID) -> Response:
        found = selectors.any_model_for(self.user, model_id, at_least=Role.MEMBER)
        model_delete(found, actor=self.user, now_for_good=self.is_asked("now"))
        return Response(status=204)


class ModelRestoreView(RegistryView):
    """Show a deleted model again."""

    @extend_schema(request=None, responses=ModelSerializer)
    def post(self, request: Request, model_id: UUID) -> Response:
        found = selectors.any_model_for(self.user, model_id, at_least=Role.MEMBER)
        model_restore(found, actor=self.user)
        return Response(ModelSerializer(self.collection(model_id)).data)


class ModelVersionsView(RegistryView):
    """The versions of a model, newest first."""

    @extend_schema(parameters=[_DELETED], responses=ModelVersionSerializer(many=True))
    def get(self, request: Request, model_id: UUID) -> Response:
        model = selectors.model_for(self.user, model_id)
        reads = selectors.deleted_versions if self.is_asked("deleted") else selectors.model_versions
        return self.page(reads(model), ModelVersionSerializer)


class ModelStagesView(RegistryView):
    """The history of the model's stages, newest first."""

    @extend_schema(responses=StageChangeSerializer(many=True))
    def get(self, request: Request, model_id: UUID) -> Response:
        return self.page(selectors.stage_changes(selectors.model_for(self.user, model_id)), StageChangeSerializer)


class ModelCompareView(RegistryView):
    """Versions of a model side by side."""

    @extend_schema(parameters=[_WHICH], responses=ComparisonSerializer)
    def get(self, request: Request, model_id: UUID) -> Response:
        model = selectors.model_for(self.user, model_id)
        versions = selectors.versions_numbered(model, request.query_params.getlist("version"))
        return Response(ComparisonSerializer({"versions": versions, "parts": compare(versions)}).data)


class ModelVersionView(RegistryView):
    """One version of a model, with what it was made of. Deleted, it is hidden and can be restored for a while."""

    @extend_schema(responses=ModelVersionDetailSerializer)
    def get(self, request: Request, version_id: UUID) -> Response:
        return Response(ModelVersionDetailSerializer(self.version(version_id)).data)

    @extend_schema(parameters=[_NOW], responses={204: None})
    def delete(self, request: Request, version_id: UUID) -> Response:
        found = selectors.any_version_for(self.user, version_id, at_least=Role.MEMBER)
        version_delete(found, actor=self.user, now_for_good=self.is_asked("now"))
        return Response(status=204)


class ModelVersionRestoreView(RegistryView):
    """Show a deleted version again."""

    @extend_schema(request=None, responses=ModelVersionDetailSerializer)
    def post(self, request: Request, version_id: UUID) -> Response:
        found = selectors.any_version_for(self.user, version_id, at_least=Role.MEMBER)
        version_restore(found, actor=self.user)
        return Response(ModelVersionDetailSerializer(self.version(version_id)).data)


class ModelVersionStageView(RegistryView):
    """Give a version a stage, or take it away (an empty one). The version that was in production or staging before is
    archived."""

    @extend_schema(request=NewStageSerializer, responses=ModelVersionDetailSerializer)
    def post(self, request: Request, version_id: UUID) -> Response:
        found = selectors.model_version_for(self.user, version_id, at_least=Role.MEMBER)
        data = self.read(NewStageSerializer).validated_data
        stage_set(found, Stage(data["stage"]), actor=self.user, note=data["note"])
        return Response(ModelVersionDetailSerializer(self.version(version_id)).data)


@extend_schema_view(get=extend_schema(parameters=[views.ADDRESSES], responses=ModelFileSerializer(many=True)))
class ModelFilesView(RegistryView, views.FilesView):
    """The files of a version, by path."""

    answers_with = ModelFileSerializer


@extend_schema_view(get=extend_schema(parameters=[views.PATH], responses={302: OpenApiResponse(description="There.")}))
class ModelContentView(RegistryView, views.ContentView):
    """The content of a file: a redirect to a short-lived URL."""


@extend_schema_view(get=extend_schema(responses={(200, "application/zip"): OpenApiTypes.BINARY}))
class ModelArchiveView(RegistryView, views.ArchiveView):
    """All files of a version as one ZIP."""


urlpatterns: list[URLPattern | URLResolver] = [
    path("models/", ModelsView.as_view(), name="models"),
    path("models/<uuid:model_id>/", ModelView.as_view(), name="model"),
    path("models/<uuid:model_id>/restore/", ModelRestoreView.as_view(), name="model_restore"),
    path("models/<uuid:model_id>/versions/", ModelVersionsView.as_view(), name="model_versions"),
    path("models/<uuid:model_id>/stages/", ModelStagesView.as_view(), name="model_stages"),
    path("models/<uuid:model_id>/compare/", ModelCompareView.as_view(), name="model_compare"),
    path("model-versions/<uuid:version_id>/", ModelVersionView.as_view(), name="model_version"),
    path("model-versions/<uuid:version_id>/restore/", ModelVersionRestoreView.as_view(), name="model_version_restore"),
    path("model-versions/<uuid:version_id>/stage/", ModelVersionStageView.as_view(), name="model_version_stage"),
    path("model-versions/<uuid:version_id>/files/", ModelFilesView.as_view(), name="model_files"),
    path("model-versions/<uuid:version_id>/files/content/", ModelContentView.as_view(), name="model_content"),
    path("model-versions/<uuid:version_id>/archive/", ModelArchiveView.as_view(), name="model_archive"),
]
