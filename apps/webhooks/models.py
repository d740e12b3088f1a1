"""Receivers of events outside the portal, and every message that is to be sent to one or was.

A receiver belongs to a namespace, or to a user who has chosen it for their own notifications. Not here: sending
(`worker`), the forms of messages (`yardmaster.outgoing`).
"""

from __future__ import annotations

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models

from apps.namespaces.models import Namespace
from yardmaster.ids import new_id


class Format(models.TextChoices):
    """How a message is written."""

    JSON = "json", "JSON, signed"
    SLACK = "slack", "Slack"
    MATTERMOST = "mattermost", "Mattermost"
    TEAMS = "teams", "Microsoft Teams"


class State(models.TextChoices):
    WAITING = "waiting"
    DELIVERED = "delivered"
    FAILED = "failed"


class Webhook(models.Model):
    """One receiver. Its address and its secrets are sealed together: neither is in the database to be read."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    namespace = models.ForeignKey(Namespace, null=True, on_delete=models.CASCADE, related_name="webhooks")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="own_webhooks")
    format = models.CharField(max_length=10, choices=Format, default=Format.JSON)
    description = models.CharField(max_length=200, blank=True)
    events = models.JSONField(default=list)
    """Those of `yardmaster.outgoing.events` that are sent; of a user's receiver none: their notifications decide."""
    shown = models.CharField(max_length=300)
    """The address as people may see it."""
    sealed = models.BinaryField()
    """JSON: the address, the secret, and the one before it with its end (`sealed_parts`)."""
    key_id = models.CharField(max_length=16)
    is_active = models.BooleanField(default=True)
    off_reason = models.CharField(max_length=300, blank=True)
    """Why the portal has switched it off."""
    created_at = models.DateTimeField()
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")

    # What its receiver did last, and who sends to it now.
    failures = models.PositiveIntegerField(default=0)
    """Failed attempts in a row."""
    failing_since = models.DateTimeField(null=True, blank=True)
    rests_until = models.DateTimeField(null=True, blank=True)
    """Nothing is sent before then."""
    tried_at = models.DateTimeField(null=True, blank=True)
    busy_with = models.CharField(max_length=32, blank=True)
    busy_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(namespace__isnull=True) ^ models.Q(user__isnull=True), name="webhook_has_one_owner"
            )
        ]

    def __str__(self) -> str:
        return f"{self.format} of {self.namespace_id or self.user_id}"


class Delivery(models.Model):
    """One message to one receiver. Its id is the same at every try."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries", db_index=False)
    key = models.CharField(max_length=100)
    """What it tells of, once for each webhook."""
    event = models.CharField(max_length=40)
    body = models.JSONField(encoder=DjangoJSONEncoder)
    """What is told, before it is written in the form of the webhook."""
    is_asked_for = models.BooleanField(default=False)
    """A test, or sent again by a person: also of a webhook that is switched off."""
    created_at = models.DateTimeField()
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    due_at = models.DateTimeField(null=True, blank=True)
    tries = models.PositiveIntegerField(default=0)
    tried_at = models.DateTimeField(null=True, blank=True)
    took_ms = models.PositiveIntegerField(null=True, blank=True)
    status = models.PositiveIntegerField(null=True, blank=True)
    excerpt = models.TextField(blank=True)
    """The beginning of the last answer."""
    problem = models.CharField(max_length=300, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["webhook", "key"], name="one_delivery_per_event")]
        indexes = [
            models.Index(fields=["webhook", "id"], name="deliveries_of_webhook"),
            models.Index(fields=["due_at"], name="deliveries_due", condition=models.Q(due_at__isnull=False)),
            models.Index(fields=["created_at"], name="deliveries_by_age"),
        ]

    def __str__(self) -> str:
        return f"{self.event} to {self.webhook_id}"
