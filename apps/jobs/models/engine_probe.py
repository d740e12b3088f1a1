"""What came of probing an engine, as it was tried last."""

from __future__ import annotations

from django.db import models


class EngineProbe(models.Model):
    """One row per engine and probe. Claimed by conditional update of `next_at`."""

    engine = models.CharField(max_length=63)
    probe = models.CharField(max_length=16)
    settings_digest = models.CharField(max_length=64, blank=True)
    """Of the settings under which it was tried."""
    is_well = models.BooleanField(null=True, blank=True)
    """None: not known."""
    failures = models.PositiveIntegerField(default=0)
    """Tries one after the other that found it wrong."""
    message = models.TextField(blank=True)
    remedy = models.TextField(blank=True)
    tried_at = models.DateTimeField(null=True, blank=True)
    next_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["engine", "probe"], name="one_row_per_probe")]

    def __str__(self) -> str:
        return f"{self.engine}, {self.probe}: {self.message}"
