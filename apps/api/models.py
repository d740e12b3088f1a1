"""What the API remembers of requests: the answers to POSTs that came with an `Idempotency-Key`."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from yardmaster.ids import new_id


class IdempotencyRecord(models.Model):
    """One key of one user: claimed while its request runs (`status` empty), then holding the answer."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=200)
    fingerprint = models.CharField(max_length=64)
    """Hash of method, address and body: the same key with another request is a mistake."""
    claim = models.UUIDField()
    """Changes hands when a claim is taken over; only its holder may write the answer."""
    claimed_at = models.DateTimeField(db_index=True)
    status = models.PositiveSmallIntegerField(null=True, blank=True)
    content_type = models.CharField(max_length=100, blank=True)
    location = models.CharField(max_length=500, blank=True)
    body = models.TextField(blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="one_record_per_key")]

    def __str__(self) -> str:
        return f"{self.key} of {self.user_id}"
