"""The secrets of a namespace, sealed, and which jobs use them."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from apps.namespaces.models import Namespace
from yardmaster.ids import new_id


class Kind(models.TextChoices):
    """What the value is. Only the portal itself reads pairs of keys."""

    TEXT = "text"
    S3 = "s3"
    """`{"access_key": …, "secret_key": …}`: credentials of a bucket."""
    S3_ADMIN = "s3_admin", "S3, for administrators"
    """The same, with which administrators alone register buckets. Members read what was registered."""


class Secret(models.Model):
    """One named value of a namespace. The value is only ever opened for a task, or for a bucket that it is a credential
    of: no page and no answer for people contains it."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    namespace = models.ForeignKey(Namespace, on_delete=models.CASCADE, related_name="secrets")
    name = models.CharField(max_length=128)
    kind = models.CharField(max_length=8, choices=Kind, default=Kind.TEXT)
    description = models.CharField(max_length=500, blank=True)
    sealed = models.BinaryField()
    """The value, encrypted and authenticated (`sealing`)."""
    key_id = models.CharField(max_length=16)
    """Which key sealed it."""
    size = models.PositiveIntegerField()
    """Bytes of the value."""
    created_at = models.DateTimeField()
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="secrets_created"
    )
    changed_at = models.DateTimeField()
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="secrets_changed"
    )
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["namespace", "name"], name="one_secret_of_a_name")]

    def __str__(self) -> str:
        return f"{self.name} of {self.namespace_id}"


class SecretUse(models.Model):
    """A job that names the secret. No foreign key to the job: jobs know secrets, not the reverse."""

    secret = models.ForeignKey(Secret, on_delete=models.CASCADE, related_name="uses", db_index=False)
    job_id = models.UUIDField(db_index=True)
    first_used_at = models.DateTimeField(null=True, blank=True)
    """When a task of it was first given the value; None: not yet."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["secret", "job_id"], name="one_row_per_secret_and_job")]

    def __str__(self) -> str:
        return f"{self.secret_id} in {self.job_id}"
