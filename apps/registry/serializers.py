"""The JSON of models."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.registry.models import Model
from apps.stores import storage
from apps.uploads.manifest import ADDRESS_LIFE


class ModelSerializer(serializers.ModelSerializer[Model]):
    """A model that a job produced."""

    namespace = serializers.UUIDField(source="namespace_id")
    job = serializers.UUIDField(source="job_id")
    file_count = serializers.SerializerMethodField()

    class Meta:
        model = Model
        fields = [
            "id",
            "namespace",
            "job",
            "attempt",
            "name",
            "size",
            "stopped",
            "file_count",
            "created_at",
            "completed_at",
        ]
        read_only_fields = fields

    def get_file_count(self, model: Model) -> int:
        return len(model.files)


class ModelFileSerializer(serializers.Serializer[Any]):
    """A file, with an address to read it from for an hour."""

    path = serializers.CharField()
    size = serializers.IntegerField()
    sha256 = serializers.CharField()
    url = serializers.URLField()


class ModelWithFilesSerializer(ModelSerializer):
    """A model with its files."""

    files = serializers.SerializerMethodField()

    class Meta(ModelSerializer.Meta):
        fields = [*ModelSerializer.Meta.fields, "files"]
        read_only_fields = fields

    @extend_schema_field(ModelFileSerializer(many=True))
    def get_files(self, model: Model) -> list[dict[str, Any]]:
        return [
            {
                "path": one["path"],
                "size": one["size"],
                "sha256": one["sha256"],
                "url": storage().read_url(one["key"], ADDRESS_LIFE, filename=one["path"].rpartition("/")[2]),
            }
            for one in model.files
        ]
