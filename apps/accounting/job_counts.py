"""How many jobs held something within a time: counted by day once a day is closed, so that a year is read in a moment.

A job that holds something on many days is one job. So each day says how many jobs it has by the last day before on
which they held something (`JobCount`): those for whom that was before the first day of a time are new in it. A job has
one namespace, owner and engine. Not here: who may see it (`report`).
"""

from __future__ import annotations

import time
from collections import Counter
from datetime import date, datetime, timedelta
from itertools import chain
from uuid import UUID

from django.db import connection
from django.db.models import Count, Min, OuterRef, Q, QuerySet, Subquery, Sum

from apps.accounting.models import JobCount, UsageState
from apps.accounting.sums import Key, Only, present
from apps.jobs.models import Reservation
from yardmaster.accounting.calendar import DAY, begin_of, day_of, month_of, next_month

_NAMES = ("namespace_id", "namespace_slug", "owner_id", "owner_name", "engine")
_COLUMNS = ("before", *_NAMES, "role")
_READ = ("job_id", "role", "released_at", *_NAMES)
LONGEST_RUN, LONGEST_RUN_OF_SQLITE = 5.0, 0.5
"""Seconds after which no further day is begun in one transaction."""
_INSTANT = timedelta(microseconds=1)
_AT_ONCE = 2_000
_Of = tuple[UUID, str]
"""A job and one of its roles, or all of them (empty)."""


def jobs_count(state: UsageState) -> bool:
    """Count the jobs of the first summed day that is not counted, of its month where it was the last of it, and of
    further days for a few seconds; False: there is none. The caller has locked the row of `state`."""
    day = state.jobs_upto or _first_day(state)
    if day >= state.upto:
        return False
    begun, held = time.monotonic(), _held_at(day)
    while day < state.upto and time.monotonic() - begun < _longest_run():
        held = _count_day(day, held)
        day += DAY
        if day == month_of(day):
            _write(True, month_of(day - DAY), _jobs_of_month(month_of(day - DAY)))
    state.jobs_upto = day
    state.save(update_fields=["jobs_upto"])
    return True


def _longest_run() -> float:
    """SQLite lets no one else write meanwhile."""
    return LONGEST_RUN if connection.vendor == "postgresql" else LONGEST_RUN_OF_SQLITE


def jobs_forget(state: UsageState, day: date) -> None:
    """Forget the counts of this day and later ones. The caller saves `state`."""
    if state.jobs_upto is not None and day < state.jobs_upto:
        months = Q(is_month=True, begin__gte=month_of(day))
        JobCount.objects.filter(Q(is_month=False, begin__gte=day) | months).delete()
        state.jobs_upto = day


def _first_day(state: UsageState) -> date:
    first = Reservation.objects.aggregate(at=Min("reserved_at"))["at"]
    return min(day_of(first), state.upto) if first else state.upto


def _write(is_month: bool, begin: date, jobs: Counter[Key]) -> None:
    JobCount.objects.filter(is_month=is_month, begin=begin).delete()
    rows = (
        JobCount(is_month=is_month, begin=begin, jobs=count, **dict(zip(_COLUMNS, key, strict=True)))
        for key, count in jobs.items()
    )
    JobCount.objects.bulk_create(rows, batch_size=_AT_ONCE)


def _held_at(day: date) -> list[Key]:
    """What began before the day and was held in it, by `_READ`. Of days long ago the ledger is read as a whole: once
    for several days."""
    rows = Reservation.objects.filter(present(begin_of(day), begin_of(day + DAY)), reserved_at__lt=begin_of(day))
    return list(rows.order_by().values_list(*_READ))


def _count_day(day: date, held: list[Key]) -> list[Key]:
    """Returns what is held at its end."""
    begin, end = begin_of(day), begin_of(day + DAY)
    rows = Reservation.objects.filter(reserved_at__gte=begin, reserved_at__lt=end).order_by()
    before = _days_before(day, rows)
    names: dict[_Of, Key] = {}
    still: list[Key] = []
    for is_held, row in chain(((False, one) for one in rows.values_list(*_READ)), ((True, one) for one in held)):
        job, role, released_at, *of_job = row
        names[job, role] = names[job, ""] = tuple(of_job)
        if is_held:
            before[job, role] = before[job, ""] = day - DAY
        if released_at is None or released_at > end:
            still.append(row)
    _write(False, day, Counter((before.get(one), *of_job, one[1]) for one, of_job in names.items()))
    return still


def _days_before(day: date, begun: QuerySet[Reservation]) -> dict[_Of, date]:
    """Of the jobs of these rows, the last day before this one on which they held something."""
    found: dict[_Of, date] = {}
    earlier = Reservation.objects.filter(reserved_at__lt=begin_of(day), job_id__in=begun.values("job_id")).order_by()
    for job, role, reserved_at, released_at in earlier.values_list("job_id", "role", "reserved_at", "released_at"):
        last = day - DAY
        if released_at is not None:
            last = min(last, day_of(max(reserved_at, released_at - _INSTANT)))
        for one in ((job, role), (job, "")):
            found[one] = max(found.get(one, last), last)
    return found


def _jobs_of_month(month: date) -> Counter[Key]:
    """Each job on its first day in the month."""
    new = Q(before__isnull=True) | Q(before__lt=month)
    rows = JobCount.objects.filter(new, is_month=False, begin__gte=month, begin__lt=next_month(month)).order_by()
    return Counter({tuple(key): int(count) for *key, count in rows.values_list(*_COLUMNS).annotate(Sum("jobs"))})


def jobs_within(
    begin: datetime, end: datetime, days: tuple[date, date], columns: Key, only: Only
) -> dict[Key, int]:  # fmt: skip
    """How many jobs have rows that began or were held in [begin, end), by `columns`. The days of [first, last) lie in
    it and are counted, or there are none. At most three statements, in one snapshot of the caller."""
    first, last = days
    if first >= last:
        return dict(_of_ledger(begin, end, columns, only))
    middle = (begin_of(first), begin_of(last))
    found = _of_days(first, last, columns, only)
    if middle[1] < end:
        found.update(_of_ledger(middle[1], end, columns, only, without=middle))
    if begin < middle[0]:
        found.update(_of_ledger(begin, middle[0], columns, only, without=(middle[0], end)))
    return dict(found)


def _of_days(first: date, last: date, columns: Key, only: Only) -> Counter[Key]:
    month, months_end = first if first == month_of(first) else next_month(first), month_of(last)
    which = Q(is_month=False, begin__gte=first, begin__lt=last)
    if month < months_end:
        which = Q(is_month=True, begin__gte=month, begin__lt=months_end)
        which |= Q(is_month=False, begin__gte=first, begin__lt=month)
        which |= Q(is_month=False, begin__gte=months_end, begin__lt=last)
    new = Q(before__isnull=True) | Q(before__lt=first)
    roles = ~Q(role="") if "role" in columns else Q(role="")
    rows = JobCount.objects.filter(which, new, roles, **only).order_by()
    if not columns:
        return Counter({(): int(rows.aggregate(jobs=Sum("jobs"))["jobs"] or 0)})
    return Counter({tuple(key): int(jobs) for *key, jobs in rows.values_list(*columns).annotate(Sum("jobs"))})


def _of_ledger(
    begin: datetime, end: datetime, columns: Key, only: Only, without: tuple[datetime, datetime] | None = None
) -> Counter[Key]:
    """From the rows themselves; `without` those of jobs (and roles) that are present in that time."""
    rows = Reservation.objects.filter(present(begin, end), **only).order_by()
    if without is not None:
        same = {name: OuterRef(name) for name in ("job_id", *(["role"] if "role" in columns else []))}
        # Looked up for each row: as a condition PostgreSQL would read the ledger of that whole time.
        there = Reservation.objects.filter(present(*without), **same).order_by().values("pk")[:1]
        rows = rows.annotate(there=Subquery(there)).filter(there=None)
    count = Count("job_id", distinct=True)
    if not columns:
        return Counter({(): rows.aggregate(jobs=count)["jobs"]})
    return Counter({tuple(key): jobs for *key, jobs in rows.values_list(*columns).annotate(count)})
