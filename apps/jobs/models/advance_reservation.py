"""Amounts of an engine that are reserved for a namespace within a time: a class in a lecture hall, a deadline.

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
        "namespaces.Namespace", on_delete=models.CASCADE, related_name="advance_reservations", db_index=False
    )
    amounts = models.JSONField()
    """Cores as `cpu`, bytes as `memory`, pieces as `gpus` or another name."""
    begins_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    reason = models.CharField(max_length=300, blank=True)
    """Shown to the members of the namespace."""
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(ends_at__gt=F("begins_at")), name="reserves_some_time")]
        indexes = [
            models.Index(fields=["engine", "ends_at"], name="reserved_on_engine"),
            models.Index(fields=["namespace", "ends_at"], name="reserved_for_namespace"),
        ]

    def __str__(self) -> str:
        return f"{self.amounts} of {self.engine} for {self.namespace_id}"
