"""What a namespace may hold and what it holds now, put together from those who keep the books; also in words, for
bars.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from django.db.models import Count, Q, Sum

from apps.jobs.models import Job, Reservation
from apps.jobs.selectors import ON_THE_ENGINE, UNFINISHED
from apps.jobs.state import ledger
from apps.namespaces.models import QUANTITY_NAMES, Namespace, Quota, limits_of
from apps.namespaces.selectors import quota_shown
from apps.uploads.selectors import storage_used
from apps.workbench.models import WorkbenchSession
from yardmaster.lifecycle.phases import Phase, Wanted

COUNTED = tuple(QUANTITY_NAMES)
_SHOWN_IF_LIMITED = ("logs", "sessions", "queued_jobs")
"""What most namespaces have no limit of: a bar without one would say nothing."""


@dataclass(frozen=True)
class ShareByName:
    """Of a resource that has no field of its own. `hard` None: unlimited."""

    hard: int | None
    used: int


@dataclass(frozen=True)
class Usage:
    """By the names in `COUNTED`. `hard` None: unlimited. `reserved`: set aside for uploads that are on their way."""

    hard: dict[str, float | None]
    used: dict[str, float]
    reserved: dict[str, float]
    logs: int = 0
    """Bytes: the part of the storage in use that is what tasks printed."""
    priority_ceiling: int = 0
    extended: dict[str, ShareByName] = field(default_factory=dict)
    """Resources of other kinds that are limited or in use, by name."""


def usage_of(namespace: Namespace) -> Usage:
    """The namespace's limits and what it holds."""
    quota = quota_shown(namespace)
    held = _held(namespace)
    stored = storage_used(namespace)
    return Usage(
        hard={name: plain(getattr(quota, name)) for name in COUNTED},
        used={name: held.get(name, 0) for name in COUNTED}
        | {"storage": stored.used, "files": stored.files, "logs": stored.logs},
        reserved=dict.fromkeys(COUNTED, 0.0) | {"storage": stored.reserved},
        logs=stored.logs,
        priority_ceiling=quota.priority_ceiling,
        extended=_by_name(quota, held),
    )


def _held(namespace: Namespace) -> dict[str, float]:
    """What its admitted jobs hold, by resource; how many of its jobs run and wait, and its sessions. Two statements."""
    total = ledger.total_of(ledger.held_in([namespace.pk]))
    sessions = WorkbenchSession.objects.filter(namespace=namespace).values("job")
    counts = (
        Job.objects.filter(namespace=namespace, phase__in=UNFINISHED)
        .order_by()
        .aggregate(
            running_jobs=Count("pk", filter=Q(phase__in=ON_THE_ENGINE)),
            queued_jobs=Count("pk", filter=Q(phase=Phase.QUEUED, wanted=Wanted.RUN, deleted_at=None)),
            sessions=Count("pk", filter=Q(pk__in=sessions, deleted_at=None)),
        )
    )
    return {**total.as_amounts(), **counts}


def _by_name(quota: Quota, held: dict[str, float]) -> dict[str, ShareByName]:
    used = {name: int(amount) for name, amount in held.items() if name not in COUNTED and amount}
    limits = limits_of(quota).limits(used)
    return {
        name: ShareByName(int(limits[name]) if name in limits else None, used.get(name, 0))
        for name in sorted({*quota.extended, *used})
    }


def plain(value: Decimal | int | None) -> float | None:
    """A limit as a plain number; None: unlimited."""
    return float(value) if isinstance(value, Decimal) else value


@dataclass(frozen=True)
class Holding:
    """What one person's admitted jobs hold together."""

    username: str
    jobs: int
    cpu: float
    memory: int
    gpus: int


def holdings_in(namespace: Namespace) -> list[Holding]:
    """All who hold anything, the most cores first. One query."""
    held = Reservation.objects.filter(namespace=namespace, released_at__isnull=True)
    rows = held.values("job__owner__username").annotate(
        jobs=Count("job", distinct=True), cpu=Sum("cpu"), memory=Sum("memory"), gpus=Sum("gpus")
    )
    return [
        Holding(row["job__owner__username"], row["jobs"], float(row["cpu"]), row["memory"], row["gpus"])
        for row in rows.order_by("-cpu", "job__owner__username")
    ]


NAMES_OF_CHANGES = {**QUANTITY_NAMES, "priority_ceiling": ("Priority ceiling", "")}
"""What else the quota says, which is no amount."""


@dataclass(frozen=True)
class QuotaRow:
    """One bar. `hard` None: no limit. `unit`: `bytes`, or empty for plain numbers."""

    name: str
    used: float
    reserved: float
    hard: float | None
    unit: str
    logs: int = 0
    """Of storage: the bytes in use that are logs."""


def quota_rows(usage: Usage) -> list[QuotaRow]:
    """What is bounded or in use, in the order of `Usage`; a kind that is neither (no GPU anywhere) is left out."""
    rows = [
        QuotaRow(
            name, usage.used[key], usage.reserved[key], usage.hard[key], unit, usage.logs if key == "storage" else 0
        )
        for key, (name, unit) in QUANTITY_NAMES.items()
        if key not in _SHOWN_IF_LIMITED or usage.hard[key] is not None
    ]
    named = [QuotaRow(name, one.used, 0, one.hard, "") for name, one in usage.extended.items()]
    return [row for row in rows if row.hard or row.used or row.reserved or row.name != "GPUs"] + named
