"""What administrators are shown beside hours: parameter servers without progress, and what causes of failures are
called. Reads only. Not here: the figures of the dashboard (`dashboard_pages`)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.conf import settings
from django.db.models import DateTimeField, ExpressionWrapper, Q, QuerySet, Value
from django.db.models.functions import Coalesce, Greatest

from apps.accounting.sums import Only
from apps.jobs.models import Reservation
from yardmaster.job.spec import Role
from yardmaster.lifecycle.failures import REASONS

MOST = 50


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


def title_of(reason: str) -> str:
    """What a reason is called."""
    return REASONS[reason].title if reason in REASONS else reason or "Unknown"
