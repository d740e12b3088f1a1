"""Code and its versions, and fetching them from Git."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from apps.uploads.versioned.models import Collection, Version
from yardmaster.ids import new_id


class Code(Collection):
    """Training scripts that belong together."""


class CodeVersion(Version):
    """What a job runs."""

    parent = models.ForeignKey(Code, on_delete=models.CASCADE, related_name="versions", db_index=False)
    git_repository = models.CharField(max_length=1_100, blank=True, default="")
    """Where its files come from, as a browser opens it; empty: they were uploaded."""
    git_ref = models.CharField(max_length=300, blank=True, default="")
    """What was asked for; empty: the default branch."""
    git_folder = models.CharField(max_length=512, blank=True, default="")
    git_commit = models.CharField(max_length=64, blank=True, default="", db_index=True)


class ImportState(models.TextChoices):
    """How far it is."""

    FETCHING = "fetching"
    STORING = "storing"
    """The commit is here, and its files are on their way into the store."""
    READY = "ready"
    FAILED = "failed"


class CodeImport(models.Model):
    """Code that is fetched from Git, by a worker. When it is ready, `version_id` is what a job names as its code."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    namespace = models.ForeignKey("namespaces.Namespace", on_delete=models.CASCADE, related_name="+")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    name = models.CharField(max_length=100)
    """Of the code whose version it becomes."""
    repository = models.CharField(max_length=1_100)
    ref = models.CharField(max_length=300, blank=True)
    folder = models.CharField(max_length=512, blank=True)
    secret_name = models.CharField(max_length=128, blank=True)
    """The secret of the namespace that holds the token."""

    state = models.CharField(max_length=10, choices=ImportState, default=ImportState.FETCHING)
    commit = models.CharField(max_length=64, blank=True)
    size = models.BigIntegerField(default=0)
    """Bytes so far."""
    notes = models.JSONField(default=dict)
    """What a person should know of the files: `{"submodules": {"count", "first"}, …}`."""
    problem = models.JSONField(null=True, blank=True)
    """Why it failed, as `apps.errors.error_to_json` writes it."""
    upload_id = models.UUIDField(null=True, blank=True, db_index=True)
    version_id = models.UUIDField(null=True, blank=True)
    """No foreign key: what became of the import stays known when the version is deleted."""
    is_new = models.BooleanField(default=False)
    """It made the version; else that was there."""
    tries = models.PositiveSmallIntegerField(default=0)
    lease = models.UUIDField(null=True, blank=True)
    leased_until = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()
    next_look_at = models.DateTimeField(null=True, blank=True, db_index=True)
    """Null: it has ended."""

    class Meta:
        indexes = [models.Index(fields=["namespace", "id"], name="code_import_list")]

    def __str__(self) -> str:
        return f"import of {self.repository} ({self.state})"
