"""The API of the audit: reading only."""

from __future__ import annotations

import django_filters
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.api.views import ApiView
from apps.audit.models import AuditEvent
from apps.audit.selectors import events_visible


class AuditEventSerializer(serializers.ModelSerializer[AuditEvent]):
    actor = serializers.UUIDField(source="actor_id", allow_null=True)
    namespace = serializers.UUIDField(source="namespace_id", allow_null=True)
    facts = serializers.DictField()

    class Meta:
        model = AuditEvent
        fields = ["id", "at", "actor", "actor_name", "action", "subject", "namespace", "facts"]
        read_only_fields = fields


class AuditFilter(django_filters.FilterSet):  # type: ignore[misc]  # django-filter has no types
    actor = django_filters.UUIDFilter(field_name="actor_id")
    namespace = django_filters.UUIDFilter(field_name="namespace_id")
    action = django_filters.CharFilter(max_length=64)
    subject = django_filters.CharFilter(max_length=200)

    class Meta:
        model = AuditEvent
        fields: list[str] = []


class AuditView(ApiView):
    """Who did what, newest first."""

    queryset = AuditEvent.objects.none()
    filterset_class = AuditFilter
    scope = "admin"

    @extend_schema(responses=AuditEventSerializer(many=True))
    def get(self, request: Request) -> Response:
        return self.page(self.filter_queryset(events_visible(self.user)), AuditEventSerializer)
