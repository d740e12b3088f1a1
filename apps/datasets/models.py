"""Datasets, their versions, and what was found in their files."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from apps.uploads.versioned.models import Collection, Version
from yardmaster.ids import new_id


class Dataset(Collection):
    """Data that jobs train on."""


class DatasetVersion(Version):
    """What a job reads. `records` is the sum over the files whose format is known; None: none is."""

    parent = models.ForeignKey(Dataset, on_delete=models.CASCADE, related_name="versions", db_index=False)
    records = models.BigIntegerField(null=True, blank=True)
    problems = models.JSONField(default=list)
    """Damage that was found when the version was made: `[{"path", "fault"}]`, the first hundred."""
    source_job = models.UUIDField(null=True, blank=True, db_index=True)
    """The job that published it, which may have been deleted since. None: people uploaded it."""


class MadeDataset(models.Model):
    """A dataset that the portal makes from a source that it knows, once in each namespace."""

    class State(models.TextChoices):
        MAKING = "making"
        READY = "ready"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    namespace = models.ForeignKey("namespaces.Namespace", on_delete=models.CASCADE, related_name="+", db_index=False)
    source = models.CharField(max_length=120)
    """`keras/mnist`."""
    state = models.CharField(max_length=10, choices=State, default=State.MAKING)
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    problem = models.JSONField(null=True, blank=True)
    """Why it failed, as `apps.errors.error_to_json` writes it."""
    received = models.BigIntegerField(default=0)
    """Bytes of the try under way, or of the last one."""
    upload_id = models.UUIDField(null=True, blank=True)
    """Of the try under way."""
    version_id = models.UUIDField(null=True, blank=True)
    """What was made. No foreign key: the version may be deleted, and is then made again."""
    holder = models.CharField(max_length=36, blank=True)
    """The worker that makes it; see `held_until`."""
    held_until = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["namespace", "source"], name="one_made_dataset_per_source")]
        indexes = [models.Index(fields=["state", "held_until"], name="made_dataset_under_way")]

    def __str__(self) -> str:
        return f"{self.source} ({self.state})"


class ConnectionCopy(models.Model):
    """Rows of a cluster of Apache Ignite that become a version of a dataset: a cache, or what a query finds."""

    class State(models.TextChoices):
        COPYING = "copying"
        READY = "ready"
        FAILED = "failed"
        CANCELLED = "cancelled"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    namespace = models.ForeignKey("namespaces.Namespace", on_delete=models.CASCADE, related_name="+", db_index=False)
    connection = models.CharField(max_length=100)
    """The name of a data connection of the namespace: it may be changed or deleted meanwhile."""
    cache = models.CharField(max_length=200, blank=True)
    query = models.TextField(blank=True)
    dataset = models.CharField(max_length=100)
    """The name of the dataset, which need not be there yet."""
    state = models.CharField(max_length=10, choices=State, default=State.COPYING)
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    problem = models.JSONField(null=True, blank=True)
    """Why it failed, as `apps.errors.error_to_json` writes it."""
    rows = models.BigIntegerField(default=0)
    written = models.BigIntegerField(default=0)
    """Rows and bytes of the try under way, or of the last one."""
    tries = models.PositiveSmallIntegerField(default=0)
    upload_id = models.UUIDField(null=True, blank=True)
    """Of the try under way."""
    version_id = models.UUIDField(null=True, blank=True)
    """What was made. No foreign key: the version may be deleted."""
    holder = models.CharField(max_length=36, blank=True)
    """The worker that copies; see `held_until`."""
    held_until = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["state", "held_until"], name="connection_copy_under_way"),
            models.Index(fields=["namespace", "connection", "-started_at"], name="connection_copy_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.connection} to {self.dataset} ({self.state})"
