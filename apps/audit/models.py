"""What people did: rows are added and never changed, except that one which stands for several counts them. They are
deleted when they are older than `YARDMASTER_AUDIT_DAYS`. The database refuses everything else (`append_only`)."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import F
from django.db.models.functions import Upper

from yardmaster.ids import new_id


class AuditEvent(models.Model):
    """One action. Ids and names as they were, no foreign keys: it outlives what it names."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    at = models.DateTimeField(auto_now_add=True)
    actor_id = models.UUIDField(null=True, blank=True, db_index=True)
    """None: the portal itself, or a caller who was not signed in."""
    actor_name = models.CharField(max_length=150, blank=True)
    action = models.CharField(max_length=64)
    """What was done, as `<noun>.<verb>`: `user.deactivate`."""
    subject = models.CharField(max_length=200)
    """To what: `user:<id>`, `job:<id>`, …"""
    namespace_id = models.UUIDField(null=True, blank=True)
    facts = models.JSONField(default=dict)
    address = models.GenericIPAddressField(null=True, blank=True)
    """Where the request came from; None: from no request, or over a socket."""
    agent = models.CharField(max_length=200, blank=True)
    """What the client called itself. A claim."""
    count = models.PositiveIntegerField(default=1)
    """How often it was done within the time that this row stands for."""
    repeat_key = models.CharField(max_length=64, null=True, blank=True, unique=True)
    """What makes another event the same as this one; None: a row of its own."""

    class Meta:
        indexes = [
            models.Index(fields=["namespace_id", "-id"], name="audit_of_a_namespace"),
            models.Index(fields=["action", "-id"], name="audit_of_an_action"),
            models.Index(fields=["at"], name="audit_by_time"),
            models.Index(fields=["subject", "-id"], name="audit_of_a_subject"),
            models.Index(fields=["address", "-id"], name="audit_of_an_address"),
            models.Index(Upper("actor_name"), F("id").desc(), name="audit_of_a_name"),
        ]

    def __str__(self) -> str:
        return f"{self.actor_name or 'the portal'}: {self.action} {self.subject}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise TypeError("An audit event is never changed.")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        raise TypeError("An audit event is never deleted.")


class AuditRetention(models.Model):
    """The one row that says which events may be deleted now: those before `until`. None: none. Only the transaction
    that cleans sets it, and takes it back, so that no other sees it."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    until = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"events before {self.until}"
