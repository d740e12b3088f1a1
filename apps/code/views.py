"""The API of code, and its JSON."""

from __future__ import annotations

from typing import Any

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_field, extend_schema_view
from rest_framework import serializers

from apps.code.selectors import CODE
from apps.uploads.versioned import views
from apps.uploads.versioned.selectors import newest_of
from apps.uploads.versioned.serializers import (
    CollectionChangesSerializer,
    CollectionSerializer,
    FileSerializer,
    NewCollectionSerializer,
    NewVersionSerializer,
    VersionSerializer,
)


class GitOriginSerializer(serializers.Serializer[Any]):
    """Where the files of a version come from."""

    repository = serializers.CharField(source="git_repository")
    ref = serializers.CharField(source="git_ref", help_text="What was asked for; empty: the default branch.")
    commit = serializers.CharField(source="git_commit")
    folder = serializers.CharField(source="git_folder")


class CodeVersionSerializer(VersionSerializer):
    """A version of code."""

    code = serializers.UUIDField(source="parent_id")
    git = serializers.SerializerMethodField(help_text="Null: it was uploaded.")

    @extend_schema_field(GitOriginSerializer(allow_null=True))
    def get_git(self, version: Any) -> Any:
        return GitOriginSerializer(version).data if version.git_repository else None


class CodeSerializer(CollectionSerializer):
    """Code with its newest version."""

    latest = serializers.SerializerMethodField()

    @extend_schema_field(CodeVersionSerializer(allow_null=True))
    def get_latest(self, code: Any) -> Any:
        newest = newest_of(code)
        return None if newest is None else CodeVersionSerializer(newest).data


class CodeFileSerializer(FileSerializer):
    """One file of a code version."""


@extend_schema_view(
    get=extend_schema(parameters=[views.NAMESPACE, views.SEARCH], responses=CodeSerializer(many=True)),
    post=extend_schema(request=NewCollectionSerializer, responses={201: CodeSerializer}),
)
class CodesView(views.CollectionsView):
    """Code that is visible to you. New code is created from a complete upload."""

    store = CODE
    answers_with = CodeSerializer


@extend_schema_view(
    get=extend_schema(responses=CodeSerializer),
    patch=extend_schema(request=CollectionChangesSerializer, responses=CodeSerializer),
    delete=extend_schema(responses={204: None}),
)
class CodeView(views.CollectionView):
    """One item of code. It cannot be deleted while an unfinished job uses one of its versions."""

    store = CODE
    answers_with = CodeSerializer


@extend_schema_view(
    get=extend_schema(responses=CodeVersionSerializer(many=True)),
    post=extend_schema(request=NewVersionSerializer, responses={201: CodeVersionSerializer}),
)
class CodeVersionsView(views.VersionsView):
    """The versions, newest first. A new version is created from a complete upload."""

    store = CODE
    answers_with = CodeVersionSerializer


@extend_schema_view(get=extend_schema(responses=CodeVersionSerializer), delete=extend_schema(responses={204: None}))
class CodeVersionView(views.VersionView):
    """One version: what a job names as its code."""

    store = CODE
    answers_with = CodeVersionSerializer


@extend_schema_view(get=extend_schema(parameters=[views.ADDRESSES], responses=CodeFileSerializer(many=True)))
class CodeFilesView(views.FilesView):
    """The files of a version, by path."""

    store = CODE
    answers_with = CodeFileSerializer


@extend_schema_view(get=extend_schema(parameters=[views.PATH], responses={302: OpenApiResponse(description="There.")}))
class CodeContentView(views.ContentView):
    """The content of a file: a redirect to a short-lived URL."""

    store = CODE


@extend_schema_view(get=extend_schema(responses={(200, "application/zip"): OpenApiTypes.BINARY}))
class CodeArchiveView(views.ArchiveView):
    """All files of a version as one ZIP."""

    store = CODE


urlpatterns: list[URLPattern | URLResolver] = [
    path("code/", CodesView.as_view(), name="codes"),
    path("code/<uuid:collection_id>/", CodeView.as_view(), name="code"),
    path("code/<uuid:collection_id>/versions/", CodeVersionsView.as_view(), name="code_versions"),
    path("code-versions/<uuid:version_id>/", CodeVersionView.as_view(), name="code_version"),
    path("code-versions/<uuid:version_id>/files/", CodeFilesView.as_view(), name="code_files"),
    path("code-versions/<uuid:version_id>/files/content/", CodeContentView.as_view(), name="code_content"),
    path("code-versions/<uuid:version_id>/archive/", CodeArchiveView.as_view(), name="code_archive"),
]
