"""The JSON of removals."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.api.serializers import StrictSerializer
from apps.removals.models import Data, Removal


class WishSerializer(StrictSerializer):
    """What shall become of jobs, logs, models, datasets and code."""

    data = serializers.ChoiceField(  # type: ignore[assignment]  # declared fields are taken off the class
        choices=Data.choices,
        default=Data.KEEP,
        help_text="keep: administrators can still read the data in the closed namespace. delete: permanently.",
    )


class LockWishSerializer(StrictSerializer):
    stop_jobs = serializers.BooleanField(
        default=False, help_text="Also stop the user's unfinished jobs, in every namespace."
    )


class LockedSerializer(serializers.Serializer[Any]):
    stopped_jobs = serializers.IntegerField(help_text="How many jobs are being stopped.")


class LeftSerializer(serializers.Serializer[Any]):
    """One thing that is still there, and why."""

    what = serializers.CharField()
    why = serializers.CharField()


class RemovalSerializer(serializers.ModelSerializer[Removal]):
    namespace = serializers.UUIDField(source="namespace_id")
    user = serializers.UUIDField(source="user_id", allow_null=True, help_text="null: a team's namespace.")
    asked_by = serializers.CharField(source="asked_by_name")
    left = LeftSerializer(
        many=True, help_text="While in progress: what the removal waits for. After it ended: what was kept, and why."
    )

    class Meta:
        model = Removal
        fields = [
            "id", "namespace", "slug", "user", "username", "data", "asked_by", "asked_at", "ended_at", "left",
        ]  # fmt: skip
        read_only_fields = fields
