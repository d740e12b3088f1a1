"""Removals of users and namespaces: what was asked, how far it has come, and what is left."""

from __future__ import annotations

from django.db import models

from yardmaster.ids import new_id


class Data(models.TextChoices):
    """What becomes of jobs, logs, models, datasets and code."""

    KEEP = "keep"
    """They stay, in a closed namespace that administrators read: an archive."""
    DELETE = "delete"


class Removal(models.Model):
    """One removal. Ids and names as they were, no foreign keys: it outlives whom and what it removes."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    namespace_id = models.UUIDField()
    slug = models.CharField(max_length=63)
    user_id = models.UUIDField(null=True, blank=True)
    """Whose namespace it is and who goes with it; None: a team's."""
    username = models.CharField(max_length=150, blank=True)
    data = models.CharField(max_length=6, choices=Data, default=Data.KEEP)
    asked_by_id = models.UUIDField()
    asked_by_name = models.CharField(max_length=150)
    asked_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    left = models.JSONField(default=list, blank=True)
    """`[{"what", "why"}]`: while it is under way, what it waits for; at its end, what stays."""
    found = models.JSONField(default=dict, blank=True, db_default={})
    """By kind (`contents.KINDS`), the most that there was at any look since the removal began. Empty: not counted."""
    kept = models.JSONField(default=dict, blank=True, db_default={})
    """By kind, what was still there at its end."""
    next_look_at = models.DateTimeField(null=True, blank=True, db_index=True)
    setbacks = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["namespace_id"], condition=models.Q(ended_at__isnull=True), name="one_removal_at_a_time"
            )
        ]

    def __str__(self) -> str:
        return f"removal of {self.username or self.slug}"
