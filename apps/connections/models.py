"""Clusters of Apache Ignite that namespaces have registered: where they are, which secrets open them, and what the last
look at each has found."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from apps.namespaces.models import Namespace
from yardmaster.ids import new_id


class State(models.TextChoices):
    """Of the last look."""

    CHECKING = "checking"
    READY = "ready"
    FAILED = "failed"


class DataConnection(models.Model):
    """One cluster. The columns of secrets have names of secrets of the namespace; empty: there is none. By name and not
    by row, so that a secret that is deleted and created again is used again."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    namespace = models.ForeignKey(Namespace, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=100)
    hosts = models.CharField(max_length=1_100)
    """As the reader in a task takes them: `one.example.org,two:10801`."""
    tls = models.BooleanField(default=False)
    certificate = models.CharField(max_length=128, blank=True)
    """PEM, with its key."""
    certificate_password = models.CharField(max_length=128, blank=True)
    ca = models.CharField(max_length=128, blank=True)
    username = models.CharField(max_length=128, blank=True)
    password = models.CharField(max_length=128, blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()

    state = models.CharField(max_length=10, choices=State, default=State.CHECKING)
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    asked_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    problem = models.JSONField(null=True, blank=True)
    """Why the last look failed, as `apps.errors.error_to_json` writes it."""
    found = models.JSONField(null=True, blank=True)
    """What the last look that succeeded has found: `{"caches", "count", "notes"}`, at most half a megabyte."""
    found_at = models.DateTimeField(null=True, blank=True)
    tries = models.PositiveSmallIntegerField(default=0)
    lease = models.UUIDField(null=True, blank=True)
    leased_until = models.DateTimeField(null=True, blank=True)
    next_look_at = models.DateTimeField(null=True, blank=True, db_index=True)
    """Null: no look is wanted."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["namespace", "name"], name="one_connection_of_a_name")]

    def __str__(self) -> str:
        return f"{self.name} of {self.namespace_id}"
