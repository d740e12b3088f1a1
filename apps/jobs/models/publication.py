"""What a job publishes: the parts that its tasks have sent, and the dataset version that they become together."""

from __future__ import annotations

from django.db import models

from yardmaster.ids import new_id


class Publication(models.Model):
    """What one attempt of a job publishes. Its parts come while the attempt runs; when it has succeeded they become one
    version, or nothing."""

    class State(models.TextChoices):
        """`collecting` also while it is being published. `failed`: the job succeeded and nothing came of it.
        `dropped`: the attempt did not succeed."""

        COLLECTING = "collecting"
        PUBLISHED = "published"
        FAILED = "failed"
        DROPPED = "dropped"

    job = models.ForeignKey("jobs.Job", on_delete=models.CASCADE, related_name="publications", db_index=False)
    attempt = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=State, default=State.COLLECTING)
    target_id = models.UUIDField(default=new_id)
    """The id of the version, which is in the keys of its objects: known before the first of them is there."""
    version_id = models.UUIDField(null=True, blank=True)
    """The version, once it is there. It may have been deleted since."""
    problem = models.JSONField(null=True, blank=True)
    """Why nothing was published: `{"code", "detail", "remedy", "errors"}`."""
    facts = models.JSONField(default=dict, blank=True)
    """What a preparation counted: `records`, `skipped`, and `bad`, the first records that were left out."""
    tries = models.PositiveIntegerField(default=0)
    due_at = models.DateTimeField(null=True, blank=True)
    """When it is tried again, after the object store did not answer."""
    lease = models.UUIDField(null=True, blank=True)
    leased_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "attempt"], name="one_publication_per_attempt")]
        indexes = [
            models.Index(fields=["id"], name="publication_open", condition=models.Q(state="collecting")),
        ]

    def __str__(self) -> str:
        return f"publication of {self.job_id}, attempt {self.attempt} ({self.state})"


class PublicationPart(models.Model):
    """What one task publishes: its upload, or nothing where it wrote nothing."""

    publication = models.ForeignKey(Publication, on_delete=models.CASCADE, related_name="parts", db_index=False)
    task = models.CharField(max_length=32)
    """`worker-1`."""
    upload_id = models.UUIDField(null=True, blank=True, unique=True)
    completed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["publication", "task"], name="one_part_per_task")]

    def __str__(self) -> str:
        return f"part of {self.task}"
