"""Datasets, their versions, and what was found in their files."""

from __future__ import annotations

from django.db import models

from apps.uploads.versioned.models import Collection, Version


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
