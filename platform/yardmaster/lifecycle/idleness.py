"""When a service that is not used is stopped, or one that runs for too long. Pure: (what is known, now) in, what to do
out.

A service that waits, starts or loads is not idle. The time without use counts from when it first answered, or from its
last use or extension. One that runs and does not answer for hours never will: it is stopped, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from yardmaster.lifecycle.phases import Phase, Wanted

LONGEST_WARNING = timedelta(minutes=2)
WARNING_OF_AGE = timedelta(hours=1)
"""Longer, since no extension helps against it."""
LONGEST_LOADING = timedelta(hours=2)
"""How long a service may run without an answer, beside its limit."""


class Idle(StrEnum):
    """What is to be done about a service."""

    LEAVE = "leave"
    WARN = "warn"
    """It stops soon: its page says so."""
    STOP = "stop"


@dataclass(frozen=True)
class Use:
    """How a service runs and when it was used."""

    phase: Phase
    wanted: Wanted
    running_since: datetime | None
    answers_since: datetime | None
    """None: it loads its model, or was lost."""
    last_used: datetime | None
    limit: timedelta
    longest: timedelta | None = None
    """It is stopped after so long, however much it is used. None: never for that."""


def stops_at(use: Use) -> datetime | None:
    """When it is stopped unless it is used before, and at the end of its longest life; None where it does not run."""
    idle, old = _idle_end(use), _longest_end(use)
    return old if idle is not None and old is not None and old <= idle else idle


def stops_by_age(use: Use) -> bool:
    """Whether it is stopped then also if it is used."""
    return (end := stops_at(use)) is not None and end == _longest_end(use)


def _longest_end(use: Use) -> datetime | None:
    return None if use.longest is None or use.running_since is None else use.running_since + use.longest


def _idle_end(use: Use) -> datetime | None:
    if use.phase is not Phase.RUNNING or use.wanted is not Wanted.RUN or use.running_since is None:
        return None
    since = use.running_since + LONGEST_LOADING if use.answers_since is None else use.answers_since
    return max(use.running_since, since, use.last_used or since) + use.limit


def idle_step(use: Use, now: datetime) -> Idle:
    """What to do now. The warning comes in the last fifth of the limit, two minutes before at most; an hour at most
    where it is too old."""
    end = stops_at(use)
    if end is None or now < end - _warning(use):
        return Idle.LEAVE
    return Idle.STOP if now >= end else Idle.WARN


def _warning(use: Use) -> timedelta:
    if use.longest is not None and stops_by_age(use):
        return min(WARNING_OF_AGE, use.longest / 5)
    return min(LONGEST_WARNING, use.limit / 5)
