"""Days, weeks and months of accounting, all of them UTC. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta

DAY = timedelta(days=1)
STEPS = ("day", "week", "month")
_MONTH = re.compile(r"([0-9]{4})-(0[1-9]|1[0-2])", re.ASCII)


def begin_of(day: date) -> datetime:
    """Its first moment."""
    return datetime.combine(day, time(), UTC)


def day_of(moment: datetime) -> date:
    return moment.astimezone(UTC).date()


def month_of(day: date) -> date:
    """The first day of its month."""
    return day.replace(day=1)


def next_month(day: date) -> date:
    """The first day of the month after that of `day`."""
    return (month_of(day) + timedelta(days=31)).replace(day=1)


def earlier_months(day: date, count: int) -> list[date]:
    """The first days of the last `count` months up to that of `day`, the newest first."""
    found = [month_of(day)]
    while len(found) < count:
        found.append(month_of(found[-1] - DAY))
    return found


def month_named(text: str) -> date | None:
    """The first day of `2026-11`; None: that is no month."""
    found = _MONTH.fullmatch(text)
    return date(int(found[1]), int(found[2]), 1) if found and int(found[1]) else None


def step_of(day: date, step: str) -> date:
    """The first day of the day, week (from Monday on) or month that `day` belongs to."""
    if step == "month":
        return month_of(day)
    return day - timedelta(days=day.weekday()) if step == "week" else day


def steps_between(begin: date, end: date, step: str) -> list[date]:
    """The first days of all steps that have a day in [begin, end), in their order."""
    found: list[date] = []
    for day in days(begin, end):
        first = step_of(day, step)
        if not found or found[-1] != first:
            found.append(first)
    return found


def days(begin: date, end: date) -> Iterator[date]:
    """Every day of [begin, end)."""
    for number in range((end - begin).days):
        yield begin + number * DAY
