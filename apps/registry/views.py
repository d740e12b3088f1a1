"""The API of models."""

from __future__ import annotations

from uuid import UUID

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.audit.services import download_record
from apps.registry.selectors import model_for, models_visible
from apps.registry.serializers import ModelSerializer, ModelWithFilesSerializer

_NAMESPACE = OpenApiParameter("namespace", str, description="Only this namespace, by id or slug.")


class ModelsView(ApiView):
    """The models that jobs produced, newest first."""

    scope = "jobs"

    @extend_schema(parameters=[_NAMESPACE], responses=ModelSerializer(many=True))
    def get(self, request: Request) -> Response:
        return self.page(models_visible(self.user, namespace=request.query_params.get("namespace")), ModelSerializer)


class ModelView(ApiView):
    """One model, with URLs to download its files."""

    scope = "jobs"

    @extend_schema(responses=ModelWithFilesSerializer)
    def get(self, request: Request, model_id: UUID) -> Response:
        found = model_for(self.user, model_id)
        download_record(self.user, "model", found.pk, found.namespace, name=found.name)
        return Response(ModelWithFilesSerializer(found).data)


urlpatterns: list[URLPattern | URLResolver] = [
    path("models/", ModelsView.as_view(), name="models"),
    path("models/<uuid:model_id>/", ModelView.as_view(), name="model"),
]
