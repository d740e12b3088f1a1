"""Presets of the launch form: a name for a strategy with its sizes, which administrators offer to everyone.

Written by `apps.jobs.presets`, which also says what a preset may have.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models

from yardmaster.ids import new_id

LONGEST_NAME = 63
LONGEST_DESCRIPTION = 200


class LaunchPreset(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    name = models.CharField(max_length=LONGEST_NAME, unique=True)
    description = models.CharField(max_length=LONGEST_DESCRIPTION, blank=True)
    position = models.PositiveSmallIntegerField(default=0)
    """Among those that are offered, the lowest first."""
    engine = models.CharField(max_length=63, blank=True)
    """Empty: whatever the form has."""
    spec = models.JSONField()
    """Keys of a job file: `strategy`, `roles`, `image`, `max_runtime`, `priority_class`."""
    changed_at = models.DateTimeField()
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    def __str__(self) -> str:
        return self.name
