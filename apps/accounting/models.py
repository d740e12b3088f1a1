"""Use summed by day, budgets, and which warnings were given. The ledger (`jobs.Reservation`) stays the truth."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class UsageDay(models.Model):
    """What was held within one closed day of UTC, in the units of `yardmaster.accounting.amounts`.

    Made from the ledger by `apps.accounting.rollup` alone, which may make it again at any time. Like the ledger it
    outlives whom it names, with the names that they had.
    """

    day = models.DateField()
    namespace_id = models.UUIDField()
    namespace_slug = models.CharField(max_length=63, blank=True)
    owner_id = models.UUIDField(null=True, blank=True)
    owner_name = models.CharField(max_length=150, blank=True)
    role = models.CharField(max_length=16)
    engine = models.CharField(max_length=63)
    resource = models.CharField(max_length=253)
    amount = models.BigIntegerField()

    class Meta:
        indexes = [
            models.Index(fields=["day"], name="use_of_day"),
            models.Index(fields=["namespace_id", "day"], name="use_of_namespace"),
            models.Index(fields=["owner_id", "day"], name="use_of_owner"),
        ]

    def __str__(self) -> str:
        return f"{self.resource} of {self.namespace_slug} on {self.day}"


class MeasuredDay(models.Model):
    """What tasks used of what they held, of the roles that were released on a day and whose tasks were measured.

    Written once, when the day is closed: the samples go with their job.
    """

    day = models.DateField()
    namespace_id = models.UUIDField()
    namespace_slug = models.CharField(max_length=63, blank=True)
    owner_id = models.UUIDField(null=True, blank=True)
    role = models.CharField(max_length=16)
    engine = models.CharField(max_length=63)
    resource = models.CharField(max_length=16)
    """`cpu` or `memory`."""
    held = models.BigIntegerField()
    """By the tasks that were measured, while they were."""
    used = models.BigIntegerField()

    class Meta:
        indexes = [models.Index(fields=["day"], name="measured_of_day")]

    def __str__(self) -> str:
        return f"{self.resource} of {self.namespace_slug} on {self.day}: {self.used} of {self.held}"


class UsageState(models.Model):
    """How far the ledger is summed. One row, locked while a day is closed."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    upto = models.DateField()
    """All days before this one are in `UsageDay`."""
    last_reservation = models.BigIntegerField(default=0)
    """The newest row of the ledger when the last day was closed: an older time in a newer row is a correction."""
    measured_upto = models.DateField()
    """All days before this one were measured, as far as there was something to measure."""

    def __str__(self) -> str:
        return f"summed up to {self.upto}"


class UsageCarried(models.Model):
    """A row of the ledger that began before the last closed day had ended and was not released by then: the next day
    begins with it."""

    reservation_id = models.BigIntegerField(primary_key=True)

    def __str__(self) -> str:
        return f"reservation {self.reservation_id}"


class Budget(models.Model):
    """The most that a namespace may use in a month of UTC. None: unlimited. Without a row: the settings' default."""

    namespace = models.OneToOneField(
        "namespaces.Namespace", primary_key=True, on_delete=models.CASCADE, related_name="budget"
    )
    cpu_hours = models.DecimalField(max_digits=14, decimal_places=3, null=True, blank=True)
    memory_gib_hours = models.DecimalField(max_digits=14, decimal_places=3, null=True, blank=True)
    gpu_hours = models.DecimalField(max_digits=14, decimal_places=3, null=True, blank=True)
    money = models.DecimalField(max_digits=14, decimal_places=2, null=True, blank=True)
    """In the currency of the prices; without prices it bounds nothing."""

    def __str__(self) -> str:
        return f"budget of {self.namespace_id}"


class BudgetWarning(models.Model):
    """That a namespace reached a level of its budget in a month: each is told once."""

    namespace = models.ForeignKey("namespaces.Namespace", on_delete=models.CASCADE, related_name="+", db_index=False)
    month = models.DateField()
    level = models.PositiveSmallIntegerField()
    """Percent."""
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["namespace", "month", "level"], name="one_warning_per_level"),
            models.CheckConstraint(condition=Q(level__gt=0), name="a_level_is_positive"),
        ]

    def __str__(self) -> str:
        return f"{self.level} % of {self.namespace_id} in {self.month:%Y-%m}"
