"""What a schedule does now: which of its times it runs, which it has missed, and what comes next. Pure.

After a downtime at most one run is made up for, the latest, and only within the grace. Not here: times (`cron`), and
launching.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from yardmaster.schedules.cron import times

PROMPT = timedelta(minutes=5)
"""A time so long ago is not missed, whatever the grace: a sweep comes a little late."""
MOST_COUNTED = 1_000


class Overlap(Enum):
    """What is done where the job of an earlier time has not ended."""

    SKIP = "skip"
    QUEUE = "queue"
    STOP = "stop"


class Step(Enum):
    """What is done with a time that is due."""

    LAUNCH = "launch"
    WAIT = "wait"
    SKIP = "skip"
    STOP_AND_LAUNCH = "stop_and_launch"


@dataclass(frozen=True)
class Plan:
    """A schedule, as far as its times go."""

    cron: str
    zone: str
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    grace: timedelta = timedelta(0)


@dataclass(frozen=True)
class Due:
    """`run`: the time to launch for now. `missed`: how many times are passed over (at most `MOST_COUNTED` are
    counted), of which `missed_last` is the latest. `next_at`: the next time, after now."""

    run: datetime | None
    missed: int
    missed_last: datetime | None
    next_at: datetime | None


def following(plan: Plan, after: datetime) -> Iterator[datetime]:
    """The schedule's times after this one, within its from and until."""
    if plan.starts_at is not None:
        after = max(after, plan.starts_at - timedelta(seconds=1))
    for one in times(plan.cron, plan.zone, after):
        if plan.ends_at is not None and one > plan.ends_at:
            return
        yield one


def due(plan: Plan, first: datetime, now: datetime) -> Due:
    """What to do at `now`, where `first` is the earliest time that was not decided yet."""
    if first > now:
        return Due(None, 0, None, first)
    allowed = max(plan.grace, PROMPT)
    passed = [first]
    for one in following(plan, first):
        if one > now:
            break
        passed.append(one)
        if len(passed) > MOST_COUNTED:
            passed = [*passed[:-1], *_latest(plan, now)]
            break
    next_at = next(following(plan, now), None)
    if now - passed[-1] <= allowed:
        missed = passed[:-1]
        return Due(passed[-1], len(missed), missed[-1] if missed else None, next_at)
    return Due(None, len(passed), passed[-1], next_at)


def _latest(plan: Plan, now: datetime) -> list[datetime]:
    """The last time before now, of very many: those of the last days are enough to find it."""
    for back in (timedelta(days=2), timedelta(days=40), timedelta(days=800)):
        found = None
        for one in following(plan, now - back):
            if one > now:
                break
            found = one
        if found is not None:
            return [found]
    return []


def step(overlap: Overlap, *, has_running: bool, has_waiting: bool) -> Step:
    """What is done with a time that is due. `has_running`: the job of an earlier time has not ended. `has_waiting`:
    an earlier time has not been launched yet."""
    if overlap is Overlap.STOP:
        return Step.STOP_AND_LAUNCH if has_running else Step.LAUNCH
    if overlap is Overlap.QUEUE:
        return Step.SKIP if has_waiting else Step.WAIT if has_running else Step.LAUNCH
    return Step.SKIP if has_running or has_waiting else Step.LAUNCH
