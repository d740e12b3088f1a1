"""The API of secrets: names and facts. A value goes in, and never out."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.administration.secret_uses import users_of_secret
from apps.api.serializers import StrictSerializer
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import namespace_for
from apps.secrets import services
from apps.secrets.models import Kind, Secret
from apps.secrets.selectors import secret_named, secrets_of
from apps.secrets.values import value_of


class SecretSerializer(serializers.ModelSerializer[Secret]):
    """What is known of a secret. Its value is not."""

    created_by = serializers.SerializerMethodField(help_text="User name; empty if the user was removed.")
    changed_by = serializers.SerializerMethodField(help_text="User name; empty if the user was removed.")
    size = serializers.IntegerField(help_text="Bytes of the value.")

    class Meta:
        model = Secret
        fields = [
            "id", "name", "kind", "description", "size", "created_at", "created_by", "changed_at", "changed_by",
            "last_used_at",
        ]  # fmt: skip
        read_only_fields = fields

    def get_created_by(self, secret: Secret) -> str:
        return secret.created_by.username if secret.created_by else ""

    def get_changed_by(self, secret: Secret) -> str:
        return secret.changed_by.username if secret.changed_by else ""


class NewSecretSerializer(StrictSerializer):
    """A value of the kind `text`, or the two keys of the kind `s3`. None of them can be read again."""

    kind = serializers.ChoiceField(choices=Kind.choices, default=Kind.TEXT)
    value = serializers.CharField(write_only=True, required=False, trim_whitespace=False, allow_blank=True)
    access_key = serializers.CharField(write_only=True, required=False)
    secret_key = serializers.CharField(write_only=True, required=False, trim_whitespace=False)
    description = serializers.CharField(required=False, max_length=500, allow_blank=True)


_FORCE = OpenApiParameter("force", OpenApiTypes.BOOL, description="Delete it although jobs or datasets still use it.")


class _SecretAddress(ApiView):
    scope = "data"

    def namespace(self, namespace_id: UUID, at_least: Role = Role.MEMBER) -> Namespace:
        return namespace_for(self.user, namespace_id, at_least=at_least)


class SecretsView(_SecretAddress):
    """The secrets of a namespace. Viewers see them, too: there are no values."""

    @extend_schema(responses=SecretSerializer(many=True))
    def get(self, request: Request, namespace_id: UUID) -> Response:
        return self.page(secrets_of(self.namespace(namespace_id, Role.VIEWER)), SecretSerializer)


class SecretView(_SecretAddress):
    """One secret, by its name."""

    @extend_schema(responses=SecretSerializer)
    def get(self, request: Request, namespace_id: UUID, name: str) -> Response:
        namespace = self.namespace(namespace_id, Role.VIEWER)
        return Response(SecretSerializer(secret_named(namespace, name)).data)

    @extend_schema(request=NewSecretSerializer, responses={200: SecretSerializer, 201: SecretSerializer})
    def put(self, request: Request, namespace_id: UUID, name: str) -> Response:
        """Create it, or replace its value. The next task that starts gets the new value."""
        namespace = self.namespace(namespace_id)
        data: dict[str, Any] = self.read(NewSecretSerializer).validated_data
        kind = Kind(data["kind"])
        secret, is_new = services.secret_set(
            namespace=namespace, name=name, value=value_of(kind, data), actor=self.user, kind=kind,
            description=data.get("description"),
        )  # fmt: skip
        return Response(SecretSerializer(secret).data, status=201 if is_new else 200)

    @extend_schema(parameters=[_FORCE], responses={204: None})
    def delete(self, request: Request, namespace_id: UUID, name: str) -> Response:
        """Delete it. Refused (`secret_in_use`) while jobs that are not over, or datasets, use it."""
        secret = secret_named(self.namespace(namespace_id), name)
        force = request.query_params.get("force", "").lower() in ("1", "true")
        services.secret_delete(secret=secret, actor=self.user, used_by=users_of_secret(secret), force=force)
        return Response(status=204)


urlpatterns: list[URLPattern | URLResolver] = [
    path("namespaces/<uuid:namespace_id>/secrets/", SecretsView.as_view(), name="secrets"),
    path("namespaces/<uuid:namespace_id>/secrets/<str:name>/", SecretView.as_view(), name="secret"),
]
