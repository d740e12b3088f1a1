"""Webhooks and deliveries as JSON. Secrets and the addresses of chats are in none of them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.api.serializers import StrictSerializer
from apps.webhooks.models import Delivery, Format, State, Webhook
from yardmaster.outgoing.events import EVENTS
from yardmaster.outgoing.targets import LONGEST

_EVENTS = serializers.ListField(
    child=serializers.CharField(max_length=40), max_length=len(EVENTS),
    help_text=f"Which events are sent: {', '.join(EVENTS)}.",
)  # fmt: skip


class WebhookSerializer(serializers.ModelSerializer[Webhook]):
    """A receiver of events."""

    address = serializers.CharField(
        source="shown", help_text="The address without its query; of a chat the host and the last characters."
    )
    format = serializers.ChoiceField(choices=Format.choices, help_text="How messages are written.")
    events = _EVENTS
    created_by = serializers.SerializerMethodField(help_text="User name; empty if the user was removed.")
    failing_since = serializers.DateTimeField(
        allow_null=True, help_text="Since when every attempt has failed; null if the last one succeeded."
    )
    rests_until = serializers.DateTimeField(
        allow_null=True, help_text="Nothing is sent before then, after failures; or null."
    )
    off_reason = serializers.CharField(help_text="Why the portal has switched it off; empty if it has not.")

    class Meta:
        model = Webhook
        fields = [
            "id", "address", "format", "events", "description", "is_active", "off_reason", "failures", "failing_since",
            "rests_until", "tried_at", "created_at", "created_by",
        ]  # fmt: skip
        read_only_fields = fields

    def get_created_by(self, webhook: Webhook) -> str:
        return webhook.created_by.username if webhook.created_by else ""


class NewWebhookSerializer(StrictSerializer):
    """A webhook to be made."""

    url = serializers.CharField(max_length=LONGEST, help_text="Where messages are sent, by POST. Never shown again.")
    events = _EVENTS
    format = serializers.ChoiceField(
        choices=Format.choices, default=Format.JSON, help_text="`json` is signed; the others are chats."
    )
    description = serializers.CharField(max_length=200, default="", allow_blank=True, help_text="For people.")
    is_active = serializers.BooleanField(default=True, help_text="Whether events are sent.")


class WebhookChangeSerializer(StrictSerializer):
    """What is left out stays as it is."""

    url = serializers.CharField(max_length=LONGEST, required=False, help_text="Another address; the secret stays.")
    events = serializers.ListField(
        child=serializers.CharField(max_length=40), max_length=len(EVENTS), required=False,
        help_text="All events that are sent from now on.",
    )  # fmt: skip
    description = serializers.CharField(max_length=200, required=False, allow_blank=True, help_text="For people.")
    is_active = serializers.BooleanField(required=False, help_text="Switching it on forgets earlier failures.")


class MadeWebhookSerializer(WebhookSerializer):
    """The new webhook, with its secret."""

    secret = serializers.CharField(
        source="made_secret", help_text="Signs the messages. Not shown again; empty for a chat."
    )

    class Meta(WebhookSerializer.Meta):
        fields = [*WebhookSerializer.Meta.fields, "secret"]
        read_only_fields = fields


class WebhookSecretSerializer(serializers.Serializer[Any]):
    """A new secret."""

    secret = serializers.CharField(help_text="Signs from now on. Not shown again.")
    earlier_until = serializers.DateTimeField(help_text="Until then the earlier secret signs, too.")


class WebhookDeliverySerializer(serializers.ModelSerializer[Delivery]):
    """One message and what came of it."""

    event_id = serializers.SerializerMethodField(help_text="`id` of the message: the same if it is sent again by hand.")
    state = serializers.ChoiceField(choices=State.choices, help_text="`waiting` has a `next_try`.")
    next_try = serializers.DateTimeField(
        allow_null=True, source="due_at", help_text="When it is tried (again), or null."
    )
    status = serializers.IntegerField(
        allow_null=True, help_text="HTTP status of the last answer; null if there was none."
    )
    took_ms = serializers.IntegerField(allow_null=True, help_text="Milliseconds of the last attempt, or null.")
    excerpt = serializers.CharField(help_text="The first 2 KiB of the last answer.")
    problem = serializers.CharField(help_text="Why the last attempt failed; empty if it succeeded.")

    class Meta:
        model = Delivery
        fields = [
            "id", "event", "event_id", "state", "status", "tries", "tried_at", "took_ms", "next_try", "problem",
            "excerpt", "created_at",
        ]  # fmt: skip
        read_only_fields = fields

    def get_event_id(self, delivery: Delivery) -> str:
        return str(delivery.body.get("id", ""))
