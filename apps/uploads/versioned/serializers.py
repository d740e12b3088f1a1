"""The JSON of named things, versions and files; each store adds its own fields."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.api.serializers import StrictSerializer
from apps.uploads.versioned.services import MAX_NAME


class NewCollectionSerializer(StrictSerializer):
    """A new thing, made of a complete upload. Without `namespace`: in the upload's."""

    name = serializers.CharField(max_length=MAX_NAME)
    namespace = serializers.CharField(required=False, max_length=63)
    description = serializers.CharField(required=False, default="", allow_blank=True, max_length=10_000)
    upload = serializers.UUIDField()


class CollectionChangesSerializer(StrictSerializer):
    """What of a thing may change."""

    name = serializers.CharField(required=False, max_length=MAX_NAME)
    description = serializers.CharField(required=False, allow_blank=True, max_length=10_000)


class NewVersionSerializer(StrictSerializer):
    """The next version, made of a complete upload."""

    upload = serializers.UUIDField()
    note = serializers.CharField(required=False, default="", allow_blank=True, max_length=1_000)


class VersionSerializer(serializers.Serializer[Any]):
    """A version. `added`, `changed` and `removed` count files against the version before."""

    id = serializers.UUIDField()
    number = serializers.IntegerField()
    note = serializers.CharField()
    size = serializers.IntegerField(help_text="Bytes of all files.")
    files = serializers.IntegerField(source="file_count")
    added = serializers.IntegerField()
    changed = serializers.IntegerField()
    removed = serializers.IntegerField()
    created_by = serializers.CharField(source="created_by.username", default=None, allow_null=True)
    created_at = serializers.DateTimeField()


class CollectionSerializer(serializers.Serializer[Any]):
    """A named thing."""

    id = serializers.UUIDField()
    namespace = serializers.UUIDField(source="namespace_id")
    namespace_slug = serializers.CharField(source="namespace.slug")
    name = serializers.CharField()
    description = serializers.CharField()
    created_by = serializers.CharField(source="created_by.username", default=None, allow_null=True)
    created_at = serializers.DateTimeField()


class FolderEntrySerializer(serializers.Serializer[Any]):
    """A folder, whose path ends in `/`, with all that lies below it; or a file."""

    name = serializers.CharField()
    path = serializers.CharField()
    is_folder = serializers.BooleanField()
    files = serializers.IntegerField(help_text="Files below the folder; 1 for a file.")
    size = serializers.IntegerField(help_text="Bytes of these files.")


class FileSerializer(serializers.Serializer[Any]):
    """One file of a version."""

    path = serializers.CharField()
    size = serializers.IntegerField()
    sha256 = serializers.CharField()
    url = serializers.SerializerMethodField(
        help_text="With `addresses=1` a short-lived URL of the file's content, else null."
    )

    @extend_schema_field(serializers.URLField(allow_null=True))
    def get_url(self, file: Any) -> str | None:
        address_of = self.context.get("address_of")
        return address_of(file.path) if address_of else None
