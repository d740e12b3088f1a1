"""The API with which a program is signed in by a code (RFC 8628, in JSON)."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts import device
from apps.accounts.api_view import ApiView
from apps.accounts.attempts import device_ask_count
from apps.api.permissions import SCOPES
from apps.api.serializers import StrictSerializer
from apps.audit.whence import address_of, agent_of
from apps.errors import Invalid
from yardmaster.errors import Problem

GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_NO_STORE = {"Cache-Control": "no-store"}


class DeviceAskSerializer(StrictSerializer):
    """A program that asks to be signed in."""

    name = serializers.CharField(max_length=100, help_text="The name of the token, shown to the user.")
    client_id = serializers.CharField(max_length=100, required=False, default="", allow_blank=True)
    scope = serializers.CharField(
        max_length=100, required=False, default="", allow_blank=True,
        help_text="Scopes of the token, separated by spaces. Empty: full access.",
    )  # fmt: skip

    def validate_name(self, value: str) -> str:
        """Only what can be seen: the name stands beside the buttons."""
        if not value.isprintable():
            raise serializers.ValidationError("A name cannot contain control characters.", code="not_printable")
        return value

    def scopes(self) -> list[str]:
        wanted = self.validated_data["scope"].split()
        unknown = [one for one in wanted if one not in SCOPES]
        if unknown:
            known = f"Known scopes are {', '.join(SCOPES)}; none means full access."
            raise Invalid([Problem("scope", "unknown", f"There is no scope {one!r}.", known, one) for one in unknown])
        return [one for one in SCOPES if one in wanted]


class DeviceAskedSerializer(StrictSerializer):
    device_code = serializers.CharField(read_only=True)
    user_code = serializers.CharField(read_only=True)
    verification_uri = serializers.URLField(read_only=True)
    verification_uri_complete = serializers.URLField(read_only=True)
    expires_in = serializers.IntegerField(read_only=True, help_text="Seconds.")
    interval = serializers.IntegerField(read_only=True, help_text="Seconds between two polls.")


class DevicePollSerializer(StrictSerializer):
    device_code = serializers.CharField(max_length=200)
    client_id = serializers.CharField(max_length=100, required=False, default="", allow_blank=True)
    grant_type = serializers.ChoiceField(choices=[GRANT], required=False)


class DeviceTokenSerializer(StrictSerializer):
    access_token = serializers.CharField(read_only=True)
    token_type = serializers.CharField(read_only=True)
    expires_in = serializers.IntegerField(read_only=True, help_text="Seconds.")
    scope = serializers.CharField(read_only=True)


class _ForPrograms(ApiView):
    authentication_classes = []
    permission_classes = [AllowAny]


class DeviceAskView(_ForPrograms):
    """Ask to be signed in. The user confirms `user_code` at `verification_uri`, within ten minutes."""

    @extend_schema(request=DeviceAskSerializer, responses=DeviceAskedSerializer)
    def post(self, request: Request) -> Response:
        wish = self.read(DeviceAskSerializer)
        device_ask_count(request._request)
        asked = device.device_ask(
            name=wish.validated_data["name"], client_id=wish.validated_data["client_id"], scopes=wish.scopes(),
            agent=agent_of(request._request), address=address_of(request._request), now=timezone.now(),
        )  # fmt: skip
        answer = {
            "device_code": asked.device_code,
            "user_code": asked.user_code,
            "verification_uri": asked.address,
            "verification_uri_complete": asked.address_with_code,
            "expires_in": int(device.LASTS.total_seconds()),
            "interval": device.INTERVAL,
        }
        return Response(answer, headers=_NO_STORE)


class DeviceTokenView(_ForPrograms):
    """Collect the token. Until the user has decided: 400, `authorization_pending` or `slow_down`."""

    @extend_schema(request=DevicePollSerializer, responses=DeviceTokenSerializer)
    def post(self, request: Request) -> Response:
        data = self.read(DevicePollSerializer).validated_data
        now = timezone.now()
        token, secret = device.device_collect(device_code=data["device_code"], client_id=data["client_id"], now=now)
        lasts = int((token.expiry - now).total_seconds())
        answer = {"access_token": secret, "token_type": "Bearer", "expires_in": lasts, "scope": " ".join(token.scopes)}
        return Response(answer, headers=_NO_STORE)


urlpatterns: list[URLPattern | URLResolver] = [
    path("auth/device/", DeviceAskView.as_view(), name="auth-device"),
    path("auth/device/token/", DeviceTokenView.as_view(), name="auth-device-token"),
]
