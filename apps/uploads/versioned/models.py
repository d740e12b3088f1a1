"""The columns of a named thing and its versions. Abstract: datasets and code have a table each."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.dispatch import Signal

from yardmaster.ids import new_id


class Collection(models.Model):
    """A named thing. What changes of it is its name and description; its content is in its versions."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    namespace = models.ForeignKey("namespaces.Namespace", on_delete=models.PROTECT, related_name="+", db_index=False)
    name = models.CharField(max_length=100)
    description = models.TextField(max_length=10_000, blank=True)
    latest_number = models.PositiveIntegerField(default=0)
    """The number of the newest version there ever was: a deleted one's is not given again."""
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        abstract = True
        constraints = [
            models.UniqueConstraint(fields=["namespace", "name"], name="%(class)s_name_is_unique_in_namespace")
        ]
        indexes = [models.Index(fields=["namespace", "id"], name="%(class)s_list")]

    def __str__(self) -> str:
        return self.name


class Version(models.Model):
    """Files that never change: its upload's manifest names them. Its id was given when its upload began, and is in the
    files' keys.

    Each subclass has a foreign key `parent` with the related name `versions`.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    number = models.PositiveIntegerField()
    note = models.CharField(max_length=1_000, blank=True)
    upload_id = models.UUIDField(unique=True)
    key_prefix = models.CharField(max_length=200)
    size = models.BigIntegerField()
    file_count = models.PositiveIntegerField()
    added = models.PositiveIntegerField()
    """Files that the version before did not have; `changed` have another content, `removed` are gone."""
    changed = models.PositiveIntegerField()
    removed = models.PositiveIntegerField()
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        abstract = True
        constraints = [models.UniqueConstraint(fields=["parent", "number"], name="%(class)s_numbers_are_unique")]

    def __str__(self) -> str:
        return f"{self.pk} (number {self.number})"


versions_deleting = Signal()
"""Versions of datasets or code are about to be deleted. A receiver gets `version_ids` and returns the set of those that
it still needs: then none is deleted."""
