"""The few numbers of a job that lists show and are sorted by, and which of them each user wants to see."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from yardmaster.job.metrics import LONGEST_NAME


class JobMetric(models.Model):
    """One scalar of a job: its latest, lowest and highest value. Written by `apps.jobs.state.metrics` alone, as points
    arrive. The points are `ScalarPoint`s; lists never read those."""

    job = models.ForeignKey("jobs.Job", on_delete=models.CASCADE, related_name="metrics", db_index=False)
    namespace = models.ForeignKey("namespaces.Namespace", on_delete=models.CASCADE, related_name="+", db_index=False)
    """The job's, for lists of a namespace."""
    name = models.CharField(max_length=LONGEST_NAME)
    """`loss`, or with a run `validation/loss`."""
    attempt = models.PositiveIntegerField()
    """The one whose latest value it is."""
    step = models.BigIntegerField(null=True)
    latest = models.FloatField(null=True)
    """None: the last point is not a finite number."""
    not_finite = models.CharField(max_length=4, blank=True, default="")
    """`nan`, `inf` or `-inf`, where `latest` is None."""
    lowest = models.FloatField(null=True)
    highest = models.FloatField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "name"], name="one_metric_per_name")]
        indexes = [
            models.Index(fields=["namespace", "name", "latest", "job"], name="jobs_by_metric"),
            models.Index(fields=["name", "latest", "job"], name="all_jobs_by_metric"),
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.job_id}: {self.latest}"


class JobColumns(models.Model):
    """Which further columns a user wants in the list of jobs of a namespace, and how it is sorted. No row: none."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    namespace = models.ForeignKey("namespaces.Namespace", null=True, on_delete=models.CASCADE, related_name="+")
    """None: of the list of all namespaces."""
    columns = models.JSONField(default=list)
    """As `yardmaster.job.list_columns` writes them."""
    ordering = models.CharField(max_length=120, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "namespace"], name="one_choice_of_columns"),
            models.UniqueConstraint(
                fields=["user"], condition=models.Q(namespace__isnull=True), name="one_choice_of_columns_everywhere"
            ),
        ]

    def __str__(self) -> str:
        return f"columns of {self.user_id} in {self.namespace_id}"
