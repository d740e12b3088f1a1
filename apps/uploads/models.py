"""What has been sent and is being sent, and what each namespace holds of it. The bytes lie in the object store."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db import models

from yardmaster.ids import new_id


class Kind(models.TextChoices):
    """What an upload becomes. People send the first two, tasks the others."""

    DATASET = "dataset"
    CODE = "code"
    CHECKPOINT = "checkpoint"
    MODEL = "model"
    OUTPUT = "output"
    PART = "part"
    """What one task of a job publishes."""
    PACKAGES = "packages"
    """What pip installed for a job, which others in its namespace use."""


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
    """The job whose task sends it, for checkpoints, models and outputs."""
    target_id = models.UUIDField(default=new_id, unique=True)
    """The id of the version that this becomes: it is in the keys, so nothing is moved when the version is made."""
    key_prefix = models.CharField(max_length=200, unique=True)
    part_size = models.BigIntegerField()
    file_count = models.PositiveIntegerField()
    is_sorted = models.BooleanField(default=False)
    """Its files were announced in the order of their paths, so that more may follow."""
    example = models.CharField(max_length=512, blank=True)
    """The path of its first file, for lists."""
    held = models.BigIntegerField()
    """Bytes on the namespace's account: reserved until complete, used from then on."""
    files_held = models.PositiveIntegerField(default=0)
    """Files on the account: each has a place in a list that the database keeps."""
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
    writable_until = models.DateTimeField(null=True, blank=True)
    """Until when a signed address may write a whole object of it, whatever becomes of the upload: nothing closes those
    but the time. Null: there was none."""

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(held__gte=0), name="upload_holds_no_less_than_nothing"),
        ]
        indexes = [
            models.Index(fields=["namespace", "id"], name="upload_list"),
            models.Index(fields=["touched_at"], name="upload_expiry", condition=models.Q(used=False)),
            models.Index(fields=["namespace"], name="upload_unused", condition=models.Q(used=False)),
            models.Index(fields=["created_by"], name="upload_unused_of_user", condition=models.Q(used=False)),
        ]

    def __str__(self) -> str:
        return f"{self.kind} upload {self.id} ({self.state})"

    @property
    def is_complete(self) -> bool:
        return self.state == State.COMPLETE

    def is_writable(self, now: datetime) -> bool:
        """Whether an address that was signed for it may still write."""
        return self.writable_until is not None and self.writable_until > now


class FileBlock(models.Model):
    """Some files of an upload (`apps.uploads.file_blocks.BLOCK` of them, packed by `yardmaster.storage.file_list`): a
    page of a million is read without the others. They are the manifest of what the upload becomes, too."""

    upload = models.ForeignKey(Upload, on_delete=models.CASCADE, related_name="+", db_index=False)
    number = models.PositiveIntegerField()
    first_path = models.BinaryField(max_length=512)
    """In UTF-8, since collations of databases differ. It bounds the block where the files are in the order of their
    paths."""
    packed = models.BinaryField()
    size = models.BigIntegerField(default=0)
    """Bytes of its files."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["upload", "number"], name="one_block_per_number")]
        indexes = [models.Index(fields=["upload", "first_path"], name="block_by_path")]

    def __str__(self) -> str:
        return f"block {self.number} of {self.upload_id}"


class FileBatch(models.Model):
    """What has become of some files (`apps.uploads.manifest.BATCH` of them) while the upload is not complete. Gone when
    it is: then the blocks hold all."""

    upload = models.ForeignKey(Upload, on_delete=models.CASCADE, related_name="+", db_index=False)
    number = models.PositiveIntegerField()
    begun = models.JSONField(default=dict)
    """By index of a file: the store's id of its upload in parts, from when its first part address was made; or the
    SHA-256 of what may be sent as the whole object (`sha256:…`)."""
    found = models.JSONField(default=dict)
    """By index of a file that is put together and checked: `[sha256, records, fault]`."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["upload", "number"], name="one_batch_per_number")]

    def __str__(self) -> str:
        return f"batch {self.number} of {self.upload_id}"


class Tombstone(models.Model):
    """Where something lay that was removed. A writer that was at work at that moment may have finished since, so it is
    removed once more, until no address that allows to write there is valid any longer."""

    prefix = models.CharField(max_length=200, primary_key=True)
    removed_at = models.DateTimeField()
    again_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return self.prefix


class StorageAccount(models.Model):
    """The bytes and files that a namespace holds. Moves in the transactions that move uploads, conditionally."""

    namespace = models.OneToOneField(
        "namespaces.Namespace", primary_key=True, on_delete=models.CASCADE, related_name="+"
    )
    used = models.BigIntegerField(default=0)
    logs = models.BigIntegerField(default=0)
    """The part of `used` that is what tasks printed."""
    reserved = models.BigIntegerField(default=0)
    files = models.BigIntegerField(default=0)
    """In the lists of all uploads, whatever became of them."""

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(used__gte=0) & models.Q(reserved__gte=0), name="account_holds_no_less_than_nothing"
            ),
            models.CheckConstraint(condition=models.Q(files__gte=0), name="account_has_no_less_than_no_files"),
        ]

    def __str__(self) -> str:
        return f"storage of {self.namespace_id}"
