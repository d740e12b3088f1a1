"""The API of preemption, for administrators."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.administration import preemption
from apps.api.permissions import IsAdministrator
from apps.api.serializers import StrictSerializer
from apps.jobs.models import PreemptionPolicy
from apps.jobs.models.preemption import LONGEST_MINUTES, MOST_A_DAY


class PreemptionPolicySerializer(serializers.ModelSerializer[PreemptionPolicy]):
    """Whether jobs may be preempted on an engine, and within which bounds."""

    class Meta:
        model = PreemptionPolicy
        fields = ["engine", "is_on", "least_minutes", "most_a_day"]
        read_only_fields = fields


class PreemptionPolicyChangeSerializer(StrictSerializer):
    """What is to be changed. Left out: stays as it is."""

    is_on = serializers.BooleanField(required=False, help_text="Whether jobs may be preempted on the engine.")
    least_minutes = serializers.IntegerField(
        required=False, min_value=1, max_value=LONGEST_MINUTES, help_text="How long a job runs before it is preempted."
    )
    most_a_day = serializers.IntegerField(
        required=False, min_value=1, max_value=MOST_A_DAY, help_text="How often one job is preempted in 24 hours."
    )


class PreemptionView(ApiView):
    """Preemption on every engine (administrators)."""

    permission_classes = [IsAdministrator]
    scope = "admin"
    pagination_class = None

    @extend_schema(responses=PreemptionPolicySerializer(many=True))
    def get(self, request: Request) -> Response:
        return Response(PreemptionPolicySerializer(preemption.policies(), many=True).data)


class PreemptionOfEngineView(ApiView):
    """Preemption on one engine (administrators)."""

    permission_classes = [IsAdministrator]
    scope = "admin"
    pagination_class = None

    @extend_schema(request=PreemptionPolicyChangeSerializer, responses=PreemptionPolicySerializer)
    def patch(self, request: Request, engine: str) -> Response:
        """Change it, from the next pass over the engine's queue on."""
        found, given = preemption.policy_of(engine), self.read(PreemptionPolicyChangeSerializer).validated_data
        known = {name: getattr(found, name) for name in preemption.PolicyFacts.__annotations__}
        facts = preemption.PolicyFacts(**{**known, **given})
        changed = preemption.policy_set(engine=engine, facts=facts, actor=self.user)
        return Response(PreemptionPolicySerializer(changed).data)


urlpatterns: list[URLPattern | URLResolver] = [
    path("preemption/", PreemptionView.as_view(), name="preemption"),
    path("preemption/<str:engine>/", PreemptionOfEngineView.as_view(), name="preemption_of_engine"),
]
