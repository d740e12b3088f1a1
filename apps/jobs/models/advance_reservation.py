"""Amounts of an engine that are reserved for a namespace, or a group of the tree of shares, within a time: a class in a
lecture hall, a deadline.

What it keeps from others is `yardmaster.queueing.windows`. Not here: what admitted jobs hold (`ledger.Reservation`).
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from yardmaster.ids import new_id


class AdvanceReservation(models.Model):
    """In force in [begins_at, ends_at). One that is ended early ends then; one that had not begun is removed."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    engine = models.CharField(max_length=63)
    namespace = models.ForeignKey(
        "namespaces.Namespace", null=True, blank=True, on_delete=models.CASCADE, related_name="advance_reservations",
        db_index=False,
    )  # fmt: skip
    """None: it is for a group."""
    group = models.ForeignKey(
        "namespaces.ShareNode", null=True, blank=True, on_delete=models.CASCADE, related_name="advance_reservations"
    )
    """All namespaces below it share it. One that has a reservation which is not over is not removed."""
    amounts = models.JSONField()
    """Cores as `cpu`, bytes as `memory`, pieces as `gpus` or another name."""
    begins_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    reason = models.CharField(max_length=300, blank=True)
    """Shown to the members of the namespace, or of all namespaces in the group."""
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(ends_at__gt=F("begins_at")), name="reserves_some_time"),
            models.CheckConstraint(
                condition=Q(namespace=None, group__isnull=False) | Q(namespace__isnull=False, group=None),
                name="reserved_for_one",
            ),
        ]
        indexes = [
            models.Index(fields=["engine", "ends_at"], name="reserved_on_engine"),
            models.Index(fields=["namespace", "ends_at"], name="reserved_for_namespace"),
        ]

    def __str__(self) -> str:
        return f"{self.amounts} of {self.engine} for {self.namespace_id or self.group_id}"

    @property
    def name(self) -> str:
        """What others call whom it is for. Reads the namespace or the group."""
        return self.namespace.slug if self.namespace is not None else self.group.name if self.group is not None else ""
