"""Days of the ledger, summed once they are closed, so that a year is read in a moment.

A day is summed an hour after its end, from the rows that began in it and those that the day before had carried over.
Doing it again changes nothing. A row that is found to contradict what was summed (closed with an earlier time, added
late, a clock that was set back) takes the sums back to its day; until then `Known` says how far they may be read. Not
here: reading them (`use`), and months (`months`).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import IntegerField, Max, Min, Q, QuerySet, Value
from django.db.models.functions import Greatest

from apps.accounting.job_counts import jobs_count, jobs_forget
from apps.accounting.measuring import day_measure
from apps.accounting.models import UsageCarried, UsageDay, UsageState
from apps.accounting.months import KEYS, month_sum, months_forget
from apps.accounting.sums import Sums, ledger_sums
from apps.jobs.models import Reservation
from yardmaster.accounting.calendar import DAY, begin_of, day_of, month_of

GRACE = timedelta(hours=1)
"""After a day's end: what was begun before it is written by then."""
LONGEST_RUN = 20.0
"""Seconds after which no further day is begun; the next run continues."""
_AT_ONCE = 2_000


def usage_sweep(now: datetime, *, longest: float = LONGEST_RUN) -> int:
    """Sum the days and months that are closed and not summed yet, and count their jobs, each in a transaction of its
    own. Returns how many days. May be repeated, and by several workers at once."""
    begun, count = time.monotonic(), 0
    while (is_day := _next_day(now)) or _next(month_sum) or _next(jobs_count):
        count += is_day
        if time.monotonic() - begun > longest:
            break
    return count


def usage_rebuild(since: date | None = None) -> None:
    """Forget the sums from this day on (None: all): the next sweeps make them again."""
    with transaction.atomic():
        state = _locked()
        first = _first_day()
        if state is not None:
            _back_to(state, max(since or first or state.upto, first or state.upto) if first else state.upto)


def carried_rows() -> QuerySet[Reservation]:
    """Those that began before the first day that is not summed, and may have been held in it."""
    return Reservation.objects.filter(pk__in=UsageCarried.objects.values("reservation_id"))


@dataclass(frozen=True)
class Known:
    """How far the sums may be read: days before `right_upto` say what the ledger says, and so do months before
    `months_upto` and the jobs of days before `jobs_upto`. `upto`: which days are summed, right or not."""

    upto: date
    right_upto: date
    months_upto: date | None
    jobs_upto: date | None


def known_sums() -> Known | None:
    """None: nothing is summed. Two statements; right at every moment, also before a sweep has found a correction."""
    state = UsageState.objects.first()
    if state is None:
        return None
    right = min(_contradicted(state) or state.upto, state.upto)
    months = state.months_upto and min(state.months_upto, month_of(right))
    return Known(state.upto, right, months, state.jobs_upto and min(state.jobs_upto, right))


def _next(step: Callable[[UsageState], bool]) -> bool:
    with transaction.atomic():
        state = _locked()
        return state is not None and step(state)


def _next_day(now: datetime) -> bool:
    with transaction.atomic():
        state = _locked() or _first_state()
        if state is None:
            return False
        wrong_since = min(_contradicted(state) or state.upto, day_of(now))
        if wrong_since < state.upto:
            _back_to(state, wrong_since)
        if begin_of(state.upto) + DAY + GRACE > now:
            return False
        _sum_day(state)
        return True


def _locked() -> UsageState | None:
    return UsageState.objects.select_for_update().filter(pk=1).first()


def _first_day() -> date | None:
    first = Reservation.objects.aggregate(at=Min("reserved_at"))["at"]
    return day_of(first) if first else None


def _first_state() -> UsageState | None:
    """None: nothing was ever held."""
    first = _first_day()
    if first is None:
        return None
    UsageState.objects.bulk_create([UsageState(upto=first, measured_upto=first)], ignore_conflicts=True)
    return _locked()


def _contradicted(state: UsageState) -> date | None:
    """The first summed day about which the ledger now says something else; None: none is known. One statement."""
    summed = begin_of(state.upto)
    closed = carried_rows().filter(released_at__lt=summed)
    added = Reservation.objects.filter(pk__gt=state.last_reservation, reserved_at__lt=summed)
    first = _earliest(closed, Greatest("released_at", "reserved_at")).union(_earliest(added, "reserved_at"), all=True)
    return min((day_of(at) for (at,) in first if at is not None), default=None)


def _earliest(rows: QuerySet[Reservation], what: Any) -> QuerySet[Reservation, tuple[datetime | None]]:
    """The earliest of them, or None: one row."""
    one = rows.order_by().annotate(one=Value(1, output_field=IntegerField())).values("one")
    return one.annotate(at=Min(what)).values_list("at")


def _back_to(state: UsageState, day: date) -> None:
    UsageDay.objects.filter(day__gte=day).delete()
    months_forget(state, day)
    jobs_forget(state, day)
    state.upto = min(day, state.upto)
    begun = Reservation.objects.filter(reserved_at__lt=begin_of(state.upto))
    _carry(state, [begun])


def _sum_day(state: UsageState) -> None:
    begin, end = begin_of(state.upto), begin_of(state.upto + DAY)
    rows = [carried_rows(), Reservation.objects.filter(reserved_at__gte=begin, reserved_at__lt=end)]
    UsageDay.objects.filter(day=state.upto).delete()
    UsageDay.objects.bulk_create(
        (
            UsageDay(day=state.upto, resource=resource, amount=amount, **dict(zip(KEYS, key, strict=True)))
            for key, amounts in ledger_sums(rows, begin, end, KEYS).items()
            for resource, amount in amounts.items()
        ),
        batch_size=_AT_ONCE,
    )
    if state.upto >= state.measured_upto:
        day_measure(state.upto)
        state.measured_upto = state.upto + DAY
    state.upto += DAY
    _carry(state, rows)


def _carry(state: UsageState, rows: list[QuerySet[Reservation]]) -> None:
    """Of these rows keep those that the first day which is not summed begins with."""
    still = Q(released_at__isnull=True) | Q(released_at__gte=begin_of(state.upto))
    ids = {pk for one in rows for pk in one.filter(still).order_by().values_list("pk", flat=True)}
    UsageCarried.objects.all().delete()
    UsageCarried.objects.bulk_create((UsageCarried(reservation_id=pk) for pk in sorted(ids)), batch_size=_AT_ONCE)
    # Of what was begun so far: a later row with a time before the day is a correction.
    state.last_reservation = Reservation.objects.aggregate(last=Max("pk"))["last"] or 0
    state.save()


def merged(several: Iterable[Sums]) -> Sums:
    """Sums by the same keys, together; the first of them is used up."""
    found: Sums = {}
    for one in several:
        if not found:
            found = one
            continue
        for key, amounts in one.items():
            found.setdefault(key, Counter()).update(amounts)
    return found
