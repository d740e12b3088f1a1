"""Registered Spark clusters."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from apps.namespaces.models import Namespace
from yardmaster.ids import new_id
from yardmaster.job.spec_spark import LONGEST_NAME, resource_of


class CheckState(models.TextChoices):
    """Of the last check."""

    CHECKING = "checking"
    REACHABLE = "reachable"
    UNREACHABLE = "unreachable"


class SparkCluster(models.Model):
    """One cluster: a Spark standalone master with its workers, which others run. Limits that are None do not bound."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    name = models.CharField(max_length=LONGEST_NAME, unique=True)
    """What jobs call it. It stays: job files have it."""
    master = models.CharField(max_length=500)
    """`spark://HOST:PORT[,HOST:PORT]`"""
    driver_address = models.CharField(max_length=253)
    """The address or host name of this machine by which executors reach drivers."""
    python = models.CharField(max_length=300, default="python3")
    """The interpreter on the executors: a name or a path."""
    sealed = models.BinaryField(null=True)
    """`spark.authenticate.secret`, encrypted (`sealed`); None: the cluster has none."""
    key_id = models.CharField(max_length=16, blank=True)
    """Which key sealed it."""
    most_executors = models.PositiveIntegerField(null=True, blank=True)
    """Of a job."""
    most_cores = models.PositiveIntegerField(null=True, blank=True)
    """Of all executors of a job together."""
    most_memory = models.BigIntegerField(null=True, blank=True)
    """The same, in bytes."""
    most_cores_at_once = models.PositiveIntegerField(null=True, blank=True)
    """Of all jobs together. One that finds fewer left waits."""
    everyone = models.BooleanField(default=True)
    """Whether all namespaces may use it; otherwise only `namespaces`."""
    namespaces = models.ManyToManyField(Namespace, related_name="+", blank=True)
    enabled = models.BooleanField(default=True)
    """Whether new jobs may name it."""
    created_at = models.DateTimeField()
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    changed_at = models.DateTimeField()
    changed_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")

    state = models.CharField(max_length=12, choices=CheckState, default=CheckState.CHECKING)
    problem = models.CharField(max_length=1_000, blank=True)
    """Why no master answered at the last check."""
    asked_at = models.DateTimeField()
    """When a check was asked for last."""
    checked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name

    @property
    def has_secret(self) -> bool:
        return self.sealed is not None

    @property
    def resource(self) -> str:
        """What its cores are called among resources."""
        return resource_of(self.name)
