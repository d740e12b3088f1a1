"""The API of copies from data connections into datasets."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.api.idempotency import IdempotentPosts
from apps.api.serializers import StrictSerializer
from apps.connections.selectors import connection_named
from apps.datasets.connection_copies import LONGEST_QUERY, copies_of, copy_ask, copy_cancel, copy_of, version_copied
from apps.datasets.models import ConnectionCopy
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import namespace_for
from yardmaster.job.spec_connection import LONGEST_CACHE

_FACTS = [
    "id", "connection", "cache", "query", "dataset", "state", "problem", "rows", "written", "dataset_version",
    "started_at", "ended_at",
]  # fmt: skip


class ConnectionCopySerializer(serializers.ModelSerializer[ConnectionCopy]):
    """A copy of rows of a cluster into a version of a dataset."""

    state = serializers.ChoiceField(choices=ConnectionCopy.State.choices)
    problem = serializers.DictField(allow_null=True, help_text="Why it failed: `code, detail, remedy, errors`.")
    rows = serializers.IntegerField(help_text="Rows that are copied so far.")
    written = serializers.IntegerField(help_text="Bytes that are written so far.")
    dataset_version = serializers.SerializerMethodField(
        help_text="Null until the copy has ended, and after the version was deleted."
    )

    class Meta:
        model = ConnectionCopy
        fields = _FACTS
        read_only_fields = _FACTS

    def get_dataset_version(self, copy: ConnectionCopy) -> UUID | None:
        version = version_copied(copy)
        return None if version is None else version.pk


class NewConnectionCopySerializer(StrictSerializer):
    """What is copied, and where to."""

    dataset = serializers.CharField(
        max_length=100, help_text="The name of the dataset. It is created if it does not exist."
    )
    cache = serializers.CharField(max_length=LONGEST_CACHE, required=False, default="", allow_blank=True)
    query = serializers.CharField(
        max_length=LONGEST_QUERY, required=False, default="", allow_blank=True, help_text="SQL, instead of `cache`."
    )


class _Address(ApiView):
    scope = "data"

    def namespace(self, namespace_id: UUID, at_least: Role = Role.MEMBER) -> Namespace:
        return namespace_for(self.user, namespace_id, at_least=at_least)


class ConnectionCopiesView(IdempotentPosts, _Address):
    """The copies from one data connection."""

    posts_are_one_transaction = True

    @extend_schema(responses=ConnectionCopySerializer(many=True))
    def get(self, request: Request, namespace_id: UUID, name: str) -> Response:
        connection = connection_named(self.namespace(namespace_id, Role.VIEWER), name)
        return self.page(copies_of(connection.namespace, connection.name), ConnectionCopySerializer)

    @extend_schema(request=NewConnectionCopySerializer, responses={202: ConnectionCopySerializer})
    def post(self, request: Request, namespace_id: UUID, name: str) -> Response:
        """Copy a cache, or what a query finds, into a new version of a dataset. Poll the address of the copy: the
        version is there when its state is `ready`."""
        connection = connection_named(self.namespace(namespace_id), name)
        values: dict[str, Any] = dict(self.read(NewConnectionCopySerializer).validated_data)
        made = copy_ask(namespace=connection.namespace, connection=connection.name, actor=self.user, **values)
        return Response(ConnectionCopySerializer(made).data, status=202)


class ConnectionCopyView(_Address):
    """One copy, and how far it is."""

    @extend_schema(responses=ConnectionCopySerializer)
    def get(self, request: Request, namespace_id: UUID, name: str, copy_id: UUID) -> Response:
        found = copy_of(self.namespace(namespace_id, Role.VIEWER), name, copy_id)
        return Response(ConnectionCopySerializer(found).data)


class CancelConnectionCopyView(_Address):
    """Cancel a copy. One that has ended stays as it is."""

    @extend_schema(request=None, responses=ConnectionCopySerializer)
    def post(self, request: Request, namespace_id: UUID, name: str, copy_id: UUID) -> Response:
        found = copy_of(self.namespace(namespace_id), name, copy_id)
        return Response(ConnectionCopySerializer(copy_cancel(copy=found, actor=self.user)).data)


_COPIES = "namespaces/<uuid:namespace_id>/connections/<str:name>/copies/"
urlpatterns: list[URLPattern | URLResolver] = [
    path(_COPIES, ConnectionCopiesView.as_view(), name="connection_copies"),
    path(f"{_COPIES}<uuid:copy_id>/", ConnectionCopyView.as_view(), name="connection_copy"),
    path(f"{_COPIES}<uuid:copy_id>/cancel/", CancelConnectionCopyView.as_view(), name="connection_copy_cancel"),
]
