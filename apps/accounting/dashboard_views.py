"""The API of the dashboard of administrators: the figures of the page, with the same filters.

Not here: what is counted (`trends`, `dashboards`).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from django.urls import URLPattern, URLResolver, path
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounting.dashboards import idle_servers, title_of
from apps.accounting.trends import (
    BY,
    PERIODS,
    Figures,
    Scope,
    Waited,
    failures_over_time,
    idle_over_time,
    is_unknown,
    measured,
    scope_of,
    use_over_time,
    waits_over_time,
)
from apps.accounts.api_view import ApiView
from apps.api.permissions import IsAdministrator
from apps.errors import Invalid
from yardmaster.accounting.amounts import CPU
from yardmaster.accounting.calendar import begin_of
from yardmaster.errors import Problem

MOST_NAMES = 200
"""Of a list, the largest first."""


class DashboardQuerySerializer(serializers.Serializer[Any]):
    """As the form of the page."""

    period = serializers.ChoiceField(choices=[(one, one) for one in PERIODS], default="week")
    namespace = serializers.CharField(max_length=63, default="", allow_blank=True)
    engine = serializers.CharField(max_length=63, default="", allow_blank=True)
    by = serializers.ChoiceField(choices=[(one, one) for one in BY], default="namespace")
    resource = serializers.CharField(max_length=253, default=CPU)


class _Begun(serializers.Serializer[Any]):
    begin = serializers.DateTimeField(help_text="When the hour or the day (UTC) began.")


class HoursOfStepSerializer(_Begun):
    hours = serializers.FloatField(help_text="Steps without any are left out.")


class HoursOverTimeSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="The namespace's short name, or the role.")
    hours = serializers.FloatField(help_text="Of all steps.")
    steps = HoursOfStepSerializer(many=True)


class WasteSerializer(serializers.Serializer[Any]):
    """Of tasks that were measured."""

    held_cpu_hours = serializers.FloatField(source="held_cpu", help_text="Core-hours held.")
    used_cpu_hours = serializers.FloatField(source="used_cpu", help_text="Core-hours used.")
    cpu_percent = serializers.IntegerField(allow_null=True, help_text="Used of held; null: none was held.")
    held_memory_gib_hours = serializers.FloatField(source="held_memory", help_text="GiB-hours held.")
    used_memory_gib_hours = serializers.FloatField(source="used_memory", help_text="GiB-hours used.")
    memory_percent = serializers.IntegerField(allow_null=True, help_text="Used of held; null: none was held.")


class NamespaceWasteSerializer(WasteSerializer):
    namespace = serializers.CharField(source="name", help_text="Its short name.")


class DayWasteSerializer(WasteSerializer):
    day = serializers.DateField(source="name", help_text="In UTC. Today is not measured yet.")


class AttemptsOfStepSerializer(_Begun):
    attempts = serializers.IntegerField(help_text="Steps without any are left out.")


class FailureCauseSerializer(serializers.Serializer[Any]):
    reason = serializers.CharField(allow_blank=True, help_text="The code; empty: not known.")
    title = serializers.CharField(help_text="The code in words.")
    attempts = serializers.IntegerField(help_text="That failed for it.")
    steps = AttemptsOfStepSerializer(many=True)


class WaitingTimesSerializer(_Begun):
    """Of attempts that were queued in the step and have started."""

    attempts = serializers.IntegerField(source="count", help_text="How many.")
    median_seconds = serializers.FloatField(help_text="Half of them waited no longer.")
    ninetieth_percentile_seconds = serializers.FloatField(help_text="90 % of them waited no longer.")
    longest_seconds = serializers.FloatField(help_text="None waited longer.")


class IdleServersSerializer(serializers.Serializer[Any]):
    """Parameter servers that are held now by a job without progress."""

    namespace = serializers.CharField(help_text="Its short name.")
    username = serializers.CharField(source="owner", allow_blank=True, help_text="Whose job it is.")
    job = serializers.UUIDField(source="job_id")
    job_name = serializers.CharField()
    cpu = serializers.FloatField(help_text="Cores held.")
    memory = serializers.IntegerField(help_text="Bytes held.")
    since = serializers.DateTimeField(help_text="Of its last step, or of its start.")


class DashboardSerializer(serializers.Serializer[Any]):
    """Use, waste, failures and waiting times over a period. At most 200 names in each list, the largest first."""

    to = serializers.DateTimeField(help_text="Now.")
    step = serializers.ChoiceField(choices=[("hour", "hour"), ("day", "day")], help_text="What steps are.")
    by = serializers.ChoiceField(choices=[(one, one) for one in BY], help_text="What `use` is grouped by.")
    resource = serializers.CharField(help_text="What `use` is of.")
    resources = serializers.ListField(child=serializers.CharField(), help_text="Resources that were held.")
    use = HoursOverTimeSerializer(many=True, help_text="Hours of the resource held.")
    waste_by_namespace = NamespaceWasteSerializer(many=True, help_text="The most unused core-hours first.")
    waste_by_day = DayWasteSerializer(many=True)
    failures = FailureCauseSerializer(many=True, help_text="The most frequent first; of jobs that still exist.")
    waiting_times = WaitingTimesSerializer(many=True, help_text="By step; of jobs that still exist.")
    idle_servers = IdleServersSerializer(many=True, help_text="The 50 that are held the longest.")
    idle_server_hours = HoursOverTimeSerializer(many=True, help_text="Core-hours that such held, by namespace.")

    def get_fields(self) -> dict[str, Any]:
        """`from` is no name in Python."""
        return {"from": serializers.DateTimeField(help_text="When the first step began."), **super().get_fields()}


_PARAMETERS = [
    OpenApiParameter("period", str, enum=list(PERIODS), description="24 hours, 7, 30 or 90 days. Default: week."),
    OpenApiParameter("namespace", str, description="A short name; without it all."),
    OpenApiParameter("engine", str, description="An engine; without it all."),
    OpenApiParameter("by", str, enum=list(BY), description="What use is grouped by. Default: namespace."),
    OpenApiParameter("resource", str, description="What use is of: `cpu` (default), `memory`, `gpus` or a name."),
]


class DashboardView(ApiView):
    """Use over time, waste, failures by cause, waiting times, and parameter servers without progress."""

    scope = "admin"
    permission_classes = [IsAdministrator]
    pagination_class = None

    @extend_schema(parameters=_PARAMETERS, responses=DashboardSerializer)
    def get(self, request: Request) -> Response:
        query = DashboardQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        said, now = query.validated_data, timezone.now()
        scope = scope_of(said["period"], now, said["namespace"], said["engine"])
        found = use_over_time(scope, said["by"], (said["resource"],))
        if is_unknown(scope, found):
            remedy = "Enter the short name of a namespace."
            problem = Problem("namespace", "not_found", "There is no such namespace.", remedy, scope.namespace)
            raise Invalid([problem])
        return Response(DashboardSerializer(_as_data(scope, found, said, now)).data)


def _as_data(scope: Scope, found: Mapping[str, Figures], said: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    waste, days = measured(scope)
    return {
        "from": scope.begin, "to": scope.end, "step": "hour" if scope.is_hourly else "day", "by": said["by"],
        "resource": said["resource"], "resources": sorted(found),
        "use": _over_time(found.get(said["resource"], {})), "waste_by_namespace": waste[:MOST_NAMES],
        "waste_by_day": days, "failures": _failures(failures_over_time(scope)),
        "waiting_times": [_waited(one) for one in waits_over_time(scope)],
        "idle_servers": idle_servers(now, scope.only()), "idle_server_hours": _over_time(idle_over_time(scope)),
    }  # fmt: skip


def _over_time(figures: Figures) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        {"name": name, "hours": sum(steps.values(), Decimal()),
         "steps": [{"begin": _begin(step), "hours": steps[step]} for step in sorted(steps)]}
        for name, steps in figures.items()
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (-row["hours"], row["name"]))[:MOST_NAMES]


def _failures(found: Mapping[str, Mapping[date, int]]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        {"reason": reason, "title": title_of(reason), "attempts": sum(steps.values()),
         "steps": [{"begin": _begin(step), "attempts": steps[step]} for step in sorted(steps)]}
        for reason, steps in found.items()
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (-row["attempts"], row["title"]))[:MOST_NAMES]


def _waited(one: Waited) -> dict[str, Any]:
    return {
        "begin": _begin(one.step), "count": one.count, "median_seconds": one.median.total_seconds(),
        "ninetieth_percentile_seconds": one.ninth.total_seconds(), "longest_seconds": one.longest.total_seconds(),
    }  # fmt: skip


def _begin(step: date) -> datetime:
    return step if isinstance(step, datetime) else begin_of(step)


urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/dashboard/", DashboardView.as_view(), name="admin-dashboard"),
]
