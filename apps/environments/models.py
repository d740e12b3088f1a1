"""Sets of installed packages that jobs of a namespace share."""

from __future__ import annotations

from django.db import models

from yardmaster.ids import new_id


class State(models.TextChoices):
    """`building`: a task installs them, or did and was lost. `ready`: their archive can be fetched."""

    BUILDING = "building"
    READY = "ready"


class Environment(models.Model):
    """What pip installed for these requirements on this image. It never changes; it is removed when no job has used it
    for a while, and made again where one asks."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    namespace = models.ForeignKey("namespaces.Namespace", on_delete=models.CASCADE, related_name="+", db_index=False)
    key = models.CharField(max_length=64)
    """SHA-256 of the image and of the requirements."""
    requirements = models.JSONField(default=list)
    python = models.CharField(max_length=16)
    """`3.11`."""
    state = models.CharField(max_length=10, choices=State, default=State.BUILDING)
    lock = models.JSONField(default=list)
    """What was installed: `[{"name", "version", "sha256"}]`."""
    upload_id = models.UUIDField(null=True, blank=True, unique=True)
    """Of its archive, as soon as one is sent."""
    size = models.BigIntegerField(default=0)
    """Bytes of the archive."""
    holder = models.CharField(max_length=36, blank=True)
    """The task that installs them; see `held_until`."""
    held_until = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()
    used_at = models.DateTimeField(db_index=True)
    """When a task last asked for it."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["namespace", "key"], name="one_environment_per_key")]

    def __str__(self) -> str:
        return f"environment {self.id} ({self.state})"
