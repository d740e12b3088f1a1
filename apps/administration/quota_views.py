"""The API of all quotas: one table, and changing many at once. For administrators."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.administration.quota_bulk import Plan, quotas_change, quotas_plan
from apps.administration.quota_defaults import defaults_set, defaults_shown
from apps.administration.quota_schedules import schedule_cancel, schedule_for, schedules_create, schedules_open
from apps.administration.quota_serializers import (
    BulkSerializer,
    DefaultsSerializer,
    NewDefaultsSerializer,
    PlanSerializer,
    QuotaRowSerializer,
    ScheduledSerializer,
    ScheduleSerializer,
)
from apps.administration.quota_table import KINDS, quota_table, wanted_of
from apps.administration.services import Limits
from apps.api.idempotency import IdempotentPosts
from apps.api.offsets import ByOffset
from apps.api.permissions import IsAdministrator
from apps.errors import NotFound
from apps.namespaces.quota_models import Kind
from apps.namespaces.selectors import namespace_for

FILTERS = [
    OpenApiParameter("search", str, description="A part of the namespace's short name."),
    OpenApiParameter("kind", str, enum=[one for one in KINDS if one], description="Only these. Default: all."),
    OpenApiParameter(
        "sort",
        str,
        description="`name`, or a resource with `.used`, `.reserved`, `.hard` or `.share`; `-` before it: descending.",
    ),
]


class QuotasView(ApiView):
    """The quotas of all namespaces that are open, sorted as asked."""

    scope = "admin"
    permission_classes = [IsAdministrator]
    pagination_class = ByOffset

    @extend_schema(parameters=FILTERS, responses=QuotaRowSerializer(many=True))
    def get(self, request: Request) -> Response:
        return self.page(quota_table(wanted_of(request.query_params)).rows, QuotaRowSerializer)


class QuotasBulkView(IdempotentPosts, ApiView):
    """Change the quotas of many namespaces at once, all or none."""

    scope = "admin"
    permission_classes = [IsAdministrator]
    posts_are_one_transaction = True

    @extend_schema(request=BulkSerializer, responses=PlanSerializer)
    def post(self, request: Request) -> Response:
        sent = self.read(BulkSerializer)
        data, changes = sent.validated_data, sent.asked()
        plan = quotas_plan(data["namespaces"], changes)
        if not data["preview"]:
            quotas_change(
                namespace_ids=data["namespaces"],
                changes=changes,
                reason=data["reason"],
                actor=self.user,
                seen=data["seen"] or plan.seen,
            )
        return Response(_answer(plan, applied=not data["preview"]))


class DefaultsView(ApiView):
    """What a new namespace may hold, of each kind."""

    scope = "admin"
    permission_classes = [IsAdministrator]
    pagination_class = None

    @extend_schema(responses=DefaultsSerializer(many=True))
    def get(self, request: Request) -> Response:
        return Response(DefaultsSerializer(defaults_shown(), many=True).data)


class DefaultsOfKindView(ApiView):
    """What a new namespace of this kind may hold. Namespaces that exist keep their limits."""

    scope = "admin"
    permission_classes = [IsAdministrator]

    @extend_schema(request=NewDefaultsSerializer, responses=DefaultsSerializer)
    def put(self, request: Request, kind: str) -> Response:
        if kind not in Kind.values:
            raise NotFound(f"There is no such kind; use one of {', '.join(Kind.values)}.")
        limits = dict(self.read(NewDefaultsSerializer).validated_data)
        reason = limits.pop("reason")
        made = defaults_set(kind=Kind(kind), limits=cast(Limits, limits), reason=reason, actor=self.user)
        return Response(DefaultsSerializer(made).data)


class SchedulesView(IdempotentPosts, ApiView):
    """Scheduled changes of quotas that are to come or in force."""

    scope = "admin"
    permission_classes = [IsAdministrator]
    posts_are_one_transaction = True

    @extend_schema(responses=ScheduledSerializer(many=True))
    def get(self, request: Request) -> Response:
        return self.page(schedules_open(), ScheduledSerializer)

    @extend_schema(request=ScheduleSerializer, responses={201: ScheduledSerializer(many=True)})
    def post(self, request: Request) -> Response:
        """Schedule a change in many namespaces, all or none."""
        sent = self.read(ScheduleSerializer)
        data = sent.validated_data
        made = schedules_create(
            namespace_ids=data["namespaces"], changes=sent.asked(), starts=data["starts"], ends=data["ends"],
            reason=data["reason"], actor=self.user,
        )  # fmt: skip
        return Response(ScheduledSerializer(made, many=True).data, status=201)


class ScheduleView(ApiView):
    """One scheduled change."""

    scope = "admin"
    permission_classes = [IsAdministrator]

    @extend_schema(responses=ScheduledSerializer)
    def get(self, request: Request, change_id: UUID) -> Response:
        return Response(ScheduledSerializer(schedule_for(change_id)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, change_id: UUID) -> Response:
        """Cancel it. Over already: 409 `schedule_over`."""
        schedule_cancel(scheduled=schedule_for(change_id), actor=self.user)
        return Response(status=204)


class NamespaceSchedulesView(ApiView):
    """The scheduled changes of a namespace's quota, for its members."""

    scope = "admin"

    @extend_schema(responses=ScheduledSerializer(many=True))
    def get(self, request: Request, namespace_id: UUID) -> Response:
        return self.page(schedules_open(namespace_for(self.user, namespace_id)), ScheduledSerializer)


def _answer(plan: Plan, *, applied: bool) -> dict[str, Any]:
    names = ("planned", "unchanged", "below", "seen", "unknown")
    return dict(PlanSerializer({name: getattr(plan, name) for name in names} | {"applied": applied}).data)


urlpatterns: list[URLPattern | URLResolver] = [
    path("quotas/", QuotasView.as_view(), name="quotas"),
    path("quotas/bulk/", QuotasBulkView.as_view(), name="quotas-bulk"),
    path("quotas/defaults/", DefaultsView.as_view(), name="quota-defaults"),
    path("quotas/defaults/<slug:kind>/", DefaultsOfKindView.as_view(), name="quota-defaults-of"),
    path("quotas/scheduled/", SchedulesView.as_view(), name="quota-schedules"),
    path("quotas/scheduled/<uuid:change_id>/", ScheduleView.as_view(), name="quota-schedule"),
    path("namespaces/<uuid:namespace_id>/quota/scheduled/", NamespaceSchedulesView.as_view(), name="quota-scheduled"),
]
