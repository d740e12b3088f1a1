"""The packages that were installed for a job."""

from __future__ import annotations

from django.db import models


class JobPackages(models.Model):
    """What pip installed for one attempt, so that the same can be installed again."""

    job = models.ForeignKey("jobs.Job", on_delete=models.CASCADE, related_name="packages", db_index=False)
    attempt = models.PositiveIntegerField()
    lock = models.JSONField(default=list)
    """`[{"name", "version", "sha256"}]`; empty where the image had all that was asked for."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "attempt"], name="one_list_of_packages_per_attempt")]

    def __str__(self) -> str:
        return f"packages of {self.job_id}, attempt {self.attempt}"
