"""Whether tasks on an engine reach the portal, as it was tried last."""

from __future__ import annotations

from django.db import models


class EngineReach(models.Model):
    """One row per engine that can try it. Claimed by conditional update of `next_at`."""

    engine = models.CharField(max_length=63, primary_key=True)
    subject = models.CharField(max_length=64, blank=True)
    """The digest of what was tried: the portal's address for tasks, and the engine's options."""
    reached = models.BooleanField(null=True, blank=True)
    """None: not known."""
    failures = models.PositiveIntegerField(default=0)
    """Tries one after the other that did not reach it."""
    message = models.TextField(blank=True)
    remedy = models.TextField(blank=True)
    tried_at = models.DateTimeField(null=True, blank=True)
    next_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.engine}: {self.message}"
