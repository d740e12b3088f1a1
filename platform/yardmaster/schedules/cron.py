"""The times of a cron expression of five fields in a time zone.

Daylight saving is as in Debian's cron. Where neither the minutes nor the hours begin with `*`, the job is meant to run
at certain times of the day: a time that does not exist runs at the first minute after the gap, once, and a time that
comes twice runs at the first of the two. Everything else (`*/15 * * * *`) goes by real time: what lies in a gap is left
out, and in a repeated hour it runs in both. Not here: what is done at these times (`due`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice, pairwise, takewhile
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from yardmaster.errors import Problem
from yardmaster.job.spec_limits import shorten

LONGEST = 100
_ALLOWED = re.compile(r"[0-9A-Za-z*/,#\- ]+")
_LOOKED_AT, _LOOKED_FOR = 300, timedelta(days=800)
_BROKEN = (CronSimError, AssertionError, ValueError, TypeError, OverflowError)


@lru_cache(maxsize=1)
def zones() -> tuple[str, ...]:
    """The names of all time zones, in order."""
    return tuple(sorted(name for name in available_timezones() if "/" in name or name == "UTC"))


def cron_problems(expression: str, zone: str, now: datetime, shortest: timedelta) -> list[Problem]:
    """What is wrong with them. `shortest`: what must lie between two times."""
    problems: list[Problem] = []
    if zone not in zones():
        message = "There is no such time zone."
        problems.append(Problem("time_zone", "unknown_time_zone", message, "Use a name such as Europe/Berlin or UTC.",
                                shorten(zone)))  # fmt: skip
    if not _is_readable(expression):
        message = "A cron expression has five fields: minute, hour, day of the month, month, day of the week."
        problems.append(Problem("cron", "bad_cron", message, "Write for example 30 2 * * 1-5.", shorten(expression)))
    if problems:
        return problems
    coming = times(expression, zone, now)
    first = next(coming, None)
    if first is None:
        message = "There is no such time in the next years."
        return [Problem("cron", "never", message, "Correct the day or the month.", shorten(expression))]
    near = takewhile(lambda one: one - first < _LOOKED_FOR, islice(coming, _LOOKED_AT))
    gaps = [later - earlier for earlier, later in pairwise([first, *near])]
    if gaps and min(gaps) < shortest:
        minutes = int(shortest.total_seconds() // 60)
        message = f"Two runs must be at least {minutes} minutes apart."
        found = int(min(gaps).total_seconds() // 60)
        return [Problem("cron", "too_often", message, f"The shortest gap is {found} minutes. Choose fewer times.",
                        shorten(expression))]  # fmt: skip
    return []


def times(expression: str, zone: str, after: datetime) -> Iterator[datetime]:
    """The times after this one in order, in UTC, each once. Ends where none comes in fifty years. For an expression
    that `cron_problems` has accepted."""
    last = after.astimezone(UTC)
    try:
        for one in CronSim(expression, after.astimezone(ZoneInfo(zone))):
            found = one.astimezone(UTC)
            if found > last:
                last = found
                yield found
    except _BROKEN:
        return


def _is_readable(expression: str) -> bool:
    if len(expression) > LONGEST or not _ALLOWED.fullmatch(expression) or len(expression.split()) != 5:
        return False
    try:
        CronSim(expression, datetime(2026, 1, 1, tzinfo=UTC))
    except _BROKEN:
        return False
    return True
