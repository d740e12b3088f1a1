"""The API of what was used."""

from __future__ import annotations

from typing import Any

from django.urls import URLPattern, URLResolver, path
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.administration.usage_report import UsageReport, usage_report
from yardmaster.accounting import Hours


class UsageQuerySerializer(serializers.Serializer[Any]):
    """From when to when; a time without a zone is UTC."""

    namespace = serializers.CharField(required=False, default="", max_length=63)
    to = serializers.DateTimeField(required=False, default=None)

    def get_fields(self) -> dict[str, Any]:
        """`from` is no name in Python."""
        return {**super().get_fields(), "from": serializers.DateTimeField(required=False, default=None)}


class HoursSerializer(serializers.Serializer[Any]):
    cpu_hours = serializers.FloatField()
    memory_gib_hours = serializers.FloatField()
    gpu_hours = serializers.FloatField()
    jobs = serializers.IntegerField()


class UsageRowSerializer(HoursSerializer):
    namespace = serializers.UUIDField()
    namespace_slug = serializers.CharField()
    user = serializers.UUIDField(allow_null=True)
    username = serializers.CharField()
    engine = serializers.CharField()


class UsageReportSerializer(serializers.Serializer[Any]):
    to = serializers.DateTimeField()
    results = UsageRowSerializer(many=True)
    total = HoursSerializer()
    left_out = serializers.IntegerField()

    def get_fields(self) -> dict[str, Any]:
        return {"from": serializers.DateTimeField(), **super().get_fields()}


class UsageView(ApiView):
    """What namespaces have used: hours of what their jobs held, by namespace, user and engine, the largest first. Of
    those that you manage; administrators: of all, also of what was removed since. By default this month so far."""

    scope = "admin"
    pagination_class = None

    @extend_schema(
        parameters=[
            OpenApiParameter("namespace", str, description="Id or slug; without it all that you may see."),
            OpenApiParameter("from", str, description="Date and time (ISO 8601)."),
            OpenApiParameter("to", str, description="Date and time (ISO 8601)."),
        ],
        responses=UsageReportSerializer,
    )
    def get(self, request: Request) -> Response:
        query = UsageQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        asked = query.validated_data
        report = usage_report(self.user, asked["namespace"], asked["from"], asked["to"], timezone.now())
        return Response(UsageReportSerializer(_as_data(report)).data)


def _as_data(report: UsageReport) -> dict[str, Any]:
    rows = [
        {
            "namespace": whose.namespace_id, "namespace_slug": whose.namespace, "user": whose.user_id,
            "username": whose.user, "engine": whose.engine, **_hours(hours),
        }
        for whose, hours in report.rows
    ]  # fmt: skip
    total = _hours(report.total)
    return {"from": report.begin, "to": report.end, "results": rows, "total": total, "left_out": report.left_out}


def _hours(hours: Hours) -> dict[str, float]:
    return {
        "cpu_hours": round(hours.cpu, 6), "memory_gib_hours": round(hours.memory, 6),
        "gpu_hours": round(hours.gpus, 6), "jobs": hours.jobs,
    }  # fmt: skip


urlpatterns: list[URLPattern | URLResolver] = [
    path("usage/", UsageView.as_view(), name="usage"),
]
