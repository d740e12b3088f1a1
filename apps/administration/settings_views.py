"""The API of the settings in force, for administrators. Reading only."""

from __future__ import annotations

from typing import Any

from django.urls import URLPattern, URLResolver, path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.administration.settings_table import DEFAULT, ENVIRONMENT, FILE, risks, settings_shown
from apps.api.permissions import IsAdministrator


class SettingSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="The environment variable.")
    part = serializers.CharField(help_text="The part of docs/settings.md in which it stands.")
    value = serializers.CharField(help_text="In force. `set`: it has a value that is not shown.")
    default = serializers.CharField(help_text="What is so without it, in words.")
    origin = serializers.ChoiceField(
        choices=[ENVIRONMENT, DEFAULT, FILE], source="source", help_text="Where the value comes from."
    )
    is_secret = serializers.BooleanField(help_text="Whether its value is never shown.")
    purpose = serializers.CharField(help_text="What it is for, in words.")


class RiskSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="The environment variable to change.")
    message = serializers.CharField()
    remedy = serializers.CharField()


class SettingsSerializer(serializers.Serializer[Any]):
    settings = SettingSerializer(many=True)
    risks = RiskSerializer(many=True, help_text="What is risky of the settings in force.")


class SettingsView(ApiView):
    """The settings in force: values, defaults and where they come from. Secrets are never shown."""

    scope = "admin"
    permission_classes = [IsAdministrator]

    @extend_schema(
        parameters=[OpenApiParameter("search", str, description="Words of a name or of what a setting is for.")],
        responses=SettingsSerializer,
    )
    def get(self, request: Request) -> Response:
        found = {"settings": settings_shown(request.query_params.get("search", "")[:100]), "risks": risks()}
        return Response(SettingsSerializer(found).data)


urlpatterns: list[URLPattern | URLResolver] = [path("admin/settings/", SettingsView.as_view(), name="admin-settings")]
