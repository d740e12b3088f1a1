"""The API of the budgets of namespaces: read by their members, changed by administrators."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.urls import URLPattern, URLResolver, path
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounting.budgets import budget_set, limits_of, standing_of
from apps.accounting.models import Budget
from apps.accounting.priced import price_list
from apps.accounting.serializers import BudgetLineSerializer
from apps.accounts.administrators import require_administrator
from apps.accounts.api_view import ApiView
from apps.api.serializers import StrictSerializer
from apps.namespaces.models import Namespace
from apps.namespaces.selectors import namespace_for


def _bound(places: int, words: str) -> serializers.DecimalField:
    return serializers.DecimalField(
        max_digits=14, decimal_places=places, min_value=0, allow_null=True, required=False, default=None,
        help_text=f"{words} in a month of UTC; null: no limit.",
    )  # fmt: skip


class BudgetLimitsSerializer(StrictSerializer):
    cpu_hours = _bound(3, "Core-hours")
    memory_gib_hours = _bound(3, "GiB-hours of memory")
    gpu_hours = _bound(3, "GPU-hours")
    money = _bound(2, "Cost in the currency of the prices")


class BudgetSerializer(serializers.Serializer[Any]):
    limits = BudgetLimitsSerializer()
    is_default = serializers.BooleanField(help_text="The namespace has no budget of its own.")
    currency = serializers.CharField(allow_blank=True)
    standing = BudgetLineSerializer(many=True)
    is_spent = serializers.BooleanField(help_text="New jobs wait until the month ends or the budget is raised.")


class BudgetView(ApiView):
    """A namespace's budget, and where it stands in this month. Administrators change it."""

    scope = "admin"
    pagination_class = None

    @extend_schema(responses=BudgetSerializer)
    def get(self, request: Request, namespace_id: UUID) -> Response:
        return self._answer(namespace_for(self.user, namespace_id))

    @extend_schema(request=BudgetLimitsSerializer, responses=BudgetSerializer)
    def put(self, request: Request, namespace_id: UUID) -> Response:
        """Bounds that are not named are unlimited."""
        found = namespace_for(self.user, namespace_id)
        require_administrator(self.user)
        limits = self.read(BudgetLimitsSerializer).validated_data
        budget_set(namespace=found, limits=limits, actor=self.user)
        return self._answer(found)

    @extend_schema(responses={200: BudgetSerializer})
    def delete(self, request: Request, namespace_id: UUID) -> Response:
        """The default budget of the settings counts again."""
        found = namespace_for(self.user, namespace_id)
        require_administrator(self.user)
        budget_set(namespace=found, limits=None, actor=self.user)
        return self._answer(found)

    def _answer(self, namespace: Namespace) -> Response:
        standing = standing_of(namespace, timezone.now())
        data = {
            "limits": limits_of(namespace),
            "is_default": not Budget.objects.filter(namespace=namespace).exists(),
            "currency": price_list().currency,
            "standing": standing.lines,
            "is_spent": standing.is_spent,
        }
        return Response(BudgetSerializer(data).data)


urlpatterns: list[URLPattern | URLResolver] = [
    path("namespaces/<uuid:namespace_id>/budget/", BudgetView.as_view(), name="namespace_budget"),
]
