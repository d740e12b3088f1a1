"""What people write on jobs to find them again: tags of a job, and pins, which are each user's own."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from yardmaster.ids import new_id


class JobTag(models.Model):
    """One of `Job.tags`, to find jobs by it. Written by `apps.jobs.labels` alone, with the column."""

    job = models.ForeignKey("jobs.Job", on_delete=models.CASCADE, related_name="+", db_index=False)
    namespace = models.ForeignKey("namespaces.Namespace", on_delete=models.CASCADE, related_name="+", db_index=False)
    """The job's, for the tags that a namespace has."""
    name = models.CharField(max_length=40)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "name"], name="one_tag_per_name")]
        indexes = [
            models.Index(fields=["namespace", "name", "job"], name="jobs_by_tag"),
            models.Index(fields=["name", "job"], name="all_jobs_by_tag"),
        ]

    def __str__(self) -> str:
        return f"{self.name} on {self.job_id}"


class JobPin(models.Model):
    """A job that a user wants on top of their list."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    job = models.ForeignKey("jobs.Job", on_delete=models.CASCADE, related_name="pins")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "job"], name="one_pin_per_job")]

    def __str__(self) -> str:
        return f"{self.user_id} pinned {self.job_id}"
