"""What admitted jobs hold, summed from the ledger."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from django.db.models import Count, Sum

from apps.jobs.models import Job, Reservation
from yardmaster.job.spec import NOTHING, Resources, Role, Strategy, known_role
from yardmaster.lifecycle.phases import Phase
from yardmaster.queueing.ledger import Holder
from yardmaster.queueing.placement import Tasks

if TYPE_CHECKING:
    from apps.jobs.state.books import Queued

ADMITTED = [Phase.STARTING.value, Phase.RUNNING.value, Phase.STOPPING.value]
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


def reserve_all(jobs: Collection[Queued], rows: Mapping[uuid.UUID, Job], engine: str, now: datetime) -> None:
    """Write what every role of these jobs' current attempts holds. Inside the transaction that moves them. `rows`: what
    `phase_gate.start_all` has moved."""
    if not jobs:
        return
    named = {
        pk: {
            "job_name": job.name, "owner_id": job.owner_id, "owner_name": job.owner.username,
            "namespace_slug": job.namespace.slug,
        }
        for pk, job in rows.items()
    }  # fmt: skip
    Reservation.objects.bulk_create(
        Reservation(
            job_id=one.candidate.job_id, namespace_id=one.candidate.namespace_id, engine=engine, attempt=one.attempt,
            role=role, cpu=amount.cpu, memory=amount.memory, gpus=amount.gpus, extended=dict(amount.extended),
            tasks=one.replicas.get(role, 0), reserved_at=now, **named[one.candidate.job_id],
        )
        for one in jobs
        for role, amount in one.roles.items()
    )  # fmt: skip


def release(job: Job, roles: Iterable[Role], now: datetime) -> int:
    """Give back what these roles of the current attempt hold; repeating it changes nothing. Returns how many rows."""
    held = Reservation.objects.filter(job=job, attempt=job.attempt, role__in=[role.value for role in roles])
    return held.close(now)


def release_all(job: Job, now: datetime) -> int:
    """The same of every role of the current attempt, also of those that this release does not know."""
    return Reservation.objects.filter(job=job, attempt=job.attempt).close(now)


def held_roles(job: Job) -> frozenset[Role]:
    """The roles of the current attempt whose quota is still held, as far as this release knows them."""
    return held_roles_of([job]).get(job.pk, frozenset())


def held_roles_of(jobs: Iterable[Job]) -> dict[uuid.UUID, frozenset[Role]]:
    """The same of many jobs, in one query; a job that holds nothing is left out."""
    attempts = {job.pk: job.attempt for job in jobs}
    held: dict[uuid.UUID, set[Role]] = {}
    rows = Reservation.objects.filter(job__in=attempts, released_at__isnull=True)
    for job_id, attempt, name in rows.values_list("job_id", "attempt", "role"):
        role = known_role(name)
        if attempt == attempts[job_id] and role is not None:
            held.setdefault(job_id, set()).add(role)
    return {job_id: frozenset(roles) for job_id, roles in held.items()}


def held_in(namespace_ids: Iterable[uuid.UUID]) -> list[Reservation]:
    """Every row that is still held in these namespaces, all engines together; with its job."""
    rows = Reservation.objects.filter(namespace_id__in=list(namespace_ids), released_at__isnull=True)
    return list(rows.select_related("job").only(*_AMOUNTS, "job__phase"))


def held_by(namespace_id: uuid.UUID, engine: str) -> Resources:
    """What the namespace's jobs still hold on an engine."""
    rows = Reservation.objects.filter(namespace_id=namespace_id, engine=engine, released_at__isnull=True)
    return total_of(rows.only(*_AMOUNTS))


def holders(engine: str) -> list[Holder]:
    """What each admitted job holds, as `held_now` says it."""
    return held_now(engine)[0]


def held_now(engine: str) -> tuple[list[Holder], dict[uuid.UUID, int]]:
    """What each admitted job holds, the first launched first: of every engine, since quotas are for all together. And
    how many jobs of each namespace count as running: those that hold something, and have no verdict. One statement."""
    held = Reservation.objects.filter(released_at__isnull=True).values(
        "job_id", "namespace_id", "engine", "extended", "job__phase"
    )
    sums = held.annotate(cpus=Sum("cpu"), bytes=Sum("memory"), pieces=Sum("gpus"), rows=Count("pk")).order_by("job_id")
    found: dict[tuple[uuid.UUID, bool], Holder] = {}
    running: dict[uuid.UUID, set[uuid.UUID]] = {}
    for row in sums:
        here = row["engine"] == engine
        extended = {name: amount * row["rows"] for name, amount in row["extended"].items()}  # roles that hold the same
        amount = Resources(float(row["cpus"]), int(row["bytes"]), int(row["pieces"]), extended)
        before = found.get((row["job_id"], here))
        total = amount if before is None else before.resources + amount
        found[row["job_id"], here] = Holder(row["job_id"], row["namespace_id"], total, here)
        if row["job__phase"] in ADMITTED:
            running.setdefault(row["namespace_id"], set()).add(row["job_id"])
    return list(found.values()), {key: len(jobs) for key, jobs in running.items()}


def tasks_on(engine: str) -> Iterator[tuple[uuid.UUID, Tasks]]:
    """The tasks of every role that is held on an engine, with their job, the first admitted first. One statement. Rows
    from before tasks were counted are left out: theirs have their nodes."""
    rows = Reservation.objects.filter(engine=engine, released_at__isnull=True, tasks__gt=0).order_by(
        "reserved_at", "pk"
    )
    for job_id, strategy, role, count, cpu, memory, gpus, extended in rows.values_list(
        "job_id", "job__strategy", "role", "tasks", "cpu", "memory", "gpus", "extended"
    ):
        pieces = {name: amount // count for name, amount in extended.items()}
        size = Resources(round(float(cpu) / count, 3), memory // count, gpus // count, pieces)
        yield job_id, Tasks(role, size, count, serves=strategy == Strategy.SERVICE)


def held_on(engine: str) -> list[Reservation]:
    """Every row that is still held on an engine."""
    return list(Reservation.objects.filter(engine=engine, released_at__isnull=True).only(*_AMOUNTS))
