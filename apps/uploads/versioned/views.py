"""The addresses that datasets and code have in common. Each store's views say which store and which JSON."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from django.http import HttpResponseRedirect, StreamingHttpResponse
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from apps.accounts.api_view import ApiView
from apps.api.idempotency import IdempotentPosts
from apps.audit.services import download_record
from apps.errors import Invalid
from apps.namespaces.models import Role
from apps.namespaces.selectors import namespace_for
from apps.uploads.delivery import archive_response, content_type_of
from apps.uploads.files_aside import files_aside
from apps.uploads.selectors import upload_for
from apps.uploads.versioned import selectors, services
from apps.uploads.versioned.folders import ByFolder
from apps.uploads.versioned.models import Collection, Version
from apps.uploads.versioned.paging import ByPath
from apps.uploads.versioned.selectors import VersionStore
from apps.uploads.versioned.serializers import (
    CollectionChangesSerializer,
    NewCollectionSerializer,
    NewVersionSerializer,
)
from apps.uploads.versioned.services import MAX_NAME
from yardmaster.errors import Problem

NAMESPACE = OpenApiParameter("namespace", str, description="Only this namespace, by id or slug.")
SEARCH = OpenApiParameter("search", str, description="Only names that contain this, in any case.")
ADDRESSES = OpenApiParameter("addresses", str, description="`1`: each file with a short-lived URL of its content.")
FOLDER = OpenApiParameter("folder", str, description="The folder's path. Default: the outermost.")
PATH = OpenApiParameter("path", str, required=True, description="The file's path within the version.")


class VersionStoreView(ApiView):
    """Any address of a store."""

    scope = "data"
    store: ClassVar[VersionStore[Any, Any]]
    answers_with: ClassVar[type[BaseSerializer[Any]]]

    def collection(self, collection_id: UUID, at_least: Role = Role.VIEWER) -> Collection:
        found: Collection = selectors.collection_for(self.store, self.user, collection_id, at_least=at_least)
        return found

    def version(self, version_id: UUID, at_least: Role = Role.VIEWER) -> Version:
        found: Version = selectors.version_for(self.store, self.user, version_id, at_least=at_least)
        return found

    def note_download(self, version: Version) -> None:
        of = selectors.parent_of(version)
        download_record(self.user, self.store.noun, of.pk, of.namespace, name=of.name, version=version.number)

    def wanted_path(self) -> str:
        """The query's `path`. Raises `Invalid`."""
        path = self.request.query_params.get("path", "")
        if not path:
            remedy = "Add ?path= and the file's path, as the files/ address lists it."
            raise Invalid([Problem("path", "required", "Which file?", remedy)])
        return path


class CollectionsView(IdempotentPosts, VersionStoreView):
    """All that you may see; a new one is made of a complete upload."""

    posts_are_one_transaction = True

    def get(self, request: Request) -> Response:
        rows = selectors.collections_visible(self.store, self.user)
        if wanted := request.query_params.get("namespace"):
            rows = rows.filter(namespace=namespace_for(self.user, wanted))
        if words := request.query_params.get("search"):
            if len(words) > MAX_NAME:
                remedy = f"No name has more than {MAX_NAME} characters."
                raise Invalid([Problem("search", "too_long", "This is too long to be part of a name.", remedy)])
            rows = rows.filter(name__icontains=words)
        return self.page(self.with_newest(rows), self.answers_with)

    def with_newest(self, rows: Any) -> Any:
        """The rows with their newest version at hand."""
        return selectors.with_newest(self.store, rows)

    def post(self, request: Request) -> Response:
        data = self.read(NewCollectionSerializer).validated_data
        upload = upload_for(self.user, data["upload"])
        wanted = data.get("namespace")
        namespace = namespace_for(self.user, wanted, at_least=Role.MEMBER) if wanted else upload.namespace
        made = services.collection_create(
            self.store, namespace=namespace, actor=self.user, name=data["name"],
            description=data["description"], upload=upload,
        )  # fmt: skip
        return Response(self.answers_with(made).data, status=201)


class CollectionView(VersionStoreView):
    """One of them."""

    def get(self, request: Request, collection_id: UUID) -> Response:
        return Response(self.answers_with(self.collection(collection_id)).data)

    def patch(self, request: Request, collection_id: UUID) -> Response:
        found = self.collection(collection_id, Role.MEMBER)
        changes = self.read(CollectionChangesSerializer).validated_data
        changed = services.collection_change(self.store, found, actor=self.user, **changes)
        return Response(self.answers_with(changed).data)

    def delete(self, request: Request, collection_id: UUID) -> Response:
        services.collection_delete(self.store, self.collection(collection_id, Role.MEMBER), actor=self.user)
        return Response(status=204)


class VersionsView(IdempotentPosts, VersionStoreView):
    """The versions, newest first; the next one is made of a complete upload."""

    posts_are_one_transaction = True

    def get(self, request: Request, collection_id: UUID) -> Response:
        return self.page(selectors.versions_of(self.store, self.collection(collection_id)), self.answers_with)

    def post(self, request: Request, collection_id: UUID) -> Response:
        found = self.collection(collection_id, Role.MEMBER)
        data = self.read(NewVersionSerializer).validated_data
        upload = upload_for(self.user, data["upload"])
        made = services.version_add(self.store, found, actor=self.user, upload=upload, note=data["note"])
        return Response(self.answers_with(made).data, status=201)


class VersionView(VersionStoreView):
    """One version."""

    def get(self, request: Request, version_id: UUID) -> Response:
        return Response(self.answers_with(self.version(version_id)).data)

    def delete(self, request: Request, version_id: UUID) -> Response:
        version = self.version(version_id, Role.MEMBER)
        services.version_delete(self.store, selectors.parent_of(version), version, actor=self.user)
        return Response(status=204)


class FilesView(VersionStoreView):
    """The files of a version, by path; on demand each with an address of its content, since a request per file would
    cost more than small files themselves."""

    pagination_class = ByPath
    _with_addresses_of: Version | None = None

    def get(self, request: Request, version_id: UUID) -> Response:
        version = self.version(version_id)
        if request.query_params.get("addresses") == "1":
            self._with_addresses_of = version
            self.note_download(version)
        return self.page(version, self.answers_with)

    def get_serializer_context(self) -> dict[str, Any]:
        more = {"address_of": self._address_of} if self._with_addresses_of else {}
        return {**super().get_serializer_context(), **more}

    def _address_of(self, path: str) -> str:
        assert self._with_addresses_of is not None
        return selectors.download_url(self._with_addresses_of, path, content_type=content_type_of(path))


class EntriesView(VersionStoreView):
    """What lies in one folder of a version, and how much lies below each of its folders."""

    pagination_class = ByFolder

    def get(self, request: Request, version_id: UUID) -> Response:
        return self.page((self.version(version_id), request.query_params.get("folder", "")), self.answers_with)


class ContentView(VersionStoreView):
    """The bytes of a file: a redirect to a short-lived address."""

    def get(self, request: Request, version_id: UUID) -> HttpResponseRedirect:
        version = self.version(version_id)
        file = selectors.file_for(version, self.wanted_path())
        url = selectors.download_url(version, file.path, content_type=content_type_of(file.path))
        self.note_download(version)
        return HttpResponseRedirect(url)


class ArchiveView(VersionStoreView):
    """All files of a version as one zip, made while it is sent."""

    def get(self, request: Request, version_id: UUID) -> StreamingHttpResponse:
        version = self.version(version_id)
        name = f"{selectors.parent_of(version).name}-{version.number}.zip"
        self.note_download(version)
        return archive_response(request._request, name, files_aside(version.upload_id, version.key_prefix))
