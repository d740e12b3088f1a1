"""Named models and their numbered versions: what jobs exported. A version's files are its upload's.

They outlive the job, and so does what a version repeats of it.
"""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db import models
from django.utils import timezone

from apps.uploads.versioned.models import Collection, Version


class Stage(models.TextChoices):
    """What a version is used for. Of `staging` and `production` a model has one version each."""

    NONE = "", "No stage"
    STAGING = "staging"
    PRODUCTION = "production"
    ARCHIVED = "archived"


ONE_VERSION_EACH = (Stage.STAGING, Stage.PRODUCTION)


class Deletable(models.Model):
    """What is hidden when it is deleted, and removed after a grace period."""

    deleted_at = models.DateTimeField(null=True, blank=True)
    deleted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )

    class Meta:
        abstract = True

    @property
    def removed_at(self) -> datetime | None:
        """When it is removed; None: it is not deleted."""
        return None if self.deleted_at is None else self.deleted_at + settings.YARDMASTER_MODEL_GRACE


class Model(Collection, Deletable):
    """A named model. Jobs add versions to it; it goes when it is deleted, after a grace period."""

    updated_at = models.DateTimeField(default=timezone.now)
    """When a version was last added or given a stage."""

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["namespace", "name"],
                name="model_name_is_unique_in_namespace",
                condition=models.Q(deleted_at__isnull=True),
            )
        ]
        indexes = [
            models.Index(fields=["namespace", "id"], name="model_list"),
            models.Index(fields=["deleted_at"], name="model_deleted", condition=models.Q(deleted_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return self.name


class ModelVersion(Version, Deletable):
    """What one attempt of a job left in its model directory. `created_by` began that attempt."""

    parent = models.ForeignKey(Model, on_delete=models.CASCADE, related_name="versions", db_index=False)
    job = models.ForeignKey("jobs.Job", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    """None when the job is deleted; `source_job` and `job_name` stay."""
    source_job = models.UUIDField(db_index=True)
    job_name = models.CharField(max_length=200)
    attempt = models.PositiveIntegerField()
    stopped = models.BooleanField(default=False)
    """The task that sent it had been asked to stop: its work was not done."""
    source = models.JSONField(default=dict)
    """What it was made of: `code`, `inputs`, `entry_point`, `arguments`, `strategy`, `engine`, `image`; `makers`;
    `found_in`, the place in the working folder, where it was not in the model directory."""
    metrics = models.JSONField(default=list)
    """The last value of each scalar of the job: `[{"run", "tag", "step", "value"}]`, by run and tag."""
    contents = models.JSONField(null=True, blank=True)
    """What was read from its files (`yardmaster.formats.models`); None until a worker has read them."""
    stage = models.CharField(max_length=10, choices=Stage, default=Stage.NONE, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["parent", "number"], name="modelversion_numbers_are_unique"),
            models.UniqueConstraint(
                fields=["parent", "stage"],
                name="one_version_per_stage",
                condition=models.Q(stage__in=[Stage.STAGING, Stage.PRODUCTION]),
            ),
        ]
        indexes = [
            models.Index(
                fields=["deleted_at"], name="modelversion_deleted", condition=models.Q(deleted_at__isnull=False)
            ),
            models.Index(fields=["id"], name="modelversion_unread", condition=models.Q(contents__isnull=True)),
        ]

    def __str__(self) -> str:
        return f"version {self.number} of {self.parent_id}"


class ModelUpload(models.Model):
    """An export that a task is uploading. Gone once it is a version, or given up."""

    upload_id = models.UUIDField(unique=True)
    job = models.ForeignKey("jobs.Job", on_delete=models.CASCADE, related_name="+")
    attempt = models.PositiveIntegerField()
    stopped = models.BooleanField(default=False)
    found_in = models.CharField(max_length=512, blank=True)
    """Where in the working folder the script saved it; empty: in its model directory."""

    def __str__(self) -> str:
        return f"model of {self.job_id}, attempt {self.attempt}"


class StageChange(models.Model):
    """A version was given a stage, or lost it. Stays when the version is deleted, and goes with the model."""

    model = models.ForeignKey(Model, on_delete=models.CASCADE, related_name="stage_changes", db_index=False)
    number = models.PositiveIntegerField()
    """The version's."""
    before = models.CharField(max_length=10, choices=Stage, blank=True)
    after = models.CharField(max_length=10, choices=Stage, blank=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    note = models.CharField(max_length=1_000, blank=True)
    at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["model", "id"], name="stage_changes_of_model")]

    def __str__(self) -> str:
        return f"version {self.number}: {self.before or 'none'} to {self.after or 'none'}"
