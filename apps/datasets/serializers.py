"""The JSON of datasets."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.uploads.versioned.selectors import newest_of
from apps.uploads.versioned.serializers import CollectionSerializer, FileSerializer, VersionSerializer


class FileFaultSerializer(serializers.Serializer[Any]):
    """A file that was damaged when it came."""

    path = serializers.CharField()
    fault = serializers.CharField()


class DatasetVersionSerializer(VersionSerializer):
    """A version of a dataset. `records` is null where no file has a format whose records are counted."""

    dataset = serializers.UUIDField(source="parent_id")
    records = serializers.IntegerField(allow_null=True)
    problems = FileFaultSerializer(many=True, help_text="Damaged files, the first hundred.")
    source_job = serializers.UUIDField(allow_null=True, help_text="The job that published it; null: it was uploaded.")


class DatasetSerializer(CollectionSerializer):
    """A dataset with its newest version."""

    latest = serializers.SerializerMethodField()

    @extend_schema_field(DatasetVersionSerializer(allow_null=True))
    def get_latest(self, dataset: Any) -> Any:
        newest = newest_of(dataset)
        return None if newest is None else DatasetVersionSerializer(newest).data


class DatasetFileSerializer(FileSerializer):
    """One file, with what was found in it."""

    records = serializers.IntegerField(allow_null=True)
    fault = serializers.CharField()


class TableSerializer(serializers.Serializer[Any]):
    columns = serializers.ListField(child=serializers.CharField())
    rows = serializers.ListField(child=serializers.ListField(child=serializers.CharField()))


@extend_schema_field({"oneOf": [{"type": "string"}, {"type": "number"}]})
class SampleValueField(serializers.Field[Any, Any, Any, Any]):
    def to_representation(self, value: Any) -> Any:
        return value


class SampleFeatureSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    dtype = serializers.CharField(
        help_text="bytes, float or int64; of an array that `dataset.json` describes: the type of its items."
    )
    shape = serializers.ListField(child=serializers.IntegerField())
    values = serializers.ListField(child=SampleValueField(), help_text="The first ten.")
    image = serializers.CharField(help_text="A small image as a data URL, or empty.")


class RecordSampleSerializer(serializers.Serializer[Any]):
    index = serializers.IntegerField()
    offset = serializers.IntegerField(help_text="The byte at which the record begins.")
    size = serializers.IntegerField()
    features = SampleFeatureSerializer(many=True)
    note = serializers.CharField()


class FeatureSummarySerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    dtype = serializers.CharField()
    shape = serializers.ListField(child=serializers.IntegerField(), help_text="-1 where the length differs.")


class LabelCountsSerializer(serializers.Serializer[Any]):
    feature = serializers.CharField()
    counts = serializers.DictField(child=serializers.IntegerField())
    records = serializers.IntegerField(help_text="How many records were looked at.")
    complete = serializers.BooleanField(help_text="Whether those are all of the file's.")


class DamageSerializer(serializers.Serializer[Any]):
    record = serializers.IntegerField()
    offset = serializers.IntegerField()
    message = serializers.CharField()


class ArraySerializer(serializers.Serializer[Any]):
    """A NumPy array; the first values are the table of the preview."""

    dtype = serializers.CharField()
    shape = serializers.ListField(child=serializers.IntegerField())
    order = serializers.CharField(help_text="C or Fortran.")
    pictures = serializers.ListField(child=serializers.CharField(), help_text="Small images as data URLs.")
    note = serializers.CharField(help_text="Why values are not shown, or empty.")
    problem = serializers.CharField(help_text="What is wrong with the file, or empty.")


class PreviewSerializer(serializers.Serializer[Any]):
    """What a file looks like; `kind` says which of the other fields is filled."""

    path = serializers.CharField()
    size = serializers.IntegerField()
    kind = serializers.ChoiceField(choices=["image", "text", "table", "tfrecord", "array", "binary"])
    format = serializers.CharField()
    records = serializers.IntegerField(allow_null=True)
    url = serializers.CharField(help_text="For an image: a URL of its content, valid for some minutes.")
    text = serializers.CharField()
    table = TableSerializer(allow_null=True)
    samples = RecordSampleSerializer(many=True)
    features = FeatureSummarySerializer(many=True)
    labels = LabelCountsSerializer(allow_null=True)
    damage = DamageSerializer(allow_null=True)
    array = ArraySerializer(allow_null=True)
    truncated = serializers.BooleanField(help_text="Whether there is more than is shown.")


class CorruptSerializer(serializers.Serializer[Any]):
    path = serializers.CharField()
    expected = serializers.CharField()
    found = serializers.CharField()
    message = serializers.CharField()


class CheckResultSerializer(serializers.Serializer[Any]):
    """Files whose bytes were read and compared. Where `next` is not null, continue with `?after=` it. `unread`: paths
    of files that take too long to be read in one request; they were not compared."""

    checked = serializers.IntegerField()
    bytes = serializers.IntegerField()
    corrupt = CorruptSerializer(many=True)
    unread = serializers.ListField(child=serializers.CharField())
    next = serializers.CharField(allow_null=True)
