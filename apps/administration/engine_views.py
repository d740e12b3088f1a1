"""The API of engines, for administrators. Draining: the actions of queues."""

from __future__ import annotations

from typing import Any

from django.urls import URLPattern, URLResolver, path
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.administration.engine_table import engines_shown, is_engine, machines_of
from apps.api.offsets import ByOffset
from apps.api.permissions import IsAdministrator
from apps.errors import NotFound
from yardmaster.engines.base import MachineState


class EngineAmountSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="`cpu` (cores), `memory` (bytes), `gpus`, or the resource's own name.")
    total = serializers.FloatField(help_text="What there is.")
    reserved = serializers.FloatField(help_text="What the portal's jobs hold.")
    others = serializers.FloatField(help_text="What others hold.")
    free = serializers.FloatField(help_text="What is left.")
    used = serializers.FloatField(
        allow_null=True, help_text="What the portal's tasks were measured to use; null: not measured."
    )


class EngineProbeSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="`reach`, `network` or `processes`.")
    is_well = serializers.BooleanField(allow_null=True, help_text="Null: it could not be told.")
    message = serializers.CharField()
    remedy = serializers.CharField()
    tried_at = serializers.DateTimeField()


class EngineHoldSerializer(serializers.Serializer[Any]):
    reason = serializers.CharField()
    at = serializers.DateTimeField()


class AdminEngineSerializer(serializers.Serializer[Any]):
    """An engine, as of when it was asked last."""

    name = serializers.CharField()
    kind = serializers.CharField(help_text="What it is, in words.")
    is_default = serializers.BooleanField()
    is_configured = serializers.BooleanField(help_text="False: the settings no longer have it.")
    state = serializers.ChoiceField(
        choices=["answers", "silent", "stale", "unknown"],
        help_text="`silent`: it does not answer; `stale`: not asked for a while; `unknown`: not asked yet.",
    )
    since = serializers.DateTimeField(allow_null=True, help_text="Since when it answers, or does not.")
    asked_at = serializers.DateTimeField(allow_null=True)
    message = serializers.CharField(help_text="Why it does not answer.")
    remedy = serializers.CharField()
    machine_count = serializers.IntegerField()
    waiting = serializers.IntegerField(help_text="Jobs that wait for it.")
    running_jobs = serializers.IntegerField(help_text="Jobs that hold something of it.")
    running_tasks = serializers.IntegerField(help_text="Their tasks.")
    hold = EngineHoldSerializer(allow_null=True, help_text="Null: it is not drained.")
    amounts = EngineAmountSerializer(many=True)
    probes = EngineProbeSerializer(many=True)


class MachineSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    state = serializers.ChoiceField(choices=[one.value for one in MachineState])
    model = serializers.CharField(help_text="Of its GPUs, as its labels say; empty: not said.")
    is_usable = serializers.BooleanField(help_text="False: the engine's options leave it out.")
    message = serializers.CharField(default="", help_text="Why it takes no tasks, where its state does not say it.")
    labels = serializers.DictField(child=serializers.CharField())
    total = serializers.DictField(child=serializers.FloatField(), help_text="What it has for jobs, by resource.")
    held = serializers.DictField(child=serializers.FloatField(), help_text="What the portal's tasks on it ask for.")
    free = serializers.DictField(child=serializers.FloatField(), help_text="What is left.")
    tasks = serializers.IntegerField(help_text="The portal's tasks on it, as far as the engine knows them.")
    jobs = serializers.ListField(child=serializers.UUIDField(), help_text="Ids of their jobs, the first of them.")
    job_count = serializers.IntegerField()


class EnginesView(ApiView):
    """All engines: health, capacity, what is held and free, and how many jobs run and wait."""

    scope = "admin"
    permission_classes = [IsAdministrator]
    pagination_class = ByOffset

    @extend_schema(responses=AdminEngineSerializer(many=True))
    def get(self, request: Request) -> Response:
        return self.page(engines_shown(timezone.now()), AdminEngineSerializer)


class EngineView(ApiView):
    """One engine."""

    scope = "admin"
    permission_classes = [IsAdministrator]

    @extend_schema(responses=AdminEngineSerializer)
    def get(self, request: Request, engine_name: str) -> Response:
        found = engines_shown(timezone.now(), engine_name)
        if not found:
            raise NotFound("There is no such engine.")
        return Response(AdminEngineSerializer(found[0]).data)


class MachinesView(ApiView):
    """The machines of an engine, by name."""

    scope = "admin"
    permission_classes = [IsAdministrator]
    pagination_class = ByOffset

    @extend_schema(
        parameters=[
            OpenApiParameter("search", str, description="A part of a name, a GPU model or a label (`key=value`)."),
            OpenApiParameter("state", str, enum=[one.value for one in MachineState]),
        ],
        responses=MachineSerializer(many=True),
    )
    def get(self, request: Request, engine_name: str) -> Response:
        if not is_engine(engine_name):
            raise NotFound("There is no such engine.")
        asked = request.query_params
        found = machines_of(engine_name, asked.get("search", "")[:100], asked.get("state", ""))
        return self.page(found, MachineSerializer)


urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/engines/", EnginesView.as_view(), name="admin-engines"),
    path("admin/engines/<str:engine_name>/", EngineView.as_view(), name="admin-engine"),
    path("admin/engines/<str:engine_name>/machines/", MachinesView.as_view(), name="admin-engine-machines"),
]
