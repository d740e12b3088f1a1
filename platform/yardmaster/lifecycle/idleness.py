"""When a service that is not used is stopped. Pure: (what is known, now) in, what to do out.

A service that waits, starts or loads is not idle, however long that takes. The time without requests counts from when
its task began to run, or from its last request or extension.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from yardmaster.lifecycle.phases import Phase, Wanted

LONGEST_WARNING = timedelta(minutes=2)


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
    last_used: datetime | None
    limit: timedelta


def stops_at(use: Use) -> datetime | None:
    """When it is stopped unless it is used before; None where it does not run."""
    if use.phase is not Phase.RUNNING or use.wanted is not Wanted.RUN or use.running_since is None:
        return None
    return max(use.running_since, use.last_used or use.running_since) + use.limit


def idle_step(use: Use, now: datetime) -> Idle:
    """What to do now. The warning comes in the last fifth of the limit, two minutes before at most."""
    end = stops_at(use)
    if end is None or now < end - min(LONGEST_WARNING, use.limit / 5):
        return Idle.LEAVE
    return Idle.STOP if now >= end else Idle.WARN
