"""The JSON that tasks send and get. Lenient where a newer runner may say more: unknown keys are passed over."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.jobs.state.agreed import LONGEST_NAME, LONGEST_VALUE
from apps.jobs.state.outputs import OUTPUTS_AT_ONCE
from apps.uploads.serializers import DeclaredFilesField, UploadSerializer
from yardmaster.job.spec import InputMode, InputShare, InputSource, Role

_ROLES = [(one.value, one.value) for one in Role]
_LARGEST = 2**63 - 1
MOST_SCALARS = 1_000


class WhichTaskSerializer(serializers.Serializer[Any]):
    """Which task of the job."""

    role = serializers.ChoiceField(choices=_ROLES)
    index = serializers.IntegerField(min_value=0, max_value=2**31 - 1)


class WhichFilesSerializer(WhichTaskSerializer):
    """Which files of a version: those behind this path."""

    after = serializers.CharField(required=False, default="", allow_blank=True, max_length=512, trim_whitespace=False)
    most = serializers.IntegerField(required=False, default=1000, min_value=1, max_value=1000)


class AgreedSerializer(WhichTaskSerializer):
    """What the tasks of an attempt agree on, and what this one would have."""

    name = serializers.CharField(max_length=LONGEST_NAME)
    value = serializers.CharField(max_length=LONGEST_VALUE, allow_blank=True)


class AgreedValueSerializer(serializers.Serializer[Any]):
    value = serializers.CharField(help_text="The first one that a task of the attempt gave.")


class RemoteFileSerializer(serializers.Serializer[Any]):
    path = serializers.CharField()
    size = serializers.IntegerField()
    sha256 = serializers.CharField()
    url = serializers.CharField()


class FilesPageSerializer(serializers.Serializer[Any]):
    """Some files of a version, by path."""

    files = RemoteFileSerializer(many=True)
    next = serializers.CharField(allow_null=True, help_text="The path behind which more files stand (`after`).")


class CodeOrderSerializer(FilesPageSerializer):
    version = serializers.UUIDField()


class InputOrderSerializer(CodeOrderSerializer):
    name = serializers.CharField()
    dataset = serializers.CharField(help_text="What the dataset is called.")
    mode = serializers.ChoiceField(choices=[one.value for one in InputMode])
    share = serializers.ChoiceField(choices=[one.value for one in InputShare])
    stands_for = serializers.CharField(help_text="The s3:// path whose place it takes in scripts. May be empty.")
    source = serializers.ChoiceField(  # type: ignore[assignment]
        choices=[one.value for one in InputSource],
        help_text="With volume, files are empty: they are read in place.",
    )


class CheckpointOrderSerializer(serializers.Serializer[Any]):
    step = serializers.IntegerField()
    files = RemoteFileSerializer(many=True)


class SecretOrderSerializer(serializers.Serializer[Any]):
    """A secret's value, for the variable, the file, or for the file whose path the variable has."""

    name = serializers.CharField()
    env = serializers.CharField(help_text="May be empty.")
    file = serializers.CharField(help_text="May be empty.")
    value = serializers.CharField()


class LimitsSerializer(serializers.Serializer[Any]):
    line_bytes = serializers.IntegerField()
    spool_bytes = serializers.IntegerField()
    away_seconds = serializers.IntegerField()
    stream_bytes = serializers.IntegerField(help_text="Of streamed shards that the tasks of a machine keep.")
    working_bytes = serializers.IntegerField(help_text="Of files in the working folder that this task keeps.")
    working_files = serializers.IntegerField(help_text="How many files these are.")


class SparkOrderSerializer(serializers.Serializer[Any]):
    """The registered Spark cluster that the job uses; absent where it uses none."""

    master = serializers.CharField(help_text="`spark://HOST:PORT[,HOST:PORT]`")
    driver_address = serializers.CharField(
        help_text="By which executors reach the driver. Empty: the address of the task itself."
    )
    python = serializers.CharField(help_text="The interpreter of the executors.")
    secret = serializers.CharField(help_text="`spark.authenticate.secret`. Empty: the cluster has none.")
    url = serializers.CharField(help_text="Where executors reach the portal.")


class OrderSerializer(serializers.Serializer[Any]):
    """What the task is to do. The addresses are good for 15 minutes."""

    agrees = serializers.BooleanField(help_text="The tasks of the attempt may agree on something.")
    was_cut_off = serializers.BooleanField(help_text="An earlier start sent lines and not that they were all.")

    job = serializers.UUIDField()
    attempt = serializers.IntegerField()
    spec = serializers.DictField()
    code = CodeOrderSerializer()
    inputs = InputOrderSerializer(many=True)
    secrets = SecretOrderSerializer(many=True)
    checkpoint = CheckpointOrderSerializer(allow_null=True)
    limits = LimitsSerializer()
    spark = SparkOrderSerializer(required=False)


class ProgressSerializer(serializers.Serializer[Any]):
    step = serializers.IntegerField(min_value=0, max_value=_LARGEST)
    total = serializers.IntegerField(required=False, min_value=0, max_value=_LARGEST)
    epoch = serializers.IntegerField(required=False, min_value=0, max_value=_LARGEST)
    epochs = serializers.IntegerField(required=False, min_value=0, max_value=_LARGEST)


class UsageSerializer(serializers.Serializer[Any]):
    cpu_seconds = serializers.FloatField(required=False, min_value=0)
    memory = serializers.IntegerField(required=False, min_value=0, max_value=_LARGEST)
    peak_memory = serializers.IntegerField(required=False, min_value=0, max_value=_LARGEST)


@extend_schema_field(
    {
        "type": "array",
        "maxItems": MOST_SCALARS,
        "items": {
            "type": "object",
            "required": ["run", "tag", "step", "time", "value"],
            "properties": {
                "run": {"type": "string"},
                "tag": {"type": "string"},
                "step": {"type": "integer"},
                "time": {"type": "number"},
                "value": {"type": ["number", "null"]},
                "not_finite": {"type": "string", "enum": ["nan", "inf", "-inf"]},
            },
        },
    }
)
class ScalarsField(serializers.Field[Any, Any, Any, Any]):
    """Points of curves. By hand, since a nested serializer is slow for a thousand."""

    default_error_messages = {
        "shape": f"Expected a list of at most {MOST_SCALARS} points.",
        "entry": "Point {at} lacks run, tag, step, time or value, or one of them is of another kind.",
    }

    def to_internal_value(self, data: Any) -> list[dict[str, Any]]:
        if not isinstance(data, list) or len(data) > MOST_SCALARS:
            self.fail("shape")
        for at, one in enumerate(data):
            if not _is_point(one):
                self.fail("entry", at=at)
        return [{**one, "value": _finite(one["value"]), "not_finite": _not_finite(one)} for one in data]


def _is_point(one: object) -> bool:
    return (
        isinstance(one, dict)
        and isinstance(one.get("run"), str)
        and isinstance(one.get("tag"), str)
        and type(one.get("step")) is int
        and abs(one["step"]) <= _LARGEST
        and _is_number(one.get("time"))
        and ("value" in one and (one["value"] is None or _is_number(one["value"])))
    )


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= 1e308


def _not_finite(one: Mapping[str, Any]) -> str:
    """What a point is that has no value; empty where that is not said, or is no word for it."""
    said = one.get("not_finite")
    return said if one["value"] is None and said in ("nan", "inf", "-inf") else ""


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


class UnsavedSerializer(serializers.Serializer[Any]):
    """Why something is not saved, in words; empty: it is."""

    outputs = serializers.CharField(required=False, allow_blank=True, max_length=1_000)
    model = serializers.CharField(required=False, allow_blank=True, max_length=1_000)
    left_out = serializers.CharField(
        required=False, allow_blank=True, max_length=1_000, help_text="Which files of the working folder are not kept."
    )


class StalledSerializer(serializers.Serializer[Any]):
    """A script that makes no progress, prints nothing and uses next to no processor time."""

    since = serializers.FloatField(min_value=0, max_value=4e9, help_text="Unix time.")
    peer = serializers.CharField(allow_blank=True, max_length=300, help_text="The task that it says it waits for.")


class ExecutorsSerializer(serializers.Serializer[Any]):
    """A Spark driver that waits for executors of a registered cluster."""

    given = serializers.IntegerField(min_value=0, max_value=2**31 - 1)
    wanted = serializers.IntegerField(min_value=1, max_value=2**31 - 1)
    since = serializers.FloatField(min_value=0, max_value=4e9, help_text="Unix time.")


class ReportSerializer(WhichTaskSerializer):
    """How the task is now."""

    restart = serializers.IntegerField(min_value=0, max_value=2**31 - 1, default=0)
    state = serializers.ChoiceField(choices=["staging", "running", "held", "uploading", "ended"])
    exit_code = serializers.IntegerField(required=False, allow_null=True, min_value=-(2**31), max_value=2**31 - 1)
    reason = serializers.CharField(required=False, allow_blank=True, max_length=63)
    message = serializers.CharField(required=False, allow_blank=True, max_length=4_000)
    held_until = serializers.FloatField(required=False, min_value=0, max_value=4e9, help_text="Unix time.")
    progress = ProgressSerializer(required=False)
    usage = UsageSerializer(required=False)
    scalars = ScalarsField(required=False)
    unsaved = UnsavedSerializer(required=False)
    stalled = StalledSerializer(required=False, allow_null=True)
    executors = ExecutorsSerializer(required=False, allow_null=True)


class ShellWantedSerializer(serializers.Serializer[Any]):
    """A terminal that a user waits for: the runner opens it (docs/protocols.md, section 7)."""

    id = serializers.UUIDField()


class ReportAnswerSerializer(serializers.Serializer[Any]):
    stop = serializers.BooleanField(help_text="Whether the script is to be stopped.")
    watched = serializers.BooleanField(help_text="Whether a TensorBoard shows the job now.")
    followed = serializers.BooleanField(help_text="Whether the job's log is being read as it comes.")
    shells = ShellWantedSerializer(many=True)
    release = serializers.BooleanField(help_text="Whether a task that is held open after its failure is to end.")
    stacks = serializers.IntegerField(help_text="How often users have asked for the stacks of the task's threads.")


class NewModelSerializer(serializers.Serializer[Any]):
    files = DeclaredFilesField()
    stopped = serializers.BooleanField(default=False, help_text="The task was asked to stop: its work was not done.")
    continues = serializers.UUIDField(
        default=None, allow_null=True,
        help_text="An upload of the same attempt and of the same files, begun before: it is returned if it is open.",
    )  # fmt: skip
    found_in = serializers.CharField(
        default="", allow_blank=True, max_length=512,
        help_text="Where in the working folder it was; empty: it is of the model directory.",
    )  # fmt: skip


class NewCheckpointSerializer(serializers.Serializer[Any]):
    files = DeclaredFilesField()
    step = serializers.IntegerField(min_value=0, max_value=_LARGEST)


class BegunUploadSerializer(serializers.Serializer[Any]):
    upload = UploadSerializer()


class WhoseOutputsSerializer(WhichTaskSerializer):
    """Of which folder: that of a task, or the one that all tasks share."""

    shared = serializers.BooleanField(default=False, help_text="All tasks of the attempt share their log directory.")


class NewOutputsSerializer(WhoseOutputsSerializer):
    files = DeclaredFilesField(help_text=f"At most {OUTPUTS_AT_ONCE} files.")
    starts = serializers.ListField(
        child=serializers.IntegerField(min_value=0, max_value=_LARGEST),
        default=list,
        max_length=OUTPUTS_AT_ONCE,
        help_text="Per file: the byte with which the upload begins. More than 0 only for an event file whose earlier "
        "bytes the portal has. Default: 0.",
    )


class NewPublishedSerializer(WhichTaskSerializer):
    files = DeclaredFilesField(required=False, help_text="Left out: the task wrote nothing.")


class PublishedUploadSerializer(serializers.Serializer[Any]):
    upload = UploadSerializer(allow_null=True)


class EventFileSerializer(serializers.Serializer[Any]):
    path = serializers.CharField()
    size = serializers.IntegerField()


class EventFilesSerializer(serializers.Serializer[Any]):
    files = EventFileSerializer(many=True)
