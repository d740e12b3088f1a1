"""What administrators are shown beside hours: waste, parameter servers without progress, failures and waiting times.

Failures and waiting times are of jobs that still exist: they are deleted with their jobs, hours are not. Reads only.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

from django.conf import settings
from django.db.models import Count, DateTimeField, ExpressionWrapper, Q, QuerySet, Sum, Value
from django.db.models.functions import Coalesce, Greatest

from apps.accounting.models import MeasuredDay
from apps.accounting.sums import Only
from apps.jobs.models import JobAttempt, Reservation
from yardmaster.accounting.amounts import CPU, MEMORY, hours
from yardmaster.accounting.calendar import day_of
from yardmaster.job.spec import Role
from yardmaster.lifecycle.failures import REASONS
from yardmaster.lifecycle.phases import Phase

MOST = 50
MOST_WAITS = 20_000


@dataclass(frozen=True)
class Waste:
    """Of tasks that were measured: hours held and hours used."""

    namespace: str
    held_cpu: Decimal
    used_cpu: Decimal
    held_memory: Decimal
    used_memory: Decimal

    @property
    def cpu_percent(self) -> int | None:
        return _percent(self.used_cpu, self.held_cpu)

    @property
    def memory_percent(self) -> int | None:
        return _percent(self.used_memory, self.held_memory)


def _percent(used: Decimal, held: Decimal) -> int | None:
    return int(used * 100 / held) if held else None


def waste(begin: datetime, end: datetime) -> list[Waste]:
    """By namespace, the most unused core-hours first. One statement."""
    rows = MeasuredDay.objects.filter(day__gte=day_of(begin), day__lt=end).order_by()
    sums: dict[str, dict[str, tuple[int, int]]] = {}
    for slug, resource, held, used in rows.values_list("namespace_slug", "resource").annotate(Sum("held"), Sum("used")):
        sums.setdefault(slug, {})[resource] = (held, used)
    found = [
        Waste(slug, *(hours(name, amount) for name in (CPU, MEMORY) for amount in one.get(name, (0, 0))))
        for slug, one in sums.items()
    ]
    return sorted(found, key=lambda one: one.used_cpu - one.held_cpu)[:MOST]


@dataclass(frozen=True)
class IdleServers:
    """Parameter servers that are held by a job without progress."""

    job_id: UUID
    job_name: str
    namespace: str
    owner: str
    cpu: Decimal
    memory: int
    since: datetime


def idle_servers(now: datetime, only: Only | None = None) -> list[IdleServers]:
    """Of jobs whose last step, or whose start where there was none, is longer ago than the settings say; `only`: of
    which rows of the ledger. One statement."""
    rows = idle_reservations(now).filter(**(only or {})).order_by("reserved_at")
    names = ("job_id", "job_name", "namespace_slug", "owner_name", "cpu", "memory", "job__progress_at", "reserved_at")
    found = rows.values_list(*names)[:MOST]
    return [IdleServers(a, b, c, d, e, f, progress or begun) for a, b, c, d, e, f, progress, begun in found]


def idle_reservations(now: datetime) -> QuerySet[Reservation]:
    """Those of parameter servers whose job had its last step, or its start where there was none, longer ago than the
    settings say. `idle_from`: since when that is so."""
    after = settings.YARDMASTER_IDLE_SERVERS_AFTER
    is_quiet = Q(job__progress_at__lt=now - after) | Q(job__progress_at=None, reserved_at__lt=now - after)
    rows = Reservation.objects.filter(is_quiet, released_at=None, role=Role.PS.value)
    begun = Greatest(Coalesce("job__progress_at", "reserved_at"), "reserved_at")
    return rows.annotate(idle_from=ExpressionWrapper(begun + Value(after), output_field=DateTimeField()))


@dataclass(frozen=True)
class Failures:
    reason: str
    words: str
    count: int


def failures(begin: datetime, end: datetime) -> list[Failures]:
    """Attempts that failed within the time, by cause, the most frequent first. One statement."""
    rows = JobAttempt.objects.filter(phase=Phase.FAILED.value, decided_at__gte=begin, decided_at__lt=end).order_by()
    counts = rows.values_list("reason").annotate(count=Count("pk")).order_by("-count", "reason")[:MOST]
    return [Failures(reason, title_of(reason), count) for reason, count in counts]


def title_of(reason: str) -> str:
    """What a reason is called."""
    return REASONS[reason].title if reason in REASONS else reason or "Unknown"


@dataclass(frozen=True)
class Waits:
    """From queued to started, of attempts that started. None: there were none."""

    count: int
    median: timedelta | None
    ninth: timedelta | None
    """The 90th percentile."""
    is_part: bool
    """Only of the newest of them."""


def waits(begin: datetime, end: datetime) -> Waits:
    """Of attempts that were queued within the time. One statement."""
    rows = JobAttempt.objects.filter(queued_at__gte=begin, queued_at__lt=end, started_at__isnull=False)
    pairs = rows.order_by("-queued_at").values_list("queued_at", "started_at")[:MOST_WAITS]
    found = sorted(max(timedelta(), started - queued) for queued, started in pairs if started is not None)
    return Waits(len(found), _share(found, 50), _share(found, 90), len(found) == MOST_WAITS)


def _share(found: list[timedelta], percent: int) -> timedelta | None:
    """The nearest rank: so many percent of them are not longer."""
    return found[max(0, -(-len(found) * percent // 100) - 1)] if found else None
