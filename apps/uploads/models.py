"""What has been sent and is being sent, and how many bytes each namespace holds. The bytes lie in the object store."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from yardmaster.ids import new_id


class Kind(models.TextChoices):
    """What an upload becomes. People send the first two, tasks the others."""

    DATASET = "dataset"
    CODE = "code"
    CHECKPOINT = "checkpoint"
    MODEL = "model"


class State(models.TextChoices):
    """`open` takes parts; `completing` is being put together and checked; `complete` is good for one use.

    `failed` was refused for good and holds nothing; `deleting` is gone but for bytes that are still being removed.
    """

    OPEN = "open"
    COMPLETING = "completing"
    COMPLETE = "complete"
    FAILED = "failed"
    DELETING = "deleting"


class Upload(models.Model):
    """Files sent together. Everything that is stored belongs to exactly one upload, also after it became a version."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    namespace = models.ForeignKey("namespaces.Namespace", on_delete=models.PROTECT, related_name="+", db_index=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    kind = models.CharField(max_length=10, choices=Kind)
    job_id = models.UUIDField(null=True, blank=True, db_index=True)
    """The job whose task sends it, for checkpoints and models."""
    target_id = models.UUIDField(default=new_id, unique=True)
    """The id of the version that this becomes: it is in the keys, so nothing is moved when the version is made."""
    key_prefix = models.CharField(max_length=200, unique=True)
    part_size = models.BigIntegerField()
    file_count = models.PositiveIntegerField()
    held = models.BigIntegerField()
    """Bytes on the namespace's account: reserved until complete, used from then on."""
    state = models.CharField(max_length=10, choices=State, default=State.OPEN)
    unpack = models.BooleanField(default=False)
    unpacked = models.BooleanField(default=False)
    problem = models.JSONField(null=True, blank=True)
    """Why the last `complete` did not succeed: `{"code", "detail", "remedy", "errors"}`."""
    bytes_checked = models.BigIntegerField(default=0)
    lease = models.UUIDField(null=True, blank=True)
    """Who is completing it; see `leased_until`."""
    leased_until = models.DateTimeField(null=True, blank=True)
    used = models.BooleanField(default=False)
    """It has become a version, checkpoint or model, and no longer expires."""
    created_at = models.DateTimeField()
    touched_at = models.DateTimeField()
    """Idle since; an unused upload expires some time after."""

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(held__gte=0), name="upload_holds_no_less_than_nothing"),
        ]
        indexes = [
            models.Index(fields=["namespace", "id"], name="upload_list"),
            models.Index(fields=["touched_at"], name="upload_expiry", condition=models.Q(used=False)),
        ]

    def __str__(self) -> str:
        return f"{self.kind} upload {self.id} ({self.state})"

    @property
    def is_complete(self) -> bool:
        return self.state == State.COMPLETE


class UploadFile(models.Model):
    """One file of an upload. `sha256` is what was found; `declared_sha256` what the sender says, if anything."""

    upload = models.ForeignKey(Upload, on_delete=models.CASCADE, related_name="files", db_index=False)
    index = models.PositiveIntegerField()
    path = models.CharField(max_length=512)
    size = models.BigIntegerField()
    declared_sha256 = models.CharField(max_length=64, blank=True)
    multipart_id = models.CharField(max_length=500, blank=True)
    """The store's id of the upload in parts, from when its first part address was made."""
    sha256 = models.CharField(max_length=64, blank=True)
    """Set once the file is put together and checked."""
    records = models.BigIntegerField(null=True, blank=True)
    """For datasets: how many records the file holds, where its format is known."""
    fault = models.CharField(max_length=300, blank=True)
    """For datasets: what is wrong with the content (a damaged record)."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["upload", "index"], name="one_file_per_index")]

    def __str__(self) -> str:
        return self.path


class StorageAccount(models.Model):
    """How many bytes a namespace holds. Moves in the transactions that move uploads, by conditional update."""

    namespace = models.OneToOneField(
        "namespaces.Namespace", primary_key=True, on_delete=models.CASCADE, related_name="+"
    )
    used = models.BigIntegerField(default=0)
    reserved = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(used__gte=0) & models.Q(reserved__gte=0), name="account_holds_no_less_than_nothing"
            )
        ]

    def __str__(self) -> str:
        return f"storage of {self.namespace_id}"
