"""Days of the ledger, summed once they are closed, so that a year is read in a moment.

A day is summed an hour after its end, from the rows that began in it and those that the day before had carried over.
Doing it again changes nothing. A row that is found to contradict what was summed (closed with an earlier time, added
late, a clock that was set back) takes the sums back to its day. Not here: reading them (`use`).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from datetime import date, datetime, timedelta

from django.db import transaction
from django.db.models import Max, Min, Q, QuerySet
from django.db.models.functions import Greatest

from apps.accounting.measuring import day_measure
from apps.accounting.models import UsageCarried, UsageDay, UsageState
from apps.accounting.sums import Sums, ledger_sums
from apps.jobs.models import Reservation
from yardmaster.accounting.amounts import Amounts
from yardmaster.accounting.calendar import DAY, begin_of, day_of

GRACE = timedelta(hours=1)
"""After a day's end: what was begun before it is written by then."""
LONGEST_RUN = 20.0
"""Seconds after which no further day is begun; the next run continues."""
KEYS = ("namespace_id", "namespace_slug", "owner_id", "owner_name", "role", "engine")
_AT_ONCE = 2_000


def usage_sweep(now: datetime, *, longest: float = LONGEST_RUN) -> int:
    """Sum the days that are closed and not summed yet, each in a transaction of its own. Returns how many. May be
    repeated, and by several workers at once."""
    begun, count = time.monotonic(), 0
    while _next_day(now):
        count += 1
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


def _next_day(now: datetime) -> bool:
    with transaction.atomic():
        state = _locked() or _first_state()
        if state is None:
            return False
        wrong_since = _contradicted(state, now)
        if wrong_since is not None and wrong_since < state.upto:
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


def _contradicted(state: UsageState, now: datetime) -> date | None:
    """The first summed day about which the ledger now says something else; None: none is known."""
    summed = begin_of(state.upto)
    closed = carried_rows().filter(released_at__lt=summed)
    added = Reservation.objects.filter(pk__gt=state.last_reservation, reserved_at__lt=summed)
    times = [
        closed.aggregate(at=Min(Greatest("released_at", "reserved_at")))["at"],
        added.aggregate(at=Min("reserved_at"))["at"],
        now if now < summed else None,
    ]
    known = [day_of(at) for at in times if at is not None]
    return min(known, default=None)


def _back_to(state: UsageState, day: date) -> None:
    UsageDay.objects.filter(day__gte=day).delete()
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
            for key, amounts in merged(ledger_sums(one, begin, end, KEYS) for one in rows).items()
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
    """Sums by the same keys, together."""
    found: dict[tuple[object, ...], Amounts] = {}
    for one in several:
        for key, amounts in one.items():
            found.setdefault(key, Counter()).update(amounts)
    return found
