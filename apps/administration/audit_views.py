"""The API of the audit: reading only, in pages or as a file."""

from __future__ import annotations

import ipaddress
from typing import cast

import django_filters
from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from django.urls import URLPattern, URLResolver, path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.accounts.models import User
from apps.administration.audit_actions import actions_of
from apps.administration.audit_export import FORMATS, export_response
from apps.administration.audit_selectors import addresses_hide, events_visible, from_address, with_words
from apps.audit.models import AuditEvent
from apps.errors import Invalid
from yardmaster.errors import Problem

_EXPORTED = {(200, "text/csv"): OpenApiTypes.STR, (200, "application/jsonl"): OpenApiTypes.STR}


class AuditEventSerializer(serializers.ModelSerializer[AuditEvent]):
    actor = serializers.UUIDField(source="actor_id", allow_null=True)
    namespace = serializers.UUIDField(source="namespace_id", allow_null=True)
    facts = serializers.DictField()
    count = serializers.IntegerField(
        help_text="How many times this happened within the minute or hour that the event covers."
    )

    class Meta:
        model = AuditEvent
        fields = [
            "id", "at", "actor", "actor_name", "action", "subject", "namespace", "facts", "address", "agent", "count",
        ]  # fmt: skip
        read_only_fields = fields


class AuditFilter(django_filters.FilterSet):  # type: ignore[misc]  # django-filter has no types
    actor = django_filters.UUIDFilter(field_name="actor_id")
    namespace = django_filters.UUIDFilter(field_name="namespace_id")
    action = django_filters.CharFilter(
        max_length=64, method="of_actions", help_text="One action, or with a dot at its end a group, such as `member.`."
    )
    subject = django_filters.CharFilter(max_length=200)
    actor_name = django_filters.CharFilter(max_length=150, lookup_expr="iexact")
    since = django_filters.IsoDateTimeFilter(field_name="at", lookup_expr="gte")
    until = django_filters.IsoDateTimeFilter(field_name="at", lookup_expr="lt")

    address = django_filters.CharFilter(
        method="of_address",
        help_text="The source address. Shows only events of which you may see the address.",
    )
    words = django_filters.CharFilter(max_length=200, method="of_words", help_text="Words in the facts.")

    class Meta:
        model = AuditEvent
        fields: list[str] = []

    def of_actions(self, rows: QuerySet[AuditEvent], name: str, value: str) -> QuerySet[AuditEvent]:
        return rows.filter(action__in=actions_of(value))

    def of_address(self, rows: QuerySet[AuditEvent], name: str, value: str) -> QuerySet[AuditEvent]:
        try:
            address = str(ipaddress.ip_address(value))
        except ValueError as error:
            problem = Problem(
                "address", "invalid", "This is not an IP address.", "Enter one such as 10.0.0.7.", value[:100]
            )
            raise Invalid([problem]) from error
        return from_address(rows, address, cast(User, self.request.user))

    def of_words(self, rows: QuerySet[AuditEvent], name: str, value: str) -> QuerySet[AuditEvent]:
        return with_words(rows, value)


class AuditView(ApiView):
    """Audit events, newest first."""

    queryset = AuditEvent.objects.none()
    filterset_class = AuditFilter
    scope = "admin"

    @extend_schema(responses=AuditEventSerializer(many=True))
    def get(self, request: Request) -> Response:
        rows = self.paginate_queryset(self.filter_queryset(events_visible(self.user))) or []
        shown = addresses_hide(list(rows))
        return self.get_paginated_response(AuditEventSerializer(shown, many=True).data)


_AS = OpenApiParameter("as", str, enum=list(FORMATS), description="The file format. Default: csv.")


class AuditExportView(ApiView):
    """Audit events as a file, newest first, up to the limit in the portal's settings."""

    queryset = AuditEvent.objects.none()
    filterset_class = AuditFilter
    scope = "admin"

    @extend_schema(parameters=[_AS], responses=_EXPORTED)
    def get(self, request: Request) -> StreamingHttpResponse:
        form = request.query_params.get("as", "csv")
        if form not in FORMATS:
            raise Invalid([Problem("as", "invalid", "Unknown file format.", "Use csv or jsonl.", form[:100])])
        return export_response(request._request, self.filter_queryset(events_visible(self.user)), form)


urlpatterns: list[URLPattern | URLResolver] = [
    path("audit/", AuditView.as_view(), name="audit"),
    path("audit/export/", AuditExportView.as_view(), name="audit-export"),
]
