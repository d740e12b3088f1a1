"""The API of code from Git."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.api.idempotency import IdempotentPosts
from apps.api.serializers import StrictSerializer
from apps.code.git_imports import import_begin, import_for, imports_visible
from apps.code.models import CodeImport, ImportState
from apps.namespaces.models import Role
from apps.namespaces.selectors import namespace_for

_NAMESPACE = OpenApiParameter("namespace", str, description="Only this namespace, by id or slug.")


class CodeImportSerializer(serializers.ModelSerializer[CodeImport]):
    """Code that is fetched from Git, and how far it is."""

    namespace = serializers.CharField(source="namespace.slug")
    state = serializers.ChoiceField(choices=ImportState.choices)
    commit = serializers.CharField(help_text="What the ref meant when it was fetched; empty until then.")
    bytes = serializers.IntegerField(source="size", help_text="Bytes so far.")
    notes = serializers.DictField(
        help_text="Of `submodules`, `lfs` (pointers without their content) and `links` (to folders): `count, first`."
    )
    problem = serializers.DictField(
        allow_null=True, help_text="Why it failed, or is tried again: `code, detail, remedy, errors`."
    )
    code_version = serializers.UUIDField(
        source="version_id", allow_null=True, help_text="What a job names as its code, once the state is `ready`."
    )
    is_new = serializers.BooleanField(help_text="It made this version. Else the namespace had these files already.")

    class Meta:
        model = CodeImport
        fields = [
            "id", "namespace", "name", "repository", "ref", "folder", "state", "commit", "bytes", "notes", "problem",
            "code_version", "is_new", "created_at",
        ]  # fmt: skip
        read_only_fields = fields


class NewCodeImportSerializer(StrictSerializer):
    address = serializers.CharField(
        max_length=1_000, help_text="`git+https://host/owner/repository[@ref][#subdirectory=path]`"
    )
    ref = serializers.CharField(
        max_length=300, required=False, default="", allow_blank=True, help_text="Branch, tag or whole commit id."
    )
    folder = serializers.CharField(
        max_length=512, required=False, default="", allow_blank=True, help_text="The folder that is meant."
    )
    namespace = serializers.CharField(
        required=False, default="", allow_blank=True, max_length=63, help_text="Id or slug. Default: your own."
    )
    name = serializers.CharField(
        max_length=100, required=False, default="", allow_blank=True,
        help_text="Of the code whose next version it becomes. Default: the repository's.",
    )  # fmt: skip
    git_token = serializers.CharField(
        max_length=128, required=False, default="", allow_blank=True,
        help_text="Name of the secret that holds a token for a private repository.",
    )  # fmt: skip


class CodeImportsView(IdempotentPosts, ApiView):
    """Fetch code from Git: a worker makes it a code version. Poll the address of the answer until the state is `ready`
    or `failed`."""

    scope = "data"
    posts_are_one_transaction = True

    @extend_schema(parameters=[_NAMESPACE], responses=CodeImportSerializer(many=True))
    def get(self, request: Request) -> Response:
        rows = imports_visible(self.user)
        if wanted := request.query_params.get("namespace"):
            rows = rows.filter(namespace=namespace_for(self.user, wanted))
        return self.page(rows, CodeImportSerializer)

    @extend_schema(request=NewCodeImportSerializer, responses={202: CodeImportSerializer})
    def post(self, request: Request) -> Response:
        data: dict[str, Any] = dict(self.read(NewCodeImportSerializer).validated_data)
        namespace = namespace_for(self.user, data.pop("namespace"), at_least=Role.MEMBER)
        made = import_begin(namespace=namespace, user=self.user, **data)
        return Response(CodeImportSerializer(made).data, status=202)


class CodeImportView(ApiView):
    """How far an import is."""

    scope = "data"

    @extend_schema(responses=CodeImportSerializer)
    def get(self, request: Request, import_id: UUID) -> Response:
        return Response(CodeImportSerializer(import_for(self.user, import_id)).data)


urlpatterns: list[URLPattern | URLResolver] = [
    path("code-imports/", CodeImportsView.as_view(), name="code_imports"),
    path("code-imports/<uuid:import_id>/", CodeImportView.as_view(), name="code_import"),
]
