"""Closed months, summed from their days, so that years are read in a moment.

One month at a time, in the order of time: an installation that has days and no months yet is filled in the background,
and what is not summed is read from the days meanwhile. Not here: days (`rollup`), and reading both (`use`).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from django.db.models import Min, Sum

from apps.accounting.models import UsageDay, UsageMonth, UsageState
from yardmaster.accounting.calendar import month_of, next_month

KEYS = ("namespace_id", "namespace_slug", "owner_id", "owner_name", "role", "engine")
_AT_ONCE = 2_000


def month_sum(state: UsageState) -> bool:
    """Sum the first month whose days are all summed and that is not; False: there is none. The caller has locked the
    row of `state`."""
    month = state.months_upto or _first_month(state)
    if next_month(month) > state.upto:
        return False
    UsageMonth.objects.filter(month=month).delete()
    UsageMonth.objects.bulk_create(_rows(month), batch_size=_AT_ONCE)
    state.months_upto = next_month(month)
    state.save(update_fields=["months_upto"])
    return True


def months_forget(state: UsageState, day: date) -> None:
    """Forget the months that have this day or a later one. The caller saves `state`."""
    if state.months_upto is not None and month_of(day) < state.months_upto:
        UsageMonth.objects.filter(month__gte=month_of(day)).delete()
        state.months_upto = month_of(day)


def _first_month(state: UsageState) -> date:
    first = UsageDay.objects.aggregate(day=Min("day"))["day"]
    return month_of(min(first, state.upto) if first else state.upto)


def _rows(month: date) -> Iterator[UsageMonth]:
    days = UsageDay.objects.filter(day__gte=month, day__lt=next_month(month)).order_by()
    for *key, resource, amount in days.values_list(*KEYS, "resource").annotate(Sum("amount")).iterator():
        yield UsageMonth(month=month, resource=resource, amount=amount, **dict(zip(KEYS, key, strict=True)))
