"""When a service that is not used is stopped. Pure: (what is known, now) in, what to do out.

A service that waits, starts or loads is not idle. The time without requests counts from when it first answered, or
from its last request or extension. One that runs and does not answer for hours never will: it is stopped, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from yardmaster.lifecycle.phases import Phase, Wanted

LONGEST_WARNING = timedelta(minutes=2)
LONGEST_LOADING = timedelta(hours=2)
"""How long a service may run without an answer, beside its limit."""


class Idle(StrEnum):
    """What is to be done about a service."""

    LEAVE = "leave"
    WARN = "warn"
    """It stops soon: those who look at it are told."""
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


def stops_at(use: Use) -> datetime | None:
    """When it is stopped unless it is used before; None where it does not run."""
    if use.phase is not Phase.RUNNING or use.wanted is not Wanted.RUN or use.running_since is None:
        return None
    since = use.running_since + LONGEST_LOADING if use.answers_since is None else use.answers_since
    return max(use.running_since, since, use.last_used or since) + use.limit


def idle_step(use: Use, now: datetime) -> Idle:
    """What to do now. The warning comes in the last fifth of the limit, two minutes before at most."""
    end = stops_at(use)
    if end is None or now < end - min(LONGEST_WARNING, use.limit / 5):
        return Idle.LEAVE
    return Idle.STOP if now >= end else Idle.WARN
