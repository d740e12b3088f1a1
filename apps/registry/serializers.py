"""The JSON of models and their versions."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.registry.models import ModelVersion, Stage
from apps.stores import storage
from apps.uploads.manifest import ADDRESS_LIFE
from apps.uploads.versioned.selectors import files_of, newest_of
from apps.uploads.versioned.serializers import CollectionSerializer, FileSerializer


class MetricSerializer(serializers.Serializer[Any]):
    """The last value of a scalar of the job."""

    run = serializers.CharField()
    tag = serializers.CharField()
    step = serializers.IntegerField()
    value = serializers.FloatField(allow_null=True, help_text="Null: not a number, or infinite.")


class ModelVersionSerializer(serializers.Serializer[Any]):
    """A version of a model: what one attempt of a job exported."""

    id = serializers.UUIDField()
    model = serializers.UUIDField(source="parent_id")
    number = serializers.IntegerField()
    stage = serializers.ChoiceField(choices=Stage.choices, help_text="Empty: none.")
    size = serializers.IntegerField(help_text="Bytes of all files.")
    files = serializers.IntegerField(source="file_count")
    job = serializers.UUIDField(source="source_job", help_text="It stays when the job is deleted.")
    job_name = serializers.CharField()
    job_exists = serializers.SerializerMethodField()
    attempt = serializers.IntegerField()
    stopped = serializers.BooleanField(help_text="Written after the job was asked to stop.")
    created_by = serializers.CharField(source="created_by.username", default=None, allow_null=True)
    created_at = serializers.DateTimeField()

    def get_job_exists(self, version: ModelVersion) -> bool:
        return version.job_id is not None


class ModelSerializer(CollectionSerializer):
    """A named model with its newest version."""

    updated_at = serializers.DateTimeField()
    latest = serializers.SerializerMethodField()

    @extend_schema_field(ModelVersionSerializer(allow_null=True))
    def get_latest(self, model: Any) -> Any:
        newest = newest_of(model)
        return None if newest is None else ModelVersionSerializer(newest).data


class ModelVersionDetailSerializer(ModelVersionSerializer):
    """A version with what it was made of and what its job measured."""

    source = serializers.JSONField()  # type: ignore[assignment]  # a field of that name, not the argument
    metrics = MetricSerializer(many=True)


class ModelFileSerializer(FileSerializer):
    """One file of a version of a model."""


class ExportedFileSerializer(FileSerializer):
    """A file, with an address to read it from."""

    url = serializers.URLField()


class ExportedModelSerializer(serializers.Serializer[Any]):
    """What a job exported last, with its files."""

    id = serializers.UUIDField()
    namespace = serializers.UUIDField(source="parent.namespace_id")
    model = serializers.UUIDField(source="parent_id")
    name = serializers.CharField(source="parent.name")
    number = serializers.IntegerField()
    stage = serializers.ChoiceField(choices=Stage.choices, help_text="Empty: none.")
    job = serializers.UUIDField(source="source_job")
    attempt = serializers.IntegerField()
    size = serializers.IntegerField()
    stopped = serializers.BooleanField()
    file_count = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    completed_at = serializers.DateTimeField(source="created_at")
    files = serializers.SerializerMethodField()

    @extend_schema_field(ExportedFileSerializer(many=True))
    def get_files(self, version: ModelVersion) -> list[dict[str, Any]]:
        return [
            {
                "path": one.path,
                "size": one.size,
                "sha256": one.sha256,
                "url": storage().read_url(one.key, ADDRESS_LIFE, filename=one.path.rpartition("/")[2]),
            }
            for one in files_of(version)
        ]
