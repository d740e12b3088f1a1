"""What namespaces have used, from the ledger: for their managers, and of all of them for administrators.

It also tells of jobs, users and namespaces that are no more. Reads only.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.db.models import Q, QuerySet

from apps.accounts.models import User
from apps.errors import Forbidden, Invalid
from apps.jobs.models import Reservation
from apps.namespaces.models import Membership, Namespace, Role
from apps.namespaces.selectors import may, namespace_for
from yardmaster.accounting import Held, Hours, hours_used, total_of
from yardmaster.errors import Problem

LONGEST = timedelta(days=366)
MOST_ROWS = 200_000
"""Of the ledger, summed for one answer."""
MOST_SHOWN = 1_000
_COLUMNS = (
    "namespace_id", "namespace_slug", "owner_id", "owner_name", "engine", "job_id", "reserved_at", "released_at", "cpu",
    "memory", "gpus",
)  # fmt: skip


@dataclass(frozen=True)
class Whose:
    """What usage is summed by."""

    namespace_id: uuid.UUID
    namespace: str
    user_id: uuid.UUID | None
    user: str
    engine: str


@dataclass(frozen=True)
class UsageReport:
    """`rows`: the largest first. `left_out` of them are only in `total`."""

    begin: datetime
    end: datetime
    rows: list[tuple[Whose, Hours]]
    total: Hours
    left_out: int


def usage_report(
    user: User, namespace: str, begin: datetime | None, end: datetime | None, now: datetime
) -> UsageReport:
    """The usage that the user may see: of one namespace (id or slug), or of all. Without times: this month so far."""
    end = end or now
    begin = begin or month_of(end)
    _refuse_window(begin, end)
    rows = _within(_visible(user, namespace), begin, end)
    if rows.count() > MOST_ROWS:
        remedy = "Request a shorter period, or one namespace."
        message = f"There are more than {MOST_ROWS} entries in this period."
        raise Invalid([Problem("from", "too_much", message, remedy)])
    found = sorted(hours_used(_held(rows), begin, end).items(), key=lambda one: (-one[1].cpu, one[0].namespace))
    total = Hours()
    for _, hours in found:
        total.cpu, total.memory, total.gpus = (
            total.cpu + hours.cpu,
            total.memory + hours.memory,
            total.gpus + hours.gpus,
        )
        total.job_ids |= hours.job_ids
    return UsageReport(begin, end, found[:MOST_SHOWN], total, max(0, len(found) - MOST_SHOWN))


def used_this_month(namespace: Namespace, now: datetime) -> Hours:
    """All that the namespace has used since the month began (UTC)."""
    rows = _within(Reservation.objects.filter(namespace_id=namespace.pk), month_of(now), now)
    return total_of(hours_used(_held(rows[:MOST_ROWS]), month_of(now), now).values())


def month_of(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def _refuse_window(begin: datetime, end: datetime) -> None:
    if begin >= end:
        raise Invalid([Problem("to", "out_of_range", "It is not later than `from`.", "Choose a later time.")])
    if end - begin > LONGEST:
        raise Invalid(
            [Problem("from", "out_of_range", "More than 366 days before `to`.", "Request at most one year at a time.")]
        )


def _visible(user: User, namespace: str) -> QuerySet[Reservation]:
    """Administrators also see what was removed, by the name or id that it had."""
    if user.is_staff:
        return Reservation.objects.filter(_called(namespace)) if namespace else Reservation.objects.all()
    if namespace:
        found = namespace_for(user, namespace)
        if not may(user, found, Role.MANAGER):
            raise Forbidden(f"This needs the manager role in {found.slug}.", "Ask a manager of the namespace.")
        return Reservation.objects.filter(namespace_id=found.pk)
    managed = Membership.objects.filter(user=user, role=Role.MANAGER).values("namespace_id")
    return Reservation.objects.filter(namespace_id__in=managed)


def _called(namespace: str) -> Q:
    try:
        return Q(namespace_id=uuid.UUID(namespace))
    except ValueError:
        return Q(namespace_slug=namespace)


def _within(rows: QuerySet[Reservation], begin: datetime, end: datetime) -> QuerySet[Reservation]:
    return rows.filter(Q(released_at__isnull=True) | Q(released_at__gt=begin), reserved_at__lt=end)


def _held(rows: QuerySet[Reservation]) -> Iterator[Held[Whose]]:
    for row in rows.values_list(*_COLUMNS).iterator(chunk_size=2_000):
        job_id, since, until, cpu, memory, gpus = row[5:]
        yield Held(Whose(*row[:5]), job_id, since, until, float(cpu), memory, gpus)
