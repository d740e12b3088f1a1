"""The API of code."""

from __future__ import annotations

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_view

from apps.code.serializers import CodeFileSerializer, CodeSerializer, CodeVersionSerializer
from apps.code.shelf import CODE
from apps.uploads.versioned import views
from apps.uploads.versioned.serializers import (
    CollectionChangesSerializer,
    NewCollectionSerializer,
    NewVersionSerializer,
)


@extend_schema_view(
    get=extend_schema(parameters=[views.NAMESPACE, views.SEARCH], responses=CodeSerializer(many=True)),
    post=extend_schema(request=NewCollectionSerializer, responses={201: CodeSerializer}),
)
class CodesView(views.CollectionsView):
    """Code that is visible to you. New code is created from a complete upload."""

    shelf = CODE
    answers_with = CodeSerializer


@extend_schema_view(
    get=extend_schema(responses=CodeSerializer),
    patch=extend_schema(request=CollectionChangesSerializer, responses=CodeSerializer),
    delete=extend_schema(responses={204: None}),
)
class CodeView(views.CollectionView):
    """One item of code. It cannot be deleted while an unfinished job uses one of its versions."""

    shelf = CODE
    answers_with = CodeSerializer


@extend_schema_view(
    get=extend_schema(responses=CodeVersionSerializer(many=True)),
    post=extend_schema(request=NewVersionSerializer, responses={201: CodeVersionSerializer}),
)
class CodeVersionsView(views.VersionsView):
    """The versions, newest first. A new version is created from a complete upload."""

    shelf = CODE
    answers_with = CodeVersionSerializer


@extend_schema_view(get=extend_schema(responses=CodeVersionSerializer), delete=extend_schema(responses={204: None}))
class CodeVersionView(views.VersionView):
    """One version: what a job names as its code."""

    shelf = CODE
    answers_with = CodeVersionSerializer


@extend_schema_view(get=extend_schema(responses=CodeFileSerializer(many=True)))
class CodeFilesView(views.FilesView):
    """The files of a version, by path."""

    shelf = CODE
    answers_with = CodeFileSerializer


@extend_schema_view(get=extend_schema(parameters=[views.PATH], responses={302: OpenApiResponse(description="There.")}))
class CodeContentView(views.ContentView):
    """The content of a file: a redirect to a short-lived URL."""

    shelf = CODE


@extend_schema_view(get=extend_schema(responses={(200, "application/zip"): OpenApiTypes.BINARY}))
class CodeArchiveView(views.ArchiveView):
    """All files of a version as one ZIP."""

    shelf = CODE
