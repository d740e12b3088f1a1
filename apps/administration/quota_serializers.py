"""The JSON of the quotas of all namespaces, and of changing many at once."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.administration.namespace_serializers import (
    BytesField,
    CpuField,
    HardLimitsSerializer,
    LimitsByNameField,
    LimitsSerializer,
)
from apps.administration.quota_bulk import Changes, Defaults
from apps.api.serializers import StrictSerializer
from apps.errors import Invalid
from apps.namespaces.models import ScheduledQuota
from apps.namespaces.quota_models import LONGEST_REASON, Kind
from yardmaster.errors import Problem

_UNLIMITED = "null: unlimited. Omitted: unchanged."


class ChangesByNameField(LimitsByNameField):
    """Limits by name, of which null takes one away."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, dict):
            self.fail("invalid")
        if len(data) > self.most_names:
            self.fail("many", most=self.most_names)
        gone = {name: None for name, limit in data.items() if limit is None}
        super().to_internal_value(dict.fromkeys(gone, 0))
        kept = super().to_internal_value({name: limit for name, limit in data.items() if limit is not None})
        return {**gone, **kept}


class ChangesSerializer(StrictSerializer):
    """The limits that change; all others stay."""

    cpu = CpuField(allow_null=True, required=False, help_text=f"Cores. {_UNLIMITED}")
    memory = BytesField(allow_null=True, required=False, help_text=f"Bytes. {_UNLIMITED}")
    gpus = serializers.IntegerField(allow_null=True, required=False, min_value=0, max_value=10**6, help_text=_UNLIMITED)
    storage = BytesField(allow_null=True, required=False, help_text=f"Bytes. {_UNLIMITED}")
    files = serializers.IntegerField(
        allow_null=True, required=False, min_value=0, max_value=10**12, help_text=_UNLIMITED
    )
    running_jobs = serializers.IntegerField(
        allow_null=True, required=False, min_value=0, max_value=10**6, help_text=_UNLIMITED
    )
    logs = BytesField(allow_null=True, required=False, help_text=f"Bytes of what tasks print. {_UNLIMITED}")
    sessions = serializers.IntegerField(
        allow_null=True, required=False, min_value=0, max_value=10**6, help_text=f"At once. {_UNLIMITED}"
    )
    queued_jobs = serializers.IntegerField(
        allow_null=True, required=False, min_value=0, max_value=10**6, help_text=f"Waiting at once. {_UNLIMITED}"
    )
    extended = ChangesByNameField(
        required=False, help_text="Other resources by name; null takes the limit away. Those not named stay."
    )
    priority_ceiling = serializers.IntegerField(
        required=False, min_value=0, max_value=1000, help_text="Omitted: unchanged."
    )


class ManySerializer(StrictSerializer):
    """What changes of which namespaces: limits, or all of them by the defaults."""

    namespaces = serializers.ListField(
        child=serializers.UUIDField(), allow_empty=False, max_length=2000, help_text="Ids of the namespaces."
    )
    changes = ChangesSerializer(required=False, help_text="The limits that change. This or `defaults`.")
    defaults = serializers.BooleanField(
        default=False, help_text="Set every limit to what a new namespace of its kind gets."
    )
    reason = serializers.CharField(
        max_length=LONGEST_REASON, help_text="Why. Members read it in the history of their namespace's quota."
    )

    def asked(self) -> Changes | Defaults:
        """What was asked for. Raises `Invalid` where both are, or neither is."""
        data: dict[str, Any] = self.validated_data
        if data["defaults"] == ("changes" in data):
            message = "Either changes says the limits, or defaults is true."
            raise Invalid([Problem("changes", "conflict", message, "Write one of them.")])
        return Defaults() if data["defaults"] else data["changes"]


class ScheduleSerializer(ManySerializer):
    """Limits that hold from one time to another."""

    starts = serializers.DateTimeField(
        required=False, default=None, allow_null=True, help_text="Without a zone: UTC. null: now."
    )
    ends = serializers.DateTimeField(help_text="Then the limits are as before. At most two years from now.")


class LimitsByKeyField(serializers.DictField):
    """Limits by the fields of a quota and the names of other resources."""

    child = serializers.FloatField(allow_null=True)


class ScheduledSerializer(serializers.ModelSerializer[ScheduledQuota]):
    """Limits that are to hold, or hold, for a while."""

    namespace = serializers.UUIDField(source="namespace_id")
    slug = serializers.CharField(source="namespace.slug")
    limits = LimitsByKeyField(help_text="By the fields of a quota, and other resources by name. null: unlimited.")
    starts = serializers.DateTimeField(source="starts_at")
    ends = serializers.DateTimeField(source="ends_at")
    made_by = serializers.CharField(
        source="made_by.username", default=None, allow_null=True, help_text="null: a user who was removed."
    )
    in_force = serializers.SerializerMethodField(help_text="Whether it has begun and is not over.")

    class Meta:
        model = ScheduledQuota
        fields = ["id", "namespace", "slug", "limits", "starts", "ends", "reason", "made_at", "made_by", "in_force"]
        read_only_fields = fields

    def get_in_force(self, row: ScheduledQuota) -> bool:
        return row.begun_at is not None and row.over_at is None


class AllLimitsSerializer(HardLimitsSerializer):
    """Every limit of a quota."""

    extended = serializers.DictField(child=serializers.IntegerField(), help_text="Of other resources, by name.")
    priority_ceiling = serializers.IntegerField()


class DefaultsSerializer(serializers.Serializer[Any]):
    """What a new namespace of a kind may hold."""

    kind = serializers.ChoiceField(choices=Kind.choices)
    limits = AllLimitsSerializer()
    changed_at = serializers.DateTimeField(allow_null=True, help_text="null: as the settings say.")
    changed_by = serializers.CharField(help_text="Empty: as the settings say, or a user who was removed.")


class NewDefaultsSerializer(LimitsSerializer):
    """Every limit of a new namespace, and why it changes."""

    reason = serializers.CharField(max_length=LONGEST_REASON, help_text="Kept in the audit log.")


class BulkSerializer(ManySerializer):
    """A change of the quotas of many namespaces."""

    preview = serializers.BooleanField(
        default=False, help_text="Only say what would change; nothing is saved, and the answer has `seen`."
    )
    seen = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=64,
        help_text="`seen` of a preview: where a limit was changed since, 409 `quotas_changed`.",
    )


class MovedSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="The limit, in words.")
    before = serializers.FloatField(allow_null=True, help_text="null: unlimited.")
    after = serializers.FloatField(allow_null=True, help_text="null: unlimited.")
    held = serializers.FloatField(help_text="What the namespace holds now.")
    is_below = serializers.BooleanField(
        help_text="The new limit is below what is held: nothing is stopped, nothing new starts until less is held."
    )


class PlannedSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField(source="row.pk")
    slug = serializers.CharField(source="row.slug")
    moved = MovedSerializer(many=True)


class PlanSerializer(serializers.Serializer[Any]):
    """What a change does."""

    changed = PlannedSerializer(many=True, source="planned", help_text="The namespaces of which a limit changes.")
    unchanged = serializers.IntegerField(help_text="How many of them have these limits already.")
    below = serializers.IntegerField(help_text="In how many a new limit is below what is held.")
    seen = serializers.CharField(help_text="Stands for the limits before; give it back to detect edits by others.")
    unknown = serializers.ListField(
        child=serializers.CharField(), help_text="Resources to be limited that no engine has: a hint, not an error."
    )
    applied = serializers.BooleanField(help_text="Whether it was saved.")


class CellSerializer(serializers.Serializer[Any]):
    used = serializers.FloatField(help_text="What running jobs hold; of storage, files and logs what is stored.")
    reserved = serializers.FloatField(
        help_text="What jobs hold that start and do not run yet; of storage, uploads that are under way. Both count."
    )
    hard = serializers.FloatField(allow_null=True, help_text="null: unlimited.")


class QuotaRowSerializer(serializers.Serializer[Any]):
    """A namespace in the table of all quotas."""

    id = serializers.UUIDField(source="pk")
    slug = serializers.CharField()
    title = serializers.CharField()
    personal = serializers.BooleanField(source="is_personal")
    resources = serializers.DictField(
        child=CellSerializer(), source="cells", help_text="By the fields of a quota, and other resources by name."
    )
