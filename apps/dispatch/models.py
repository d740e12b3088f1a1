"""Events that other apps are to hear of, and which of several equal processes leads."""

from __future__ import annotations

from django.core.serializers.json import DjangoJSONEncoder
from django.db import models


class OutboxEvent(models.Model):
    """Something that happened, written in the transaction in which it did. Its reader deletes it (`outbox`)."""

    topic = models.CharField(max_length=32)
    subject = models.UUIDField()
    facts = models.JSONField(default=dict, encoder=DjangoJSONEncoder)
    created_at = models.DateTimeField(auto_now_add=True)
    failures = models.PositiveIntegerField(default=0)
    """How often its reader has failed."""
    next_try_at = models.DateTimeField(null=True, blank=True)
    """Not before then, after a failure. None: at once."""

    class Meta:
        indexes = [models.Index(fields=["topic", "id"], name="outbox_by_topic")]

    def __str__(self) -> str:
        return f"{self.topic} of {self.subject}"


class Leadership(models.Model):
    """A post that one process holds until a time, and renews before. Claimed by conditional update."""

    post = models.CharField(max_length=32, primary_key=True)
    holder = models.CharField(max_length=32, blank=True)
    until = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.post}: {self.holder}"
