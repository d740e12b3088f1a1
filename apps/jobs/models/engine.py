"""What was last heard of each engine, and what it had over the last days: pages read this and ask no engine.

Written by `apps.jobs.engines.snapshots` alone.
"""

from __future__ import annotations

from django.db import models


class EngineNow(models.Model):
    """One row per engine that the settings name or named. Amounts are by resource, as quotas call them."""

    engine = models.CharField(max_length=63, primary_key=True)
    answers = models.BooleanField(null=True, blank=True)
    """None: it was not asked yet."""
    since = models.DateTimeField(null=True, blank=True)
    """Since when it answers, or does not."""
    asked_at = models.DateTimeField(null=True, blank=True)
    answered_at = models.DateTimeField(null=True, blank=True)
    message = models.TextField(blank=True)
    """What it said when it was asked last, where it did not answer."""
    remedy = models.TextField(blank=True)
    total = models.JSONField(default=dict, blank=True)
    free = models.JSONField(default=dict, blank=True)
    """What others than the portal leave of it, as of `answered_at`."""
    used = models.JSONField(default=dict, blank=True)
    """What the portal's tasks were measured to use, as of the newest sample."""
    machine_count = models.PositiveIntegerField(default=0)
    machines = models.JSONField(default=list, blank=True)
    """The first of them by name, as `snapshots` writes them: `[{"name", "state", "total", "free", "tasks", …}]`. May
    be large: lists of engines leave it out."""
    next_at = models.DateTimeField(db_index=True)
    """When it is asked again; a claim moves it on."""

    def __str__(self) -> str:
        return f"{self.engine}: {self.machine_count} machines"


class EngineSample(models.Model):
    """What an engine had at a time, and what was held and used of it: for the plots of the last days."""

    engine = models.CharField(max_length=63)
    at = models.DateTimeField()
    total = models.JSONField(default=dict)
    free = models.JSONField(default=dict)
    reserved = models.JSONField(default=dict)
    used = models.JSONField(default=dict)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["engine", "at"], name="one_sample_at_a_time")]

    def __str__(self) -> str:
        return f"{self.engine} at {self.at:%Y-%m-%d %H:%M}"
