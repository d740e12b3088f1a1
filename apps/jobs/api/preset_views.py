"""The API of the presets of the launch form: for everyone to read, for administrators to change."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.api.permissions import IsAdministrator, ScopedAndSignedIn
from apps.api.serializers import StrictSerializer
from apps.jobs import presets
from apps.jobs.models.preset import LONGEST_DESCRIPTION, LONGEST_NAME


class PresetProblemSerializer(serializers.Serializer[Any]):
    field = serializers.CharField()
    code = serializers.CharField()
    message = serializers.CharField()


class PresetSerializer(serializers.Serializer[Any]):
    """A preset: what a job file may leave out."""

    id = serializers.UUIDField(source="preset.id")
    name = serializers.CharField(source="preset.name")
    description = serializers.CharField(source="preset.description")
    engine = serializers.CharField(source="preset.engine", help_text="Empty: any.")
    spec = serializers.DictField(
        source="preset.spec", help_text=f"Keys of a job file, some of {', '.join(presets.KEYS)}."
    )
    problems = PresetProblemSerializer(many=True, help_text="What it names and what is gone. None: it can be used.")


class NewPresetSerializer(StrictSerializer):
    """A preset for the launch form."""

    name = serializers.CharField(max_length=LONGEST_NAME)
    description = serializers.CharField(max_length=LONGEST_DESCRIPTION, required=False, default="", allow_blank=True)
    engine = serializers.CharField(max_length=63, required=False, default="", allow_blank=True)
    spec = serializers.DictField(help_text=f"Keys of a job file, some of {', '.join(presets.KEYS)}.")

    def facts(self) -> presets.PresetFacts:
        return presets.PresetFacts(**self.validated_data)


class PlaceSerializer(StrictSerializer):
    """Where a preset stands among the others."""

    to = serializers.IntegerField(min_value=0, max_value=presets.MOST, help_text="How many stand before it.")


class _PresetAddress(ApiView):
    scope = "admin"

    def get_permissions(self) -> list[ScopedAndSignedIn]:
        return [ScopedAndSignedIn() if self.request.method in ("GET", "HEAD", "OPTIONS") else IsAdministrator()]

    def answer(self, preset_id: UUID, status: int = 200) -> Response:
        listed = next(one for one in presets.presets_listed() if one.preset.pk == preset_id)
        return Response(PresetSerializer(listed).data, status=status)


class PresetsView(_PresetAddress):
    """The presets of the launch form, in order."""

    pagination_class = None

    @extend_schema(responses=PresetSerializer(many=True))
    def get(self, request: Request) -> Response:
        return Response(PresetSerializer(presets.presets_listed(), many=True).data)

    @extend_schema(request=NewPresetSerializer, responses={201: PresetSerializer})
    def post(self, request: Request) -> Response:
        """Add one, as the last (administrators)."""
        made = presets.preset_create(facts=self.read(NewPresetSerializer).facts(), actor=self.user)
        return self.answer(made.pk, 201)


class PresetView(_PresetAddress):
    """One preset."""

    @extend_schema(responses=PresetSerializer)
    def get(self, request: Request, preset_id: UUID) -> Response:
        return self.answer(presets.preset_for(preset_id).pk)

    @extend_schema(request=NewPresetSerializer, responses=PresetSerializer)
    def put(self, request: Request, preset_id: UUID) -> Response:
        """Change it (administrators). Jobs that were launched keep what they have."""
        preset = presets.preset_for(preset_id)
        presets.preset_change(preset=preset, facts=self.read(NewPresetSerializer).facts(), actor=self.user)
        return self.answer(preset.pk)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, preset_id: UUID) -> Response:
        """Remove it (administrators)."""
        presets.preset_remove(preset=presets.preset_for(preset_id), actor=self.user)
        return Response(status=204)


class PresetPlaceView(_PresetAddress):
    """The place of a preset among the others."""

    @extend_schema(request=PlaceSerializer, responses=PresetSerializer)
    def put(self, request: Request, preset_id: UUID) -> Response:
        """Move it (administrators)."""
        preset = presets.preset_for(preset_id)
        presets.preset_move(preset=preset, to=self.read(PlaceSerializer).validated_data["to"], actor=self.user)
        return self.answer(preset.pk)


urlpatterns: list[URLPattern | URLResolver] = [
    path("launch-presets/", PresetsView.as_view(), name="launch-presets"),
    path("launch-presets/<uuid:preset_id>/", PresetView.as_view(), name="launch-preset"),
    path("launch-presets/<uuid:preset_id>/place/", PresetPlaceView.as_view(), name="launch-preset-place"),
]
