"""The JSON of the quotas of all namespaces, and of changing many at once."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.administration.namespace_serializers import BytesField, CpuField, LimitsByNameField
from apps.administration.quota_bulk import LONGEST_REASON
from apps.api.serializers import StrictSerializer

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


class BulkSerializer(StrictSerializer):
    """A change of the quotas of many namespaces."""

    namespaces = serializers.ListField(
        child=serializers.UUIDField(), allow_empty=False, max_length=2000, help_text="Ids of the namespaces."
    )
    changes = ChangesSerializer(help_text="The limits that change.")
    reason = serializers.CharField(
        max_length=LONGEST_REASON, help_text="Why. Members read it in the history of their namespace's quota."
    )
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
    applied = serializers.BooleanField(help_text="Whether it was saved.")


class CellSerializer(serializers.Serializer[Any]):
    used = serializers.FloatField()
    reserved = serializers.FloatField()
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
