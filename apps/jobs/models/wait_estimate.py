"""When jobs that wait will probably start, and how right such estimates were.

Written by `apps.jobs.worker.estimating`, read by `apps.jobs.explanations.wait_estimates`.
"""

from __future__ import annotations

from django.db import models


class WaitEstimate(models.Model):
    """Of one attempt's wait: what was said first, for the measure of how right it was; and what is said now. All spans
    are in seconds after `said_at`; null: without end."""

    job = models.ForeignKey("jobs.Job", on_delete=models.CASCADE, related_name="wait_estimates")
    attempt = models.PositiveIntegerField()
    engine = models.CharField(max_length=63)
    said_at = models.DateTimeField()
    raw_low = models.FloatField()
    raw_high = models.FloatField(null=True)
    """The first range as it was computed, before the correction."""
    said_low = models.FloatField()
    said_high = models.FloatField(null=True)
    """The first range as it was shown."""
    starts_from = models.DateTimeField(null=True)
    starts_until = models.DateTimeField(null=True)
    """The newest range. Both null: nothing can be said at the moment; `starts_until` alone: no end can be said."""
    made_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "attempt"], name="one_estimate_per_wait")]
        indexes = [models.Index(fields=["engine", "-said_at"], name="estimates_of_engine")]

    def __str__(self) -> str:
        return f"{self.job_id}, attempt {self.attempt}: {self.starts_from} to {self.starts_until}"
