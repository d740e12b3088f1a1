"""Preemption: whether an engine's jobs may be preempted, and which were, for whom.

Written by `apps.jobs.state.preemptions` and `preemption_policy`. Not here: whom it meets
(`yardmaster.queueing.takings`).
"""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from yardmaster.ids import new_id

LONGEST_MINUTES = 7 * 24 * 60
MOST_A_DAY = 100


class PreemptionPolicy(models.Model):
    """What an administrator allows on an engine. Without a row: nothing is preempted there."""

    engine = models.CharField(max_length=63, primary_key=True)
    is_on = models.BooleanField(default=False)
    least_minutes = models.PositiveIntegerField(
        default=10, validators=[MinValueValidator(1), MaxValueValidator(LONGEST_MINUTES)]
    )
    """A job runs so long before it is preempted; and for one that waits nothing more is preempted before so long."""
    most_a_day = models.PositiveIntegerField(
        default=3, validators=[MinValueValidator(1), MaxValueValidator(MOST_A_DAY)]
    )
    """How often one job is preempted in 24 hours."""

    def __str__(self) -> str:
        return f"preemption on {self.engine}"


class Preemption(models.Model):
    """One attempt that gave up its place. The names stay when what they name is removed."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    policy = models.ForeignKey(
        PreemptionPolicy, on_delete=models.PROTECT, related_name="preemptions", db_column="engine", db_index=False
    )
    job = models.ForeignKey("jobs.Job", on_delete=models.CASCADE, related_name="preemptions", db_index=False)
    attempt = models.PositiveIntegerField()
    for_job = models.ForeignKey("jobs.Job", null=True, on_delete=models.SET_NULL, related_name="+")
    """Who needed the place."""
    for_namespace = models.CharField(max_length=63)
    for_class = models.CharField(max_length=63, blank=True)
    is_guaranteed = models.BooleanField()
    """What it held was guaranteed to the other's namespace; else the other's priority is higher."""
    message = models.TextField()
    """For the owner."""
    at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    """When its place was free."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "attempt"], name="one_preemption_per_attempt")]
        indexes = [
            models.Index(fields=["policy", "at"], name="preemptions_by_time"),
            models.Index(fields=["policy"], name="preemptions_under_way", condition=models.Q(ended_at__isnull=True)),
        ]

    def __str__(self) -> str:
        return f"attempt {self.attempt} of {self.job_id} for {self.for_job_id}"
