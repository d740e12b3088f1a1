"""What starts no jobs for now: an engine, a namespace, or one job. What runs continues.

Written by `apps.jobs.state.holds`, read with the ledger by every pass over a queue.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from yardmaster.ids import new_id


class Cause(models.TextChoices):
    """Who holds it. Each cause has a hold of its own: a budget that is raised does not lift an administrator's."""

    ADMINISTRATOR = "administrator"
    BUDGET = "budget"


class Hold(models.Model):
    """Exactly one of `engine`, `namespace` and `job` is set."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    engine = models.CharField(max_length=63, blank=True)
    namespace = models.ForeignKey(
        "namespaces.Namespace", null=True, blank=True, on_delete=models.CASCADE, related_name="holds"
    )
    job = models.ForeignKey("jobs.Job", null=True, blank=True, on_delete=models.CASCADE, related_name="holds")
    cause = models.CharField(max_length=16, choices=Cause, default=Cause.ADMINISTRATOR)
    reason = models.CharField(max_length=300, blank=True)
    """Shown to whom it concerns, behind the reason of each job that waits for it."""
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    """None: the portal."""
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["engine", "cause"], condition=~Q(engine=""), name="one_hold_per_engine"),
            models.UniqueConstraint(
                fields=["namespace", "cause"], condition=Q(namespace__isnull=False), name="one_hold_per_namespace"
            ),
            models.UniqueConstraint(fields=["job", "cause"], condition=Q(job__isnull=False), name="one_hold_per_job"),
            models.CheckConstraint(
                condition=(~Q(engine="") & Q(namespace=None, job=None))
                | (Q(engine="", job=None) & Q(namespace__isnull=False))
                | (Q(engine="", namespace=None) & Q(job__isnull=False)),
                name="holds_one_thing",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.cause} holds {self.engine or self.namespace_id or self.job_id}"
