"""Use within any time: the days that are summed, and from the ledger what is not. Exact to the second, in four
statements.

Not here: who may see it (`report`), and what it costs (`priced`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime
from typing import Any

from django.db import connection, transaction
from django.db.models import F, QuerySet, Sum
from django.db.models.functions import TruncMonth, TruncWeek

from apps.accounting.models import UsageDay, UsageState
from apps.accounting.rollup import carried_rows, merged
from apps.accounting.sums import Key, Sums, ledger_sums, overlapping, seconds_of
from apps.jobs.models import Reservation
from yardmaster.accounting.amounts import CPU, GPUS, KIB, MEMORY, THOUSANDTHS, Amounts
from yardmaster.accounting.calendar import DAY, begin_of, day_of, days, step_of

FIELDS: Mapping[str, tuple[str, ...]] = {
    "namespace": ("namespace_id", "namespace_slug"),
    "user": ("owner_id", "owner_name"),
    "role": ("role",),
    "engine": ("engine",),
}
"""What use is summed by, and the columns that say it: both the ledger and the summed days have them."""
Only = Mapping[str, Any]
"""Which rows: lookups of those columns."""
_STEPS = {"month": TruncMonth, "week": TruncWeek}
_HELD = ("reserved_at", "released_at", "cpu", "memory", "gpus", "extended")


def columns_of(by: Iterable[str]) -> tuple[str, ...]:
    return tuple(column for name in by for column in FIELDS[name])


def use(begin: datetime, end: datetime, by: Iterable[str], only: Only | None = None, step: str = "") -> Sums:
    """What was held in [begin, end), by the columns of `by`; with a step (`day`, `week`, `month`) its first day is the
    last part of each key."""
    only, keys = only or {}, columns_of(by)
    if end <= begin:
        return {}
    with one_snapshot():
        return _use(begin, end, keys, only, step)


@contextmanager
def one_snapshot() -> Iterator[None]:
    """On PostgreSQL all statements within see the same moment: a day that is closed meanwhile is neither missed nor
    counted twice. Where a transaction is running already, its own level stays."""
    if connection.vendor != "postgresql" or connection.in_atomic_block:
        yield
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def _use(begin: datetime, end: datetime, keys: Key, only: Only, step: str) -> Sums:
    state = UsageState.objects.first()
    first, last = _whole_days(begin, end, state)
    parts = [(begin, end)] if first >= last else [(begin, begin_of(first)), (begin_of(last), end)]
    found = [_summed(first, last, keys, only, step)] if first < last else []
    for since, until in parts:
        if since < until:
            for rows in _ledger(since, until, state):
                found.append(_of_ledger(rows.filter(**only), since, until, keys, step))
    return merged(found)


def _whole_days(begin: datetime, end: datetime, state: UsageState | None) -> tuple[date, date]:
    """The days of [first, last) are summed and lie in [begin, end); first >= last: none."""
    first, last = day_of(begin), day_of(end)
    if begin_of(first) < begin:
        first += DAY
    return first, min(last, state.upto) if state is not None else first


def _ledger(since: datetime, until: datetime, state: UsageState | None) -> list[QuerySet[Reservation]]:
    if state is not None and since >= begin_of(state.upto):
        begun = Reservation.objects.filter(reserved_at__gte=begin_of(state.upto), reserved_at__lt=until)
        return [carried_rows(), begun]
    return [Reservation.objects.filter(overlapping(since, until))]


def _summed(first: date, last: date, keys: Key, only: Only, step: str) -> Sums:
    rows = UsageDay.objects.filter(day__gte=first, day__lt=last, **only).order_by()
    if step:
        keys = (*keys, "step")
        rows = rows.annotate(step=_STEPS[step]("day") if step in _STEPS else F("day"))
    found: dict[Key, Amounts] = {}
    for *key, resource, amount in rows.values_list(*keys, "resource").annotate(Sum("amount")):
        found.setdefault(tuple(key), Counter())[resource] = amount
    return found


def _of_ledger(rows: QuerySet[Reservation], since: datetime, until: datetime, keys: Key, step: str) -> Sums:
    if not step:
        return ledger_sums(rows, since, until, keys)
    found: dict[Key, Amounts] = {}
    cuts = _cuts(since, until, step)
    for *key, reserved_at, released_at, cpu, memory, gpus, extended in rows.values_list(*keys, *_HELD).iterator():
        begin, end = seconds_of(reserved_at), seconds_of(released_at or until)
        amounts = {CPU: round(cpu * THOUSANDTHS), MEMORY: memory // KIB, GPUS: gpus, **extended}
        for first, low, high in cuts:
            seconds = min(high, end) - max(low, begin)
            if seconds > 0:
                held = {name: seconds * int(amount) for name, amount in amounts.items() if amount}
                found.setdefault((*key, first), Counter()).update(held)
    return found


def _cuts(since: datetime, until: datetime, step: str) -> list[tuple[date, int, int]]:
    """The steps of [since, until): the first day of each, and from when to when it is, in Unix seconds."""
    found: list[tuple[date, int, int]] = []
    for day in _days(since, until):
        first = step_of(day, step)
        low = max(seconds_of(since), seconds_of(begin_of(day)))
        high = min(seconds_of(until), seconds_of(begin_of(day + DAY)))
        if found and found[-1][0] == first:
            found[-1] = (first, found[-1][1], high)
        else:
            found.append((first, low, high))
    return found


def _days(since: datetime, until: datetime) -> Iterator[date]:
    return days(day_of(since), day_of(until) + DAY)
