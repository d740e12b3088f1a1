"""The JSON of services."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.hosting.state import STATES, Situation, situation_of
from apps.jobs.api.serializers import confirm_foreign_model_field
from apps.serving.models import Service
from yardmaster.quantity import NotAQuantity, parse_memory


@extend_schema_field({"oneOf": [{"type": "integer"}, {"type": "string"}]})
class MemoryField(serializers.Field[int, Any, int, Any]):
    """Bytes, or an amount such as `"2Gi"`."""

    default_error_messages = {
        "invalid": "Expected an amount of memory.",
        "range": "Expected an amount between 64Mi and 64Ti.",
    }

    def to_internal_value(self, data: Any) -> int:
        try:
            found = parse_memory(data)
        except NotAQuantity:
            self.fail("invalid")
        if not 64 << 20 <= found <= 1 << 46:
            self.fail("range")
        return found


class StartServiceSerializer(serializers.Serializer[Any]):
    """Which version to serve, and for how long."""

    model_version = serializers.UUIDField()
    idle_limit = serializers.IntegerField(
        required=False, allow_null=True, help_text="Seconds without a request after which it is stopped."
    )
    cpu = serializers.FloatField(required=False, allow_null=True, min_value=0.001, max_value=4096)
    memory = MemoryField(required=False, allow_null=True, help_text='Bytes, or an amount such as "2Gi".')
    engine = serializers.CharField(required=False, allow_blank=True, max_length=63)
    accept_never_fits = serializers.BooleanField(required=False, default=False)
    confirm_foreign_model = confirm_foreign_model_field()


class ExtendServiceSerializer(serializers.Serializer[Any]):
    """Another limit, or the same counted from now."""

    idle_limit = serializers.IntegerField(required=False, allow_null=True)


class ServiceSerializer(serializers.Serializer[Any]):
    """A version of a model that is served. Its state is as it was asked just now."""

    id = serializers.UUIDField()
    namespace = serializers.UUIDField(source="namespace_id")
    model = serializers.UUIDField(source="version.parent_id")
    model_name = serializers.CharField(source="version.parent.name")
    model_version = serializers.UUIDField(source="version_id")
    number = serializers.IntegerField(source="version.number")
    job = serializers.UUIDField(source="job_id", allow_null=True, help_text="Its log, quota and events are the job's.")
    state = serializers.SerializerMethodField()
    message = serializers.SerializerMethodField(help_text="What it waits for, or why it ended.")
    remedy = serializers.SerializerMethodField()
    stops_at = serializers.SerializerMethodField(help_text="When it is stopped unless it is used before.")
    stops_soon = serializers.SerializerMethodField()
    idle_limit = serializers.IntegerField(source="idle_seconds", help_text="Seconds.")
    requests = serializers.IntegerField()
    started_by = serializers.CharField(source="started_by.username", default=None, allow_null=True)
    started_at = serializers.DateTimeField()
    last_used_at = serializers.DateTimeField(allow_null=True)
    url = serializers.SerializerMethodField(help_text="TensorFlow Serving's REST API begins here: add /v1/models/…")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._known: dict[Any, Situation] = {}

    def _now(self, service: Service) -> Situation:
        """Asked once for all fields of a service."""
        if service.pk not in self._known:
            self._known[service.pk] = situation_of(service, timezone.now(), ask=self.context.get("ask", True))
        return self._known[service.pk]

    @extend_schema_field(serializers.ChoiceField(choices=STATES))
    def get_state(self, service: Service) -> str:
        return self._now(service).state.value

    def get_message(self, service: Service) -> str:
        return self._now(service).message

    def get_remedy(self, service: Service) -> str:
        return self._now(service).remedy

    @extend_schema_field(serializers.DateTimeField(allow_null=True))
    def get_stops_at(self, service: Service) -> Any:
        return self._now(service).stops_at

    def get_stops_soon(self, service: Service) -> bool:
        return self._now(service).stops_soon

    def get_url(self, service: Service) -> str:
        return f"/api/v1/services/{service.pk}"
