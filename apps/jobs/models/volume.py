"""The volumes of namespaces on engines that have such, and the versions of datasets that were published to them."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from yardmaster.ids import new_id


class Volume(models.Model):
    """A volume of a namespace on one engine: what is wanted of it, and how it was last found. Written by
    `apps.jobs.engines.volumes`."""

    class Kind(models.TextChoices):
        """As `yardmaster.job.volumes.VolumeKind`."""

        DATA = "data"
        LOG = "log"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    namespace = models.ForeignKey("namespaces.Namespace", on_delete=models.CASCADE, related_name="volumes")
    engine = models.CharField(max_length=63)
    kind = models.CharField(max_length=4, choices=Kind)
    size = models.BigIntegerField()
    """In bytes. It counts against the namespace's storage as long as this row is there."""
    goes = models.BooleanField(default=False)
    """It is to be removed with all that is on it; the row goes when the engine says that it is gone."""
    phase = models.CharField(max_length=10, default="pending")
    """As `engines.base.ClaimPhase`."""
    found_size = models.BigIntegerField(default=0)
    """What there is, in bytes. 0: not known."""
    identity = models.CharField(max_length=64, blank=True)
    """As `engines.base.VolumeState`. Empty: not seen yet."""
    message = models.TextField(blank=True)
    """Why it is not as wanted, in the engine's words."""
    remedy = models.TextField(blank=True)
    looked_at = models.DateTimeField(null=True, blank=True)
    next_look_at = models.DateTimeField(db_index=True)
    setbacks = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["namespace", "engine", "kind"], name="one_volume_of_a_kind_per_engine")
        ]

    def __str__(self) -> str:
        return f"{self.kind} volume of {self.namespace_id} on {self.engine}"


class VolumeLeftover(models.Model):
    """The log directories of a deleted job, which are still on the log volume."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    volume = models.ForeignKey(Volume, on_delete=models.CASCADE, related_name="leftovers", db_index=False)
    job_id = models.UUIDField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["volume", "job_id"], name="one_leftover_per_deleted_job")]

    def __str__(self) -> str:
        return f"logs of {self.job_id}"


class VolumeCopy(models.Model):
    """A version of a dataset on a data volume, or on its way there or away. Its bytes count against the volume's size
    as long as this row is there. No foreign key to the version: what is on the volume stays when it is deleted."""

    class State(models.TextChoices):
        """`failed`: some of its files may be there, and no job reads them."""

        COPYING = "copying"
        READY = "ready"
        FAILED = "failed"
        REMOVING = "removing"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    volume = models.ForeignKey(Volume, on_delete=models.CASCADE, related_name="copies", db_index=False)
    version = models.UUIDField(db_index=True)
    dataset = models.CharField(max_length=100)
    """What the dataset was called when it was published, and `number` its version's."""
    number = models.PositiveIntegerField()
    files = models.PositiveIntegerField()
    bytes = models.BigIntegerField()
    state = models.CharField(max_length=8, choices=State, default=State.COPYING)
    job = models.ForeignKey("jobs.Job", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    """The one that copies or removes it, or did so last."""
    launches = models.PositiveIntegerField(default=0)
    """How many jobs were launched for it: of two requests at once both get the same job."""
    changed_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["volume", "version"], name="one_copy_of_a_version_per_volume")]

    def __str__(self) -> str:
        return f"{self.dataset}@{self.number} ({self.state})"
