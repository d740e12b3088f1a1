"""The API of data connections. Secrets are named in it; no value of one is ever in an answer."""

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
from apps.administration.connection_uses import users_of_connection
from apps.api.serializers import StrictSerializer
from apps.connections import services
from apps.connections.models import DataConnection, State
from apps.connections.selectors import connection_named, connections_of
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import namespace_for

_FACTS = [
    "id", "name", "hosts", "tls", "certificate", "certificate_password", "ca", "username", "password", "state",
    "problem", "created_at", "created_by", "changed_at", "asked_at", "ended_at", "found_at",
]  # fmt: skip


class ConnectionSerializer(serializers.ModelSerializer[DataConnection]):
    """A data connection, and how the last check of it ended. What names a secret has its name alone."""

    state = serializers.ChoiceField(choices=State.choices, help_text="Of the last check.")
    problem = serializers.DictField(
        allow_null=True, help_text="Why the last check failed: `code, detail, remedy, errors`."
    )
    created_by = serializers.SerializerMethodField(help_text="User name; empty if the user was removed.")

    class Meta:
        model = DataConnection
        fields = _FACTS
        read_only_fields = _FACTS

    def get_created_by(self, connection: DataConnection) -> str:
        return connection.created_by.username if connection.created_by else ""


class FoundConnectionSerializer(ConnectionSerializer):
    """The same, with what the last check that succeeded has found."""

    found = serializers.DictField(
        allow_null=True,
        help_text="`caches`: of each `name, tables, partitions, rows, columns, preview, problem`; `count`: how many "
        "caches there are; `notes`. Null until a check has succeeded.",
    )

    class Meta(ConnectionSerializer.Meta):
        fields = [*_FACTS, "found"]
        read_only_fields = fields


class NewConnectionSerializer(StrictSerializer):
    """Where the cluster is, and the names of the secrets that open it."""

    hosts = serializers.CharField(
        max_length=1_000,
        help_text="`HOST` or `HOST:PORT`, separated by commas. The default port is 10800.",
    )
    tls = serializers.BooleanField(required=False, default=False)
    certificate = serializers.CharField(
        max_length=128, required=False, default="", allow_blank=True, help_text="Secret: PEM, with its key."
    )
    certificate_password = serializers.CharField(max_length=128, required=False, default="", allow_blank=True)
    ca = serializers.CharField(
        max_length=128, required=False, default="", allow_blank=True, help_text="Secret: the CA of the cluster, as PEM."
    )
    username = serializers.CharField(max_length=128, required=False, default="", allow_blank=True)
    password = serializers.CharField(max_length=128, required=False, default="", allow_blank=True)


_FORCE = OpenApiParameter("force", OpenApiTypes.BOOL, description="Delete it even if jobs still use it.")


class _Address(ApiView):
    scope = "data"

    def namespace(self, namespace_id: UUID, at_least: Role = Role.MEMBER) -> Namespace:
        return namespace_for(self.user, namespace_id, at_least=at_least)


class ConnectionsView(_Address):
    """The data connections of a namespace."""

    @extend_schema(responses=ConnectionSerializer(many=True))
    def get(self, request: Request, namespace_id: UUID) -> Response:
        return self.page(connections_of(self.namespace(namespace_id, Role.VIEWER)), ConnectionSerializer)


class ConnectionView(_Address):
    """One data connection, by its name, with the caches and tables that the last check found."""

    @extend_schema(responses=FoundConnectionSerializer)
    def get(self, request: Request, namespace_id: UUID, name: str) -> Response:
        found = connection_named(self.namespace(namespace_id, Role.VIEWER), name)
        return Response(FoundConnectionSerializer(found).data)

    @extend_schema(
        request=NewConnectionSerializer, responses={200: ConnectionSerializer, 201: ConnectionSerializer}
    )  # fmt: skip
    def put(self, request: Request, namespace_id: UUID, name: str) -> Response:
        """Register it, or change it; then it is checked. Tasks that start later get what it says then."""
        namespace = self.namespace(namespace_id)
        values: dict[str, Any] = dict(self.read(NewConnectionSerializer).validated_data)
        made, is_new = services.connection_set(namespace=namespace, name=name, actor=self.user, values=values)
        return Response(ConnectionSerializer(made).data, status=201 if is_new else 200)

    @extend_schema(parameters=[_FORCE], responses={204: None})
    def delete(self, request: Request, namespace_id: UUID, name: str) -> Response:
        """Delete it. Refused (`connection_in_use`) while jobs that are not over use it."""
        found = connection_named(self.namespace(namespace_id), name)
        force = request.query_params.get("force", "").lower() in ("1", "true")
        services.connection_delete(
            connection=found, actor=self.user, used_by=users_of_connection(found), force=force
        )  # fmt: skip
        return Response(status=204)


class CheckConnectionView(_Address):
    """Have the portal look at the cluster. Poll the address of the connection: `state` is `checking` until then."""

    @extend_schema(request=None, responses={202: ConnectionSerializer})
    def post(self, request: Request, namespace_id: UUID, name: str) -> Response:
        found = connection_named(self.namespace(namespace_id), name)
        asked = services.connection_check_ask(connection=found, actor=self.user)
        return Response(ConnectionSerializer(asked).data, status=202)


urlpatterns: list[URLPattern | URLResolver] = [
    path("namespaces/<uuid:namespace_id>/connections/", ConnectionsView.as_view(), name="connections"),
    path("namespaces/<uuid:namespace_id>/connections/<str:name>/", ConnectionView.as_view(), name="connection"),
    path(
        "namespaces/<uuid:namespace_id>/connections/<str:name>/check/",
        CheckConnectionView.as_view(),
        name="connection_check",
    ),
]
