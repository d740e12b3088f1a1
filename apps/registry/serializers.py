"""The JSON of models and their versions."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.api.audience import audience
from apps.api.serializers import StrictSerializer
from apps.registry.models import ModelVersion, Stage
from apps.stores import storage
from apps.uploads.manifest import ADDRESS_LIFE
from apps.uploads.versioned.selectors import files_of, newest_of
from apps.uploads.versioned.serializers import CollectionSerializer, FileSerializer
from yardmaster.formats.model_files import ModelFormat


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
    deleted_at = serializers.DateTimeField(allow_null=True)

    def get_job_exists(self, version: ModelVersion) -> bool:
        return version.job_id is not None


class ModelSerializer(CollectionSerializer):
    """A named model with its newest version."""

    updated_at = serializers.DateTimeField()
    deleted_at = serializers.DateTimeField(allow_null=True)
    latest = serializers.SerializerMethodField()

    @extend_schema_field(ModelVersionSerializer(allow_null=True))
    def get_latest(self, model: Any) -> Any:
        newest = newest_of(model)
        return None if newest is None else ModelVersionSerializer(newest).data


class TensorSerializer(serializers.Serializer[Any]):
    """An input or output."""

    name = serializers.CharField()
    dtype = serializers.CharField(allow_blank=True)
    shape = serializers.ListField(
        child=serializers.IntegerField(allow_null=True),
        allow_null=True,
        help_text="Null: of unknown rank. A dimension that is null has any length.",
    )


class SignatureSerializer(serializers.Serializer[Any]):
    """A way to call the model."""

    name = serializers.CharField()
    method = serializers.CharField(allow_blank=True)
    inputs = TensorSerializer(many=True)
    outputs = TensorSerializer(many=True)


class ContentsSerializer(serializers.Serializer[Any]):
    """What the files say of themselves. `path`: the file that was read."""

    format = serializers.ChoiceField(choices=[one.value for one in ModelFormat])
    path = serializers.CharField(allow_blank=True)
    framework = serializers.CharField(allow_blank=True)
    framework_version = serializers.CharField(allow_blank=True)
    tags = serializers.ListField(child=serializers.CharField())
    signatures = SignatureSerializer(many=True)
    problem = serializers.CharField(allow_blank=True, help_text="Why it cannot be read; empty where it can.")


class ModelVersionDetailSerializer(ModelVersionSerializer):
    """A version with what it was made of and what its job measured."""

    contents = ContentsSerializer(allow_null=True, help_text="Null: not read yet.")
    source = serializers.JSONField()  # type: ignore[assignment]  # a field of that name, not the argument
    metrics = MetricSerializer(many=True)


class StageChangeSerializer(serializers.Serializer[Any]):
    """A version was given a stage, or lost it."""

    version = serializers.IntegerField(source="number")
    before = serializers.ChoiceField(choices=Stage.choices)
    after = serializers.ChoiceField(choices=Stage.choices)
    by = serializers.CharField(source="by.username", default=None, allow_null=True)
    at = serializers.DateTimeField()
    note = serializers.CharField()


class NewStageSerializer(StrictSerializer):
    """The stage that a version gets; empty: none."""

    stage = serializers.ChoiceField(choices=Stage.choices, allow_blank=True)
    note = serializers.CharField(required=False, default="", allow_blank=True, max_length=1_000)


class ComparedRowSerializer(serializers.Serializer[Any]):
    """One property; `values` in the order of the versions, empty where a version has none."""

    name = serializers.CharField()
    values = serializers.ListField(child=serializers.CharField(allow_blank=True))
    differs = serializers.BooleanField()


class ComparedPartSerializer(serializers.Serializer[Any]):
    """Properties of one kind."""

    title = serializers.CharField()
    rows = ComparedRowSerializer(many=True)


class ComparisonSerializer(serializers.Serializer[Any]):
    """Versions side by side."""

    versions = ModelVersionSerializer(many=True)
    parts = ComparedPartSerializer(many=True)


class ModelFileSerializer(FileSerializer):
    """One file of a version of a model."""


class ExportedFileSerializer(FileSerializer):
    """A file, with an address to read it from."""

    url = serializers.URLField()  # type: ignore[assignment]  # always given here


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
                "url": storage().read_url(
                    one.key, ADDRESS_LIFE, filename=one.path.rpartition("/")[2], audience=audience()
                ),
            }
            for one in files_of(version)
        ]
