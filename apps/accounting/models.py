"""Use summed by day, budgets, and which warnings were given. The ledger (`jobs.Reservation`) stays the truth."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class _Summed(models.Model):
    """Who held what, in the units of `yardmaster.accounting.amounts`. Like the ledger it outlives whom it names, with
    the names that they had."""

    namespace_id = models.UUIDField()
    namespace_slug = models.CharField(max_length=63, blank=True)
    owner_id = models.UUIDField(null=True, blank=True)
    owner_name = models.CharField(max_length=150, blank=True)
    role = models.CharField(max_length=16)
    engine = models.CharField(max_length=63)
    resource = models.CharField(max_length=253)
    amount = models.BigIntegerField()

    class Meta:
        abstract = True


class UsageDay(_Summed):
    """What was held within one closed day of UTC. Made from the ledger by `apps.accounting.rollup` alone, which may
    make it again at any time."""

    day = models.DateField()

    class Meta:
        indexes = [
            models.Index(fields=["day"], name="use_of_day"),
            models.Index(fields=["namespace_id", "day"], name="use_of_namespace"),
            models.Index(fields=["owner_id", "day"], name="use_of_owner"),
        ]

    def __str__(self) -> str:
        return f"{self.resource} of {self.namespace_slug} on {self.day}"


class UsageMonth(_Summed):
    """What was held within one closed month of UTC, from the summed days. Made by `apps.accounting.months` alone, which
    may make it again at any time."""

    month = models.DateField()
    """Its first day."""

    class Meta:
        indexes = [
            models.Index(fields=["month"], name="use_of_month"),
            models.Index(fields=["namespace_id", "month"], name="use_of_namespace_month"),
            models.Index(fields=["owner_id", "month"], name="use_of_owner_month"),
        ]

    def __str__(self) -> str:
        return f"{self.resource} of {self.namespace_slug} in {self.month:%Y-%m}"


class JobCount(models.Model):
    """How many jobs held something on a closed day, or in a closed month, of UTC, and held nothing since `before`.

    So the jobs of any days [first, last) are those with `before` None or earlier than `first`: each is counted once,
    on its first day there. Made from the ledger by `apps.accounting.job_counts` alone.
    """

    is_month = models.BooleanField()
    begin = models.DateField()
    """The day, or the first of the month."""
    before = models.DateField(null=True)
    """The last day before `begin` on which they held something; None: there is none."""
    namespace_id = models.UUIDField()
    namespace_slug = models.CharField(max_length=63, blank=True)
    owner_id = models.UUIDField(null=True, blank=True)
    owner_name = models.CharField(max_length=150, blank=True)
    engine = models.CharField(max_length=63)
    role = models.CharField(max_length=16, blank=True)
    """Empty: whatever their roles are."""
    jobs = models.IntegerField()

    class Meta:
        indexes = [models.Index(fields=["is_month", "begin"], name="jobs_of_days")]

    def __str__(self) -> str:
        return f"{self.jobs} jobs of {self.namespace_slug} from {self.begin}"


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


class IdleHour(models.Model):
    """What parameter servers of a namespace held on an engine without progress, within an hour of UTC. Written by
    `apps.accounting.idle_hours` alone."""

    begin = models.DateTimeField()
    namespace_id = models.UUIDField()
    namespace_slug = models.CharField(max_length=63, blank=True)
    engine = models.CharField(max_length=63)
    resource = models.CharField(max_length=16)
    """`cpu` or `memory`."""
    amount = models.BigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["begin", "namespace_id", "engine", "resource"], name="one_idle_hour"),
        ]

    def __str__(self) -> str:
        return f"{self.resource} of {self.namespace_slug} from {self.begin}"


class IdleCounted(models.Model):
    """Up to when idle servers are counted. One row, locked while they are."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    upto = models.DateTimeField()

    def __str__(self) -> str:
        return f"counted up to {self.upto}"


class UsageState(models.Model):
    """How far the ledger is summed. One row, locked while a day is closed."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    upto = models.DateField()
    """All days before this one are in `UsageDay`."""
    months_upto = models.DateField(null=True)
    """All months before this one are in `UsageMonth`; None: no month was summed yet."""
    jobs_upto = models.DateField(null=True)
    """The jobs of all days before this one are in `JobCount`; None: none were counted yet."""
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
