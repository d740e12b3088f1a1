"""What admitted jobs hold, summed from the ledger. Reads only; `admission` writes."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import datetime

from apps.jobs.models import Job, Reservation
from yardmaster.spec import NOTHING, Resources, Role, TrainingSpec

_AMOUNTS = ("job_id", "namespace_id", "cpu", "memory", "gpus", "extended")


def resources_of(row: Reservation) -> Resources:
    """What one row of the ledger holds."""
    return Resources(cpu=float(row.cpu), memory=row.memory, gpus=row.gpus, extended=row.extended)


def total_of(rows: Iterable[Reservation]) -> Resources:
    """What these rows hold together."""
    amount = NOTHING
    for row in rows:
        amount += resources_of(row)
    return amount


def reserve(job: Job, spec: TrainingSpec, now: datetime) -> None:
    """Write what every role of the current attempt holds. Inside the transaction that moves the job."""
    rows = []
    for role, one in spec.roles.items():
        amount = one.resources * one.replicas
        rows.append(
            Reservation(
                job=job, namespace_id=job.namespace_id, engine=job.engine, attempt=job.attempt, role=role.value,
                cpu=amount.cpu, memory=amount.memory, gpus=amount.gpus, extended=dict(amount.extended), reserved_at=now,
            )
        )  # fmt: skip
    Reservation.objects.bulk_create(rows)


def release(job: Job, roles: Iterable[Role], now: datetime) -> int:
    """Give back what these roles of the current attempt hold; repeating it changes nothing. Returns how many rows."""
    held = Reservation.objects.filter(job=job, attempt=job.attempt, released_at__isnull=True)
    return held.filter(role__in=[role.value for role in roles]).update(released_at=now)


def held_roles(job: Job) -> frozenset[Role]:
    """The roles of the current attempt whose quota is still held."""
    rows = Reservation.objects.filter(job=job, attempt=job.attempt, released_at__isnull=True)
    return frozenset(Role(role) for role in rows.values_list("role", flat=True))


def held_in(namespace_ids: Iterable[uuid.UUID]) -> list[Reservation]:
    """Every row that is still held in these namespaces, all engines together; with its job."""
    rows = Reservation.objects.filter(namespace_id__in=list(namespace_ids), released_at__isnull=True)
    return list(rows.select_related("job").only(*_AMOUNTS, "job__phase"))


def held_by(namespace_id: uuid.UUID, engine: str) -> Resources:
    """What the namespace's jobs still hold on an engine."""
    rows = Reservation.objects.filter(namespace_id=namespace_id, engine=engine, released_at__isnull=True)
    return total_of(rows.only(*_AMOUNTS))


def held_on(engine: str) -> list[Reservation]:
    """Every row that is still held on an engine."""
    return list(Reservation.objects.filter(engine=engine, released_at__isnull=True).only(*_AMOUNTS))
