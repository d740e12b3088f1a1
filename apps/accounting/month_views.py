"""The API of the report of a month, for administrators: the figures of the page, as JSON or as its file.

Not here: what was used (`month_report`), the lines of the file (`month_file`).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from typing import Any

from django.http import HttpResponse
from django.urls import URLPattern, URLResolver, path
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounting.month_file import NAMESPACE, TABLES, month_file
from apps.accounting.month_report import MOST_ROWS, Month, Row, month_begun, month_of_use
from apps.accounting.priced import price_list
from apps.accounting.serializers import BudgetLineSerializer, HoursSerializer, hours_data
from apps.accounts.api_view import ApiView
from apps.api.permissions import IsAdministrator
from yardmaster.accounting.calendar import begin_of, next_month

_JSON, _CSV = "json", "csv"


class MonthQuerySerializer(serializers.Serializer[Any]):
    """`as` is no name in Python."""

    by = serializers.ChoiceField(choices=[(one, one) for one in TABLES], default=NAMESPACE)

    def get_fields(self) -> dict[str, Any]:
        choices = [(one, one) for one in (_JSON, _CSV)]
        return {**super().get_fields(), "as": serializers.ChoiceField(choices=choices, default=_JSON)}


class MonthNamespaceSerializer(HoursSerializer):
    namespace = serializers.CharField(help_text="The short name that it had.")
    budget_percent = serializers.IntegerField(
        allow_null=True, help_text="Of the limit that is used up the most; null: without a budget."
    )
    budget = BudgetLineSerializer(many=True, help_text="Each limit in force now, also for a month that is over.")


class MonthUserSerializer(HoursSerializer):
    username = serializers.CharField(help_text="The user name that they had.")


class MonthPairSerializer(HoursSerializer):
    namespace = serializers.CharField(help_text="The short name that it had.")
    username = serializers.CharField(help_text="The user name that they had.")


class MonthLeftOutSerializer(serializers.Serializer[Any]):
    """How many rows are not in the lists; they are in the file and in the total."""

    namespaces = serializers.IntegerField(help_text="Not in `namespaces`.")
    users = serializers.IntegerField(help_text="Not in `users`.")
    namespace_users = serializers.IntegerField(help_text="Not in `namespace_users`.")


class MonthReportSerializer(serializers.Serializer[Any]):
    """What was used in a month, each list with the most core-hours first."""

    month = serializers.CharField(help_text="Such as 2026-11.")
    to = serializers.DateTimeField(help_text="Its end (UTC); of the present month: now.")
    is_over = serializers.BooleanField(help_text="False: figures still grow.")
    currency = serializers.CharField(allow_blank=True, help_text="Of `cost`; empty where nothing is priced.")
    total = HoursSerializer(help_text="Of all.")
    namespaces = MonthNamespaceSerializer(many=True, help_text=f"At most {MOST_ROWS}.")
    users = MonthUserSerializer(many=True, help_text=f"At most {MOST_ROWS}.")
    namespace_users = MonthPairSerializer(many=True, help_text=f"By namespace and user; at most {MOST_ROWS}.")
    left_out = MonthLeftOutSerializer()

    def get_fields(self) -> dict[str, Any]:
        """`from` is no name in Python."""
        begin = serializers.DateTimeField(help_text="When it began (UTC).")
        return {"from": begin, **super().get_fields()}


_PARAMETERS = [
    OpenApiParameter("month", str, OpenApiParameter.PATH, description="A month that has begun, such as 2026-11."),
    OpenApiParameter("as", str, enum=[_JSON, _CSV], description="The format. Default: json."),
    OpenApiParameter(
        "by",
        str,
        enum=list(TABLES),
        description="The lines of the CSV: a namespace (default), or a namespace and user.",
    ),
]


class MonthReportView(ApiView):
    """The report of a month: what each namespace and user used, and how far budgets are used up."""

    scope = "admin"
    permission_classes = [IsAdministrator]
    pagination_class = None

    @extend_schema(
        parameters=_PARAMETERS,
        responses={(200, "application/json"): MonthReportSerializer, (200, "text/csv"): OpenApiTypes.STR},
    )
    def get(self, request: Request, month: str) -> HttpResponse:
        query = MonthQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        now = timezone.now()
        first = month_begun(month, now)
        found = month_of_use(first, now)
        if query.validated_data["as"] == _CSV:
            return month_file(first, found, query.validated_data["by"])
        return Response(MonthReportSerializer(_as_data(first, found, now)).data)


def _as_data(first: date, found: Month, now: datetime) -> dict[str, Any]:
    lists = {"namespaces": found.namespaces, "users": found.users, "namespace_users": found.pairs}
    end = begin_of(next_month(first))
    return {
        "month": f"{first:%Y-%m}", "from": begin_of(first), "to": min(now, end), "is_over": end <= now,
        "currency": price_list().currency, "total": hours_data(found.total),
        **{name: _rows(rows) for name, rows in lists.items()},
        "left_out": {name: max(0, len(rows) - MOST_ROWS) for name, rows in lists.items()},
    }  # fmt: skip


def _rows(rows: Iterable[Row]) -> list[dict[str, Any]]:
    return [
        {
            **hours_data(one.use), "namespace": one.name, "username": one.user, "budget": one.standing.lines,
            "budget_percent": one.standing.percent if one.standing.lines else None,
        }
        for one in list(rows)[:MOST_ROWS]
    ]  # fmt: skip


urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/usage/<str:month>/", MonthReportView.as_view(), name="admin-month"),
]
