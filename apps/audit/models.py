"""What people did, for good: rows are added and never changed."""

from __future__ import annotations

from typing import Any

from django.db import models

from yardmaster.ids import new_id


class AuditEvent(models.Model):
    """One deed. Ids and names as they were, no foreign keys: it outlives whom and what it tells of."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    at = models.DateTimeField(auto_now_add=True)
    actor_id = models.UUIDField(null=True, blank=True, db_index=True)
    """None: the portal itself, or somebody who was not signed in."""
    actor_name = models.CharField(max_length=150, blank=True)
    action = models.CharField(max_length=64)
    """What was done, as `<noun>.<verb>`: `user.deactivate`."""
    subject = models.CharField(max_length=200)
    """To what: `user:<id>`, `job:<id>`, …"""
    namespace_id = models.UUIDField(null=True, blank=True)
    facts = models.JSONField(default=dict)

    class Meta:
        indexes = [models.Index(fields=["namespace_id", "-id"], name="audit_of_a_namespace")]

    def __str__(self) -> str:
        return f"{self.actor_name or 'the portal'}: {self.action} {self.subject}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise TypeError("An audit event is never changed.")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> tuple[int, dict[str, int]]:
        raise TypeError("An audit event is never deleted.")
