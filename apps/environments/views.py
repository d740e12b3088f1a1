"""The API of environments: packages that were installed for jobs, and that others in the namespace use."""

from __future__ import annotations

from uuid import UUID

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.environments.models import Environment
from apps.environments.selectors import environment_of, environments_visible_to
from apps.environments.services import environment_delete
from apps.namespaces.models import Role
from apps.namespaces.selectors import namespace_for, require_role


class EnvironmentSerializer(serializers.ModelSerializer[Environment]):
    """Packages that can be used again. `lock` has what was installed: name, version, and SHA-256 of the wheel."""

    requirements = serializers.ListField(child=serializers.CharField())
    lock = serializers.ListField(child=serializers.DictField(child=serializers.CharField()))

    class Meta:
        model = Environment
        fields = ["id", "namespace", "requirements", "python", "lock", "size", "created_at", "used_at"]
        read_only_fields = fields


class EnvironmentsView(ApiView):
    """Environments of your namespaces, the newest first."""

    scope = "jobs"

    @extend_schema(
        parameters=[OpenApiParameter("namespace", str, description="Only this namespace, by ID or slug.")],
        responses=EnvironmentSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        found = environments_visible_to(self.user)
        if named := request.query_params.get("namespace"):
            found = found.filter(namespace=namespace_for(self.user, named))
        return self.page(found, EnvironmentSerializer)


class EnvironmentView(ApiView):
    """One environment."""

    scope = "jobs"
    pagination_class = None

    @extend_schema(responses=EnvironmentSerializer)
    def get(self, request: Request, environment_id: UUID) -> Response:
        return Response(EnvironmentSerializer(environment_of(self.user, environment_id)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, environment_id: UUID) -> Response:
        """Remove it and return its storage. The next job that needs these packages installs them again."""
        found = environment_of(self.user, environment_id)
        require_role(self.user, found.namespace, Role.MEMBER)
        environment_delete(found, self.user)
        return Response(status=204)


urlpatterns: list[URLPattern | URLResolver] = [
    path("environments/", EnvironmentsView.as_view(), name="environments"),
    path("environments/<uuid:environment_id>/", EnvironmentView.as_view(), name="environment"),
]
