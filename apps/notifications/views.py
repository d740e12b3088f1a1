"""The API of one's own notifications: by which way and when, and one's own chat or webhook."""

from __future__ import annotations

from typing import Any

from django.urls import URLPattern, URLResolver, path
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.api.idempotency import IdempotentPosts
from apps.api.serializers import StrictSerializer
from apps.namespaces.selectors import namespace_for
from apps.notifications import own_chat
from apps.notifications.choosing import LARGEST_FLOOD, MOST_EXCEPTIONS, all_choices_of, exception_choose, notices_choose
from apps.notifications.models import WaitLimit
from apps.webhooks.models import Format
from apps.webhooks.sealed_parts import OVERLAP
from apps.webhooks.serializers import WebhookSecretSerializer
from yardmaster.outgoing.notices import KINDS, Choice, Pace, Way
from yardmaster.outgoing.targets import LONGEST

_WAYS = [(one.value, one.value) for one in Way]
_PACES = [(one.value, one.value) for one in Pace]
_KINDS = [(kind, kind) for kind in KINDS]


class NoticeChoiceSerializer(StrictSerializer):
    """How you are told of one kind of event."""

    kind = serializers.ChoiceField(choices=_KINDS)
    namespace = serializers.CharField(
        required=False, allow_null=True, max_length=63, default=None,
        help_text="Id or slug: in this namespace alone. Null: everywhere.",
    )  # fmt: skip
    way = serializers.ChoiceField(
        choices=_WAYS, allow_null=True, help_text="Null, with a namespace: the same as everywhere again."
    )
    pace = serializers.ChoiceField(choices=_PACES, default=Pace.NOW.value, help_text="At once, or in a digest.")


class OwnChatSerializer(serializers.Serializer[Any]):
    """Your own chat, or your own program that takes signed JSON."""

    format = serializers.ChoiceField(choices=Format.choices, help_text="`json` is signed; the others are chats.")
    address = serializers.CharField(
        source="shown", help_text="The address without its query; of a chat the host and the last characters."
    )
    is_active = serializers.BooleanField()
    off_reason = serializers.CharField(help_text="Why the portal has switched it off; empty if it has not.")


class MadeOwnChatSerializer(OwnChatSerializer):
    """The address that was saved, with its secret."""

    secret = serializers.CharField(
        source="made_secret", allow_blank=True, help_text="Signs the messages. Not shown again; empty for a chat."
    )


class NotificationsSerializer(serializers.Serializer[Any]):
    """What you are told of, and how."""

    choices = NoticeChoiceSerializer(many=True)
    wait_minutes = serializers.IntegerField(help_text="After how long a queued job waits long.")
    with_log = serializers.BooleanField(help_text="Whether a mail may have the last lines of a log.")
    daily_hour = serializers.IntegerField(help_text="When daily digests are made, in your time zone.")
    flood = serializers.IntegerField(help_text="Events of a kind in an hour after which a digest is made; 0: never.")
    chat = OwnChatSerializer(allow_null=True, help_text="Your own address; null: none is set up.")


class NotificationsChangeSerializer(StrictSerializer):
    """What is left out stays."""

    choices = NoticeChoiceSerializer(
        many=True, required=False, max_length=MOST_EXCEPTIONS + len(KINDS),  # type: ignore[call-arg]  # of the list
    )  # fmt: skip
    wait_minutes = serializers.ChoiceField(choices=WaitLimit.choices, required=False)
    with_log = serializers.BooleanField(required=False)
    daily_hour = serializers.IntegerField(min_value=0, max_value=23, required=False)
    flood = serializers.IntegerField(min_value=0, max_value=LARGEST_FLOOD, required=False)


class OwnChatChangeSerializer(StrictSerializer):
    """The address of your program, or an incoming webhook of a chat."""

    url = serializers.CharField(max_length=LONGEST, help_text="Where messages are sent, by POST. Never shown again.")
    format = serializers.ChoiceField(choices=Format.choices, help_text="`json` is signed; the others are chats.")


class NotificationsView(ApiView):
    """Your own notifications."""

    scope = "admin"

    @extend_schema(responses=NotificationsSerializer)
    def get(self, request: Request) -> Response:
        return self._answer()

    @extend_schema(request=NotificationsChangeSerializer, responses=NotificationsSerializer)
    def patch(self, request: Request) -> Response:
        data = dict(self.read(NotificationsChangeSerializer).validated_data)
        by_kind: dict[str, Choice] = {}
        special: list[tuple[str, Any, Choice | None]] = []
        for one in data.pop("choices", ()):
            choice = None if one["way"] is None else Choice(Way(one["way"]), Pace(one["pace"]))
            if one["namespace"] is not None:
                special.append((one["kind"], namespace_for(self.user, one["namespace"]), choice))
            elif choice is not None:
                by_kind[one["kind"]] = choice
        notices_choose(self.user, by_kind, **data)
        for kind, namespace, choice in special:
            exception_choose(self.user, kind, namespace, choice)
        return self._answer()

    def _answer(self) -> Response:
        found = all_choices_of(self.user)
        rows = [
            {"kind": kind, "namespace": None, "way": one.way.value, "pace": one.pace.value}
            for kind, one in found.by_kind.items()
        ]
        rows += [
            {"kind": one.kind, "namespace": one.namespace.slug, "way": one.way, "pace": one.pace}
            for one in found.exceptions
            if one.namespace
        ]
        mail = {
            name: getattr(found.mail, name) for name in ("wait_minutes", "with_log", "daily_hour", "flood")
        }  # fmt: skip
        return Response(NotificationsSerializer({"choices": rows, **mail, "chat": own_chat.own_chat(self.user)}).data)


class OwnChatView(ApiView):
    """Your own chat or webhook."""

    scope = "admin"

    @extend_schema(request=OwnChatChangeSerializer, responses=MadeOwnChatSerializer)
    def put(self, request: Request) -> Response:
        """Set it up, in the place of the one before. The answer alone has its secret."""
        data = self.read(OwnChatChangeSerializer).validated_data
        made, secret = own_chat.own_chat_set(user=self.user, url=data["url"], format=Format(data["format"]))
        made.made_secret = secret  # type: ignore[attr-defined]
        return Response(MadeOwnChatSerializer(made).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request) -> Response:
        own_chat.own_chat_remove(user=self.user)
        return Response(status=204)


class OwnChatSecretView(IdempotentPosts, ApiView):
    """The secret of your own webhook."""

    scope = "admin"
    posts_are_one_transaction = True
    answers_are_secret = True

    @extend_schema(request=None, responses=WebhookSecretSerializer)
    def post(self, request: Request) -> Response:
        """Make another secret. For a day messages are signed with both."""
        answer = {"secret": own_chat.own_chat_secret(user=self.user), "earlier_until": timezone.now() + OVERLAP}
        return Response(WebhookSecretSerializer(answer).data)


class OwnChatTestView(IdempotentPosts, ApiView):
    """Have a test message sent to your own chat or webhook."""

    scope = "admin"

    @extend_schema(request=None, responses={202: None})
    def post(self, request: Request) -> Response:
        own_chat.own_chat_test(user=self.user)
        return Response(status=202)


urlpatterns: list[URLPattern | URLResolver] = [
    path("account/notifications/", NotificationsView.as_view(), name="notifications"),
    path("account/notifications/chat/", OwnChatView.as_view(), name="own_chat"),
    path("account/notifications/chat/secret/", OwnChatSecretView.as_view(), name="own_chat_secret"),
    path("account/notifications/chat/test/", OwnChatTestView.as_view(), name="own_chat_test"),
]
