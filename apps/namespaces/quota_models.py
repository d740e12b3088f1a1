"""What a new namespace may hold, and limits that change from one time to another.

Limits are kept flat, by the fields of a quota and by the names of other resources; null: no limit. Not here: which of
them are in force (`yardmaster.queueing.scheduled_limits`), and writing them into a quota (`quota_limits`).
"""

from __future__ import annotations

from django.conf import settings
from django.db import models

from yardmaster.ids import new_id

LONGEST_REASON = 300


class Kind(models.TextChoices):
    """What kind of namespace defaults are for."""

    PERSONAL = "personal", "Personal namespaces"
    TEAM = "team", "Team namespaces"


class DefaultQuota(models.Model):
    """What a new namespace of a kind may hold. Without a row: what the settings say."""

    kind = models.CharField(primary_key=True, max_length=10, choices=Kind)
    limits = models.JSONField(default=dict)
    changed_at = models.DateTimeField()
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    def __str__(self) -> str:
        return f"default quota of {self.kind} namespaces"


class ScheduledQuota(models.Model):
    """Limits of a namespace that hold from `starts_at` to `ends_at`, if it is not cancelled before."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    namespace = models.ForeignKey("namespaces.Namespace", on_delete=models.CASCADE, related_name="scheduled_quotas")
    limits = models.JSONField()
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    reason = models.CharField(max_length=LONGEST_REASON)
    made_at = models.DateTimeField()
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    begun_at = models.DateTimeField(null=True, blank=True)
    """When the limits came into force. None: not yet, or never."""
    over_at = models.DateTimeField(null=True, blank=True)
    """When they ceased to be in force, or it was cancelled. None: it is still to come, or in force."""
    cancelled = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(ends_at__gt=models.F("starts_at")), name="quota_ends_after_start")
        ]
        indexes = [models.Index(fields=["starts_at"], condition=models.Q(over_at=None), name="scheduled_quotas_open")]

    def __str__(self) -> str:
        return f"limits of {self.namespace_id} until {self.ends_at}"
