"""The tree of shares: groups, and the namespaces in them; and the classes of priority.

Not here: what shares decide (`yardmaster.queueing.shares`), changing them (`shares`, `priorities`).
"""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from yardmaster.ids import new_id

HEAVIEST = 1_000
LONGEST_NAME = 63


class ShareNode(models.Model):
    """A group of the tree (`namespace` None), or the place of a namespace in it. A namespace without one counts with
    all others that have none, or in the group that is `is_default`, with weight 1."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    parent = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="children")
    """None: at the top."""
    namespace = models.OneToOneField(
        "namespaces.Namespace", null=True, blank=True, on_delete=models.CASCADE, related_name="share"
    )
    name = models.CharField(max_length=LONGEST_NAME, blank=True)
    """Of a group; empty of a namespace."""
    weight = models.IntegerField(default=1, validators=[MinValueValidator(0), MaxValueValidator(HEAVIEST)])
    guaranteed = models.JSONField(default=dict, blank=True)
    """What it gets first on each engine: cores as `cpu`, bytes as `memory`, pieces as `gpus` or another name."""
    is_default = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["name"], condition=models.Q(namespace=None), name="one_group_of_a_name"),
            models.UniqueConstraint(fields=["is_default"], condition=models.Q(is_default=True), name="one_default"),
            models.CheckConstraint(
                condition=models.Q(namespace=None) & ~models.Q(name="")
                | models.Q(namespace__isnull=False, name="", is_default=False),
                name="is_group_or_namespace",
            ),
        ]

    def __str__(self) -> str:
        return self.name or f"share of {self.namespace_id}"


class Users(models.TextChoices):
    """Who may use a priority class."""

    EVERYONE = "everyone", "Everyone"
    NAMESPACES = "namespaces", "Named namespaces"
    ADMINISTRATORS = "administrators", "Administrators"


class PriorityClass(models.Model):
    """A named priority, which counts between namespaces in full. A job keeps the number that it had at its launch."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    name = models.CharField(max_length=LONGEST_NAME, unique=True)
    """Specifications have it: it stays."""
    value = models.IntegerField(validators=[MinValueValidator(-1000), MaxValueValidator(1000)])
    description = models.CharField(max_length=300, blank=True)
    users = models.CharField(max_length=16, choices=Users, default=Users.EVERYONE)
    namespaces = models.ManyToManyField("namespaces.Namespace", related_name="+", blank=True)
    is_default = models.BooleanField(default=False)
    """Of jobs for which neither a class nor a number is said."""
    preempts = models.BooleanField(default=False, db_default=False)
    """Where an engine allows preemption, its jobs take the places of running ones of lower priority."""
    is_preemptible = models.BooleanField(default=True, db_default=True)
    """Its jobs may be preempted, where the engine allows that."""

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["is_default"], condition=models.Q(is_default=True), name="one_default_class"
            )
        ]

    def __str__(self) -> str:
        return self.name
