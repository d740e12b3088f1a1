"""Buckets of other S3 servers whose objects are datasets: where they are, whose keys read them, how far a scan is."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from apps.namespaces.models import Namespace
from apps.secrets.models import Secret
from yardmaster.ids import new_id


class State(models.TextChoices):
    """Of the last scan."""

    SCANNING = "scanning"
    READY = "ready"
    """It made a version, or found nothing new."""
    FAILED = "failed"


class Bucket(models.Model):
    """A bucket, or a folder in it, that is a dataset. Nothing of it is copied; its objects are never written."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    namespace = models.ForeignKey(Namespace, on_delete=models.CASCADE, related_name="+")
    endpoint = models.CharField(max_length=300)
    bucket = models.CharField(max_length=63)
    prefix = models.CharField(max_length=512, blank=True)
    region = models.CharField(max_length=63)
    secret = models.ForeignKey(Secret, on_delete=models.SET_NULL, null=True, related_name="+")
    dataset_id = models.UUIDField(null=True, blank=True, unique=True)
    """The dataset that the first scan makes. No foreign key: datasets know buckets, not the reverse."""
    name = models.CharField(max_length=100)
    """Of that dataset, until it is there."""
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField()

    state = models.CharField(max_length=10, choices=State, default=State.SCANNING)
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    problem = models.JSONField(null=True, blank=True)
    """Why the last scan failed, or why the one under way is tried again, as `apps.errors.error_to_json` writes it."""
    upload_id = models.UUIDField(null=True, blank=True)
    """Where the scan under way keeps what it has found."""
    scanned = models.PositiveIntegerField(default=0)
    scanned_bytes = models.BigIntegerField(default=0)
    last_path = models.CharField(max_length=1024, blank=True)
    left_out = models.PositiveIntegerField(default=0)
    """Objects that the scan has found and that cannot be files."""
    left_out_first = models.JSONField(default=list)
    """The first of them: `{"path", "reason"}`."""
    failures = models.PositiveSmallIntegerField(default=0)
    """Of the server, one after the other, since the scan under way has listed something."""
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    next_look_at = models.DateTimeField(null=True, blank=True, db_index=True)

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}"

    @property
    def address(self) -> str:
        """As people write it."""
        return f"s3://{self.bucket}/{self.prefix}"


class ScanTurn(models.Model):
    """When a namespace last had a turn with a scan of one of its buckets, in any worker."""

    namespace = models.OneToOneField(Namespace, primary_key=True, on_delete=models.CASCADE, related_name="scan_turn")
    taken_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"turn of {self.namespace_id}"
