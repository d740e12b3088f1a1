"""The API of reservations for a time, for administrators."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.administration import reservations
from apps.api.permissions import IsAdministrator
from apps.api.serializers import StrictSerializer
from apps.errors import Invalid
from apps.jobs.models import AdvanceReservation
from yardmaster.errors import Problem


class ReservationSerializer(serializers.ModelSerializer[AdvanceReservation]):
    """Amounts of an engine that are reserved for a namespace, or a group of the tree of shares, within a time."""

    namespace = serializers.CharField(
        source="namespace.slug", default=None, allow_null=True, help_text="Its slug; null: it is for a group."
    )
    group = serializers.CharField(
        source="group.name", default=None, allow_null=True, help_text="Its name; null: it is for a namespace."
    )
    amounts = serializers.DictField(child=serializers.FloatField(), help_text="Cores, bytes, pieces.")

    class Meta:
        model = AdvanceReservation
        fields = ["id", "engine", "namespace", "group", "amounts", "begins_at", "ends_at", "reason", "created_at"]
        read_only_fields = fields


class NewReservationSerializer(StrictSerializer):
    """What is to be reserved, for whom and when."""

    engine = serializers.CharField(max_length=63)
    namespace = serializers.CharField(
        max_length=63, required=False, default="", allow_blank=True, help_text="ID or slug. Either this or `group`."
    )
    group = serializers.CharField(
        max_length=63, required=False, default="", allow_blank=True,
        help_text="The name of a group of the tree of shares: all namespaces in it share what is reserved.",
    )  # fmt: skip
    amounts = serializers.DictField(
        child=serializers.FloatField(min_value=0, max_value=2**53),
        help_text="Cores as `cpu`, bytes as `memory`, pieces as `gpus` or another name.",
    )
    begins_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField()
    reason = serializers.CharField(
        required=False, allow_blank=True, max_length=reservations.LONGEST_REASON,
        help_text="Shown to the members of the namespace.",
    )  # fmt: skip

    def validate_amounts(self, amounts: dict[str, Any]) -> dict[str, Any]:
        if len(amounts) > reservations.MOST_RESOURCES or any(len(name) > 253 for name in amounts):
            message = f"At most {reservations.MOST_RESOURCES} resources, with names of at most 253 characters."
            raise Invalid([Problem("amounts", "too_many", message, "Name fewer resources.")])
        return {name: amount if name == "cpu" else int(amount) for name, amount in amounts.items()}


class ReservationsView(ApiView):
    """Reservations that are not over (administrators)."""

    permission_classes = [IsAdministrator]
    scope = "admin"
    pagination_class = None

    @extend_schema(responses=ReservationSerializer(many=True))
    def get(self, request: Request) -> Response:
        return Response(ReservationSerializer(reservations.reservations(), many=True).data)

    @extend_schema(request=NewReservationSerializer, responses={201: ReservationSerializer})
    def post(self, request: Request) -> Response:
        """Reserve amounts of an engine for a namespace, or a group, within a time."""
        given = dict(self.read(NewReservationSerializer).validated_data)
        whose = reservations.owner_named(self.user, given.pop("namespace"), given.pop("group"))
        made = reservations.reservation_make(whose=whose, reserved=reservations.Reserved(**given), actor=self.user)
        return Response(ReservationSerializer(made).data, status=201)


class ReservationView(ApiView):
    """One reservation (administrators)."""

    permission_classes = [IsAdministrator]
    scope = "admin"
    pagination_class = None

    @extend_schema(responses={204: None})
    def delete(self, request: Request, reserved_id: UUID) -> Response:
        """End it now; one that has not begun is removed."""
        reservations.reservation_end(found=reservations.reservation_for(reserved_id), actor=self.user)
        return Response(status=204)


urlpatterns: list[URLPattern | URLResolver] = [
    path("reservations/", ReservationsView.as_view(), name="reservations"),
    path("reservations/<uuid:reserved_id>/", ReservationView.as_view(), name="reservation"),
]
