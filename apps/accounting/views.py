"""The API of what was used."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.urls import URLPattern, URLResolver, path
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounting.priced import price_list
from apps.accounting.report import GROUPS, USUAL, Asked, Row, UsageReport, usage_report
from apps.accounting.report_file import csv_response
from apps.accounting.serializers import HoursSerializer, hours_data
from apps.accounting.shown import job_hours
from apps.accounts.api_view import ApiView
from apps.jobs.api.job_views import JobAddress


class UsageQuerySerializer(serializers.Serializer[Any]):
    """From when to when; a time without a zone is UTC."""

    namespace = serializers.CharField(required=False, default="", max_length=63)
    to = serializers.DateTimeField(required=False, default=None)
    mine = serializers.BooleanField(required=False, default=False)
    group_by = serializers.CharField(required=False, default=",".join(USUAL), max_length=100)

    def get_fields(self) -> dict[str, Any]:
        """`from` is no name in Python."""
        return {**super().get_fields(), "from": serializers.DateTimeField(required=False, default=None)}

    def asked(self) -> Asked:
        said = self.validated_data
        by = tuple(word.strip() for word in said["group_by"].split(",") if word.strip())
        return Asked(said["namespace"], said["mine"], by, said["from"], said["to"])


class CountedHoursSerializer(HoursSerializer):
    jobs = serializers.IntegerField(allow_null=True, help_text="Null where use is grouped by time.")


class UsageRowSerializer(CountedHoursSerializer):
    namespace = serializers.UUIDField(required=False)
    namespace_slug = serializers.CharField(required=False)
    user = serializers.UUIDField(allow_null=True, required=False)
    username = serializers.CharField(required=False)
    engine = serializers.CharField(required=False)
    role = serializers.CharField(required=False)
    job = serializers.UUIDField(required=False)
    job_name = serializers.CharField(required=False)
    day = serializers.DateField(required=False)
    month = serializers.DateField(required=False, help_text="Its first day.")


class UsageReportSerializer(serializers.Serializer[Any]):
    to = serializers.DateTimeField()
    currency = serializers.CharField(allow_blank=True)
    results = UsageRowSerializer(many=True)
    total = CountedHoursSerializer()
    left_out = serializers.IntegerField()

    def get_fields(self) -> dict[str, Any]:
        return {"from": serializers.DateTimeField(), **super().get_fields()}


class JobRoleHoursSerializer(HoursSerializer):
    role = serializers.CharField()
    measured_cpu_hours = serializers.FloatField(allow_null=True, help_text="What its tasks used; null: not measured.")
    measured_memory_gib_hours = serializers.FloatField(allow_null=True)


class JobUsageSerializer(serializers.Serializer[Any]):
    currency = serializers.CharField(allow_blank=True)
    results = JobRoleHoursSerializer(many=True)
    total = HoursSerializer()


_PARAMETERS = [
    OpenApiParameter("namespace", str, description="Id or slug; without it all that you may see."),
    OpenApiParameter("mine", bool, description="Only your own use; of all namespaces, or of this one."),
    OpenApiParameter(
        "group_by", str, description=f"Some of {', '.join(GROUPS)}, between commas. At most one of job, day and month."
    ),
    OpenApiParameter("from", str, description="Date and time (ISO 8601)."),
    OpenApiParameter("to", str, description="Date and time (ISO 8601)."),
]


class UsageView(ApiView):
    """What namespaces have used: hours of what their jobs held, by namespace, user and engine, the largest first. Of
    those that you manage, or of yourself; administrators: of all, also of what was removed since. By default this month
    so far."""

    scope = "admin"
    pagination_class = None

    def report(self, request: Request) -> UsageReport:
        query = UsageQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        return usage_report(self.user, query.asked(), timezone.now())

    @extend_schema(parameters=_PARAMETERS, responses=UsageReportSerializer)
    def get(self, request: Request) -> Response:
        return Response(UsageReportSerializer(_as_data(self.report(request))).data)


class UsageFileView(UsageView):
    """The same as a table for spreadsheets."""

    @extend_schema(parameters=_PARAMETERS, responses={(200, "text/csv"): OpenApiTypes.STR}, operation_id="usage_csv")
    def get(self, request: Request) -> HttpResponse:  # type: ignore[override]
        return csv_response("usage", lines_of(self.report(request)))


class JobUsageView(JobAddress):
    """What the job held, by role, all of its attempts together; and beside it what its tasks were measured to use."""

    pagination_class = None

    @extend_schema(responses=JobUsageSerializer)
    def get(self, request: Request, job_id: UUID) -> Response:
        found = job_hours(self.job(job_id), timezone.now())
        results = [
            {"role": one.role, **hours_data(one.use), "measured_cpu_hours": one.measured_cpu,
             "measured_memory_gib_hours": one.measured_memory}
            for one in found.roles
        ]  # fmt: skip
        data = {"currency": price_list().currency, "results": results, "total": hours_data(found.total)}
        return Response(JobUsageSerializer(data).data)


_NAMES = {
    "namespace_id": "namespace", "namespace_slug": "namespace_slug", "owner_id": "user", "owner_name": "username",
    "job_id": "job",
}  # fmt: skip


def _as_data(report: UsageReport) -> dict[str, Any]:
    return {
        "from": report.begin, "to": report.end, "currency": price_list().currency, "left_out": report.left_out,
        "results": [_row_data(row) for row in report.rows], "total": _row_data(report.total),
    }  # fmt: skip


def _row_data(row: Row) -> dict[str, Any]:
    keys = {_NAMES.get(column, column): value for column, value in row.keys.items()}
    return {**keys, **hours_data(row.use), "jobs": row.jobs}


def lines_of(report: UsageReport) -> Iterator[list[Any]]:
    """The rows of the report as a table, under their names."""
    columns = list(report.rows[0].keys) if report.rows else []
    yield [
        *(_NAMES.get(one, one) for one in columns), "jobs", "cpu_hours", "memory_gib_hours", "gpu_hours",
        "device_hours", "cost", "currency",
    ]  # fmt: skip
    for row in report.rows:
        data = hours_data(row.use)
        devices = {name: str(value) for name, value in data.pop("device_hours").items()}
        cost = data.pop("cost")
        keys = [_text(row.keys[one]) for one in columns]
        yield [*keys, row.jobs, *map(_text, data.values()), devices or "", cost or "", price_list().currency]


def _text(value: Any) -> Any:
    return value if value is None or isinstance(value, int | str) else f"{value:f}" if _is_number(value) else str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, Decimal)


urlpatterns: list[URLPattern | URLResolver] = [
    path("usage/", UsageView.as_view(), name="usage"),
    path("usage/usage.csv", UsageFileView.as_view(), name="usage_csv"),
    path("jobs/<uuid:job_id>/usage/", JobUsageView.as_view(), name="job_usage"),
]
