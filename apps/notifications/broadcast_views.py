"""The API of the notice to all: reading and hiding it, for everyone; setting it, for administrators."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.urls import URLPattern, URLResolver, path
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.api.offsets import ByOffset
from apps.api.permissions import IsAdministrator
from apps.api.serializers import StrictSerializer
from apps.errors import NotFound
from apps.notifications.broadcasts import (
    LONGEST,
    BroadcastFacts,
    broadcast_for,
    broadcast_hide,
    broadcast_now,
    broadcast_remove,
    broadcast_set,
)
from apps.notifications.models import Broadcast


class NoticeToAllSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField(help_text="Another one after each change.")
    text = serializers.CharField(help_text="Plain text.")
    kind = serializers.ChoiceField(choices=Broadcast.Kind.choices)
    begins_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField(allow_null=True, help_text="Null: until it is removed.")


class AdminNoticeSerializer(NoticeToAllSerializer):
    on_sign_in = serializers.BooleanField(help_text="Also shown to people who are not signed in.")
    by_mail = serializers.BooleanField(help_text="Also sent to every active user with an address.")
    mailed_at = serializers.DateTimeField(allow_null=True, help_text="When the mails to all were written.")


class NoticeSetSerializer(StrictSerializer):
    text = serializers.CharField(max_length=LONGEST)
    kind = serializers.ChoiceField(choices=Broadcast.Kind.choices, default=Broadcast.Kind.INFORMATION.value)
    begins_at = serializers.DateTimeField(required=False, allow_null=True, default=None, help_text="Null: now.")
    ends_at = serializers.DateTimeField(
        required=False, allow_null=True, default=None, help_text="Null: until it is removed."
    )
    on_sign_in = serializers.BooleanField(default=False)
    by_mail = serializers.BooleanField(default=False)


class NoticesView(ApiView):
    """What everyone is told now, but what the caller has hidden: one notice at most."""

    pagination_class = ByOffset

    @extend_schema(responses=NoticeToAllSerializer(many=True))
    def get(self, request: Request) -> Response:
        found = broadcast_for(self.user, timezone.now())
        return self.page([] if found is None else [found], NoticeToAllSerializer)


class HideNoticeView(ApiView):
    """Hide a notice from the caller until it changes."""

    @extend_schema(request=None, responses={204: None})
    def post(self, request: Request, broadcast_id: UUID) -> Response:
        broadcast_hide(broadcast_id, user=self.user)
        return Response(status=204)


class AdminNoticeView(ApiView):
    """The notice to all: reading, setting and removing it."""

    scope = "admin"
    permission_classes = [IsAdministrator]

    @extend_schema(responses=AdminNoticeSerializer)
    def get(self, request: Request) -> Response:
        found = broadcast_now()
        if found is None:
            raise NotFound("There is no notice.")
        return Response(AdminNoticeSerializer(found).data)

    @extend_schema(request=NoticeSetSerializer, responses=AdminNoticeSerializer)
    def put(self, request: Request) -> Response:
        data = self.read(NoticeSetSerializer).validated_data
        return Response(AdminNoticeSerializer(broadcast_set(BroadcastFacts(**data), actor=self.user)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request) -> Response:
        broadcast_remove(actor=self.user)
        return Response(status=204)


urlpatterns: list[URLPattern | URLResolver] = [
    path("notices/", NoticesView.as_view(), name="notices"),
    path("notices/<uuid:broadcast_id>/hide/", HideNoticeView.as_view(), name="notice-hide"),
    path("admin/notice/", AdminNoticeView.as_view(), name="admin-notice"),
]
