"""The ledger: what admitted jobs hold of their namespace's quota and of their engine, written by
`apps.jobs.state.ledger`; and what came of probing an engine.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, NoReturn

from django.db import models

from apps.jobs.models.attempt import ROLES


class AppendOnly(TypeError):
    """An attempt to change or delete what has been written down for good."""


def _refused(*_: Any, **__: Any) -> NoReturn:
    raise AppendOnly("A reservation is closed once and never changed or deleted: it is the record of what was used.")


class Reservations(models.QuerySet["Reservation"]):
    """Rows are added, and closed once."""

    update = bulk_update = delete = update_or_create = _refused

    def close(self, now: datetime) -> int:
        """Say until when these were held, of those that still are. Returns how many."""
        return super().filter(released_at__isnull=True)._close(now)

    def _close(self, now: datetime) -> int:
        return super().update(released_at=now)


class Reservation(models.Model):
    """What one role of one attempt holds, until `released_at`. All roles of a job are reserved together or none is. An
    attempt that went back to the queue has rows for every time it was admitted.

    It is also the record of what was used, and outlives all that it names: `job_id`, `namespace_id` and `owner_id` stay
    as values, beside the names that they had, when the job, the namespace or the user is removed.
    """

    job = models.ForeignKey(
        "jobs.Job", on_delete=models.DO_NOTHING, db_constraint=False, related_name="reservations", db_index=False
    )
    job_name = models.CharField(max_length=200, blank=True, db_default="")
    namespace = models.ForeignKey(
        "namespaces.Namespace", on_delete=models.DO_NOTHING, db_constraint=False, related_name="+", db_index=False
    )
    namespace_slug = models.CharField(max_length=63, blank=True, db_default="")
    owner_id = models.UUIDField(null=True, blank=True)
    owner_name = models.CharField(max_length=150, blank=True, db_default="")
    engine = models.CharField(max_length=63)
    attempt = models.PositiveIntegerField()
    role = models.CharField(max_length=16, choices=ROLES)
    tasks = models.PositiveIntegerField(default=0, db_default=0)
    """How many tasks hold it together, all the same; 0: from before that was counted."""
    cpu = models.DecimalField(max_digits=12, decimal_places=3)
    memory = models.BigIntegerField()
    gpus = models.IntegerField()
    extended = models.JSONField(default=dict, blank=True)
    reserved_at = models.DateTimeField()
    released_at = models.DateTimeField(null=True, blank=True)

    objects = Reservations.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["job", "attempt", "role"],
                condition=models.Q(released_at__isnull=True),
                name="one_open_reservation_per_role",
            )
        ]
        indexes = [
            models.Index(
                fields=["namespace"], name="ledger_of_namespace", condition=models.Q(released_at__isnull=True)
            ),
            models.Index(fields=["engine"], name="ledger_of_engine", condition=models.Q(released_at__isnull=True)),
            models.Index(fields=["namespace", "released_at"], name="usage_of_namespace"),
            models.Index(fields=["reserved_at"], name="usage_by_begin"),
            models.Index(fields=["released_at"], name="usage_by_end"),
            models.Index(fields=["job"], name="usage_of_job"),
            # The list sorted by GPU hours sums it for all jobs, and reads nothing but this index.
            models.Index(
                fields=["job"],
                name="usage_of_gpus",
                condition=models.Q(gpus__gt=0),
                include=["gpus", "reserved_at", "released_at"],
            ),
        ]

    def __str__(self) -> str:
        return f"{self.role} of {self.job_id}, attempt {self.attempt}"

    def save(self, **options: Any) -> None:
        """Only as a new row. Raises `AppendOnly`."""
        if not self._state.adding:
            _refused()
        super().save(**options)

    def delete(self, *_: Any, **__: Any) -> NoReturn:
        """Raises `AppendOnly`."""
        _refused()


class QueuePass(models.Model):
    """When the queue of an engine is decided next, and who decides it now: a lease, claimed by conditional update."""

    engine = models.CharField(max_length=63, primary_key=True)
    asked = models.BooleanField(default=False)
    """Something has changed since the last pass began, and a worker was sent for."""
    next_at = models.DateTimeField(null=True, blank=True)
    """When the sweep sends for a worker, where jobs wait."""
    lease_owner = models.CharField(max_length=32, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    setbacks = models.PositiveIntegerField(default=0)
    """Failed passes in a row; the next one waits longer after each."""
    refreshed_at = models.DateTimeField(null=True, blank=True)
    """When the numbers and positions of all waiting jobs were last brought up to date."""
    estimate_at = models.DateTimeField(null=True, blank=True)
    """When it may be estimated again how long they wait."""

    def __str__(self) -> str:
        return f"the queue of {self.engine}"


class AdmissionLock(models.Model):
    """Its one row is locked while jobs are admitted, so that two passes never see the same free capacity.

    One for all engines, because a namespace's quota is for all engines together.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)

    def __str__(self) -> str:
        return "the lock of admissions"


class EngineProbe(models.Model):
    """One row per engine and probe. Claimed by conditional update of `next_at`."""

    engine = models.CharField(max_length=63)
    probe = models.CharField(max_length=16)
    settings_digest = models.CharField(max_length=64, blank=True)
    """Of the settings under which it was tried."""
    is_well = models.BooleanField(null=True, blank=True)
    """None: not known."""
    failures = models.PositiveIntegerField(default=0)
    """Tries one after the other that found it wrong."""
    message = models.TextField(blank=True)
    remedy = models.TextField(blank=True)
    tried_at = models.DateTimeField(null=True, blank=True)
    next_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["engine", "probe"], name="one_row_per_probe")]

    def __str__(self) -> str:
        return f"{self.engine}, {self.probe}: {self.message}"
