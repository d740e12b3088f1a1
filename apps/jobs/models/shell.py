"""Terminals that users opened in tasks: by whom, when and for how long. What was typed is not kept."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from apps.jobs.models.attempt import ROLES
from yardmaster.ids import new_id


class TaskShell(models.Model):
    """One terminal. Two sockets belong to it, each with a time until which it is known to be there: the user's, and
    that of the task's runner."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    job = models.ForeignKey("jobs.Job", on_delete=models.CASCADE, related_name="shells", db_index=False)
    attempt = models.PositiveIntegerField()
    role = models.CharField(max_length=16, choices=ROLES)
    index = models.PositiveIntegerField()
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    is_command = models.BooleanField(default=False)
    """One command without a terminal. What it is was not kept either."""
    opened_at = models.DateTimeField()
    joined_at = models.DateTimeField(null=True, blank=True)
    """When the task's runner came."""
    ended_at = models.DateTimeField(null=True, blank=True)
    why = models.CharField(max_length=200, blank=True)
    """Why it has ended, in words."""
    user_until = models.DateTimeField()
    runner_until = models.DateTimeField(null=True, blank=True)
    channel = models.CharField(max_length=100)
    """Where the message server reaches the user's socket."""

    class Meta:
        indexes = [
            models.Index(
                fields=["job", "attempt"], name="open_shells_of_job", condition=models.Q(ended_at__isnull=True)
            ),
            models.Index(fields=["user_until"], name="open_shells", condition=models.Q(ended_at__isnull=True)),
        ]

    def __str__(self) -> str:
        return f"terminal in {self.role}-{self.index} of {self.job_id}"
