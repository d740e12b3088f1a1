"""The API of all quotas: one table, and changing many at once. For administrators."""

from __future__ import annotations

from typing import Any

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.administration.quota_bulk import Plan, quotas_change, quotas_plan
from apps.administration.quota_serializers import BulkSerializer, PlanSerializer, QuotaRowSerializer
from apps.administration.quota_table import KINDS, quota_table, wanted_of
from apps.api.idempotency import IdempotentPosts
from apps.api.offsets import ByOffset
from apps.api.permissions import IsAdministrator

FILTERS = [
    OpenApiParameter("search", str, description="A part of the namespace's short name."),
    OpenApiParameter("kind", str, enum=[one for one in KINDS if one], description="Only these. Default: all."),
    OpenApiParameter(
        "sort",
        str,
        description="`name`, or a resource with `.used`, `.hard` or `.share`; `-` before it: largest first.",
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
        data: dict[str, Any] = self.read(BulkSerializer).validated_data
        plan = quotas_plan(data["namespaces"], data["changes"])
        if not data["preview"]:
            quotas_change(
                namespace_ids=data["namespaces"],
                changes=data["changes"],
                reason=data["reason"],
                actor=self.user,
                seen=data["seen"] or plan.seen,
            )
        return Response(_answer(plan, applied=not data["preview"]))


def _answer(plan: Plan, *, applied: bool) -> dict[str, Any]:
    names = ("planned", "unchanged", "below", "seen")
    return dict(PlanSerializer({name: getattr(plan, name) for name in names} | {"applied": applied}).data)


urlpatterns: list[URLPattern | URLResolver] = [
    path("quotas/", QuotasView.as_view(), name="quotas"),
    path("quotas/bulk/", QuotasBulkView.as_view(), name="quotas-bulk"),
]
