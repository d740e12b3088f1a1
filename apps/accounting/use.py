"""Use within any time: the months and days that are summed, and from the ledger what is not. Exact to the second, in
four statements.

Not here: who may see it (`report`), and what it costs (`priced`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from typing import Any

from django.db import connection, transaction
from django.db.models import F, Q, QuerySet, Sum
from django.db.models.functions import TruncMonth, TruncWeek

from apps.accounting.job_counts import jobs_within
from apps.accounting.models import UsageDay, UsageMonth
from apps.accounting.rollup import Known, carried_rows, known_sums, merged
from apps.accounting.sums import Key, Only, Sums, combined, ledger_sums, overlapping, seconds_of, sums_of_parts
from apps.jobs.models import Reservation
from yardmaster.accounting.amounts import CPU, GPUS, KIB, MEMORY, THOUSANDTHS, Amounts
from yardmaster.accounting.calendar import DAY, begin_of, day_of, days, month_of, next_month, step_of

FIELDS: Mapping[str, tuple[str, ...]] = {
    "namespace": ("namespace_id", "namespace_slug"),
    "user": ("owner_id", "owner_name"),
    "role": ("role",),
    "engine": ("engine",),
}
"""What use is summed by, and the columns that say it: both the ledger and the summed days have them."""
_NARROW: Mapping[str, tuple[str, ...]] = {**FIELDS, "slug": ("namespace_slug",)}
"""With what pages show of a namespace, whichever had the name: fewer columns are summed sooner."""
_OF_MONTHS = ("", "month")
"""Steps that whole months can be summed by."""
_STEPS = {"month": TruncMonth, "week": TruncWeek}
_AT_ONCE = 2_000
_MOST_PARTS = 3
"""Steps of a time that the database sums in one statement; of more the rows are read."""
_HELD = ("reserved_at", "released_at", "cpu", "memory", "gpus", "extended")


def columns_of(by: Iterable[str]) -> tuple[str, ...]:
    return tuple(column for name in by for column in _NARROW[name])


def use(begin: datetime, end: datetime, by: Iterable[str], only: Only | None = None, step: str = "") -> Sums:
    """What was held in [begin, end), by the columns of `by`; with a step (`day`, `week`, `month`) its first day is the
    last part of each key."""
    only, keys = only or {}, columns_of(by)
    if end <= begin:
        return {}
    with one_snapshot():
        return _use(begin, end, keys, only, step)


def jobs_held(begin: datetime, end: datetime, by: Iterable[str], only: Only | None = None) -> dict[Key, int]:
    """How many jobs held something in [begin, end), by the columns of `by`. At most five statements."""
    if end <= begin:
        return {}
    with one_snapshot():
        known = known_sums()
        days = _whole_days(begin, end, known.jobs_upto if known else None)
        return jobs_within(begin, end, days, columns_of(by), only or {})


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
    known = known_sums()
    first, last = _whole_days(begin, end, known.right_upto if known else None)
    parts = [(begin, end)] if first >= last else [(begin, begin_of(first)), (begin_of(last), end)]
    found = [_summed(first, last, known, keys, only, step)] if known and first < last else []
    for since, until in parts:
        if since < until:
            rows = [one.filter(**only) for one in _ledger(since, until, known)]
            found.append(_of_ledger(rows, since, until, keys, step))
    return merged(found)


def _whole_days(begin: datetime, end: datetime, upto: date | None) -> tuple[date, date]:
    """The days of [first, last) lie in [begin, end) and before `upto`; first >= last: none."""
    first = day_of(begin)
    if begin_of(first) < begin:
        first += DAY
    return first, min(day_of(end), upto) if upto is not None else first


def _ledger(since: datetime, until: datetime, known: Known | None) -> list[QuerySet[Reservation]]:
    if known is not None and known.right_upto == known.upto and since >= begin_of(known.upto):
        begun = Reservation.objects.filter(reserved_at__gte=begin_of(known.upto), reserved_at__lt=until)
        return [carried_rows(), begun]
    return [Reservation.objects.filter(overlapping(since, until))]


def _summed(first: date, last: date, known: Known, keys: Key, only: Only, step: str) -> Sums:
    """Whole months from their sums, the other days from theirs. One statement."""
    begin, end = _whole_months(first, last, known) if step in _OF_MONTHS else (last, last)
    if begin >= end:
        return _read(_days_summed(Q(day__gte=first, day__lt=last), keys, only, step))
    found = _months_summed(begin, end, keys, only, step)
    if first < begin or end < last:
        days = Q(day__gte=first, day__lt=begin) | Q(day__gte=end, day__lt=last)
        found = found.union(_days_summed(days, keys, only, step), all=True)
    return _read(found)


def _whole_months(first: date, last: date, known: Known) -> tuple[date, date]:
    """The months of [begin, end) are summed and lie in [first, last); begin >= end: none."""
    begin = first if first == month_of(first) else next_month(first)
    return begin, min(month_of(last), known.months_upto or begin)


def _months_summed(begin: date, end: date, keys: Key, only: Only, step: str) -> QuerySet[Any, Any]:
    rows = UsageMonth.objects.filter(month__gte=begin, month__lt=end, **only).order_by()
    return rows.values_list(*keys, *(["month"] if step else []), "resource").annotate(Sum("amount"))


def _days_summed(which: Q, keys: Key, only: Only, step: str) -> QuerySet[Any, Any]:
    rows = UsageDay.objects.filter(which, **only).order_by()
    if step:
        rows = rows.annotate(step=_STEPS[step]("day") if step in _STEPS else F("day"))
    return rows.values_list(*keys, *(["step"] if step else []), "resource").annotate(Sum("amount"))


def _read(rows: QuerySet[Any, Any]) -> Sums:
    found: defaultdict[Key, Amounts] = defaultdict(Counter)
    # Read as a whole: for a cursor PostgreSQL would plan as if a tenth were read, which sorts all days.
    for *key, resource, amount in rows:
        # PostgreSQL's first of a month is a time, and so is what is read together with it.
        found[tuple(one.date() if isinstance(one, datetime) else one for one in key)][resource] += int(amount)
    return dict(found)


def _of_ledger(rows: Sequence[QuerySet[Reservation]], since: datetime, until: datetime, keys: Key, step: str) -> Sums:
    if not step:
        return ledger_sums(rows, since, until, keys)
    found: dict[Key, Amounts] = {}
    cuts = _cuts(since, until, step)
    if len(cuts) <= _MOST_PARTS:
        parts = [(datetime.fromtimestamp(low, UTC), datetime.fromtimestamp(high, UTC)) for _, low, high in cuts]
        for (first, *_), sums in zip(cuts, sums_of_parts(rows, parts, keys), strict=True):
            found |= {(*key, first): amounts for key, amounts in sums.items()}
        return found
    held_rows = combined([one.order_by().values_list(*keys, *_HELD) for one in rows])
    for *key, reserved_at, released_at, cpu, memory, gpus, extended in held_rows.iterator(chunk_size=_AT_ONCE):
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
    return [(first, low, high) for first, low, high in found if low < high]


def _days(since: datetime, until: datetime) -> Iterator[date]:
    return days(day_of(since), day_of(until) + DAY)
