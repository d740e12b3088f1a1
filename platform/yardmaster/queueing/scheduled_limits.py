"""Which limits of a quota are in force at a time, where some are changed from one time to another. Pure.

The rule: while several changes name the same limit, the one that was made last counts. Outside of them the usual limit
counts. A limit stops nothing that runs. Not here: what limits mean (`ledger`), applying a change
(`apps.administration`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

Limits = Mapping[str, float | int | None]
"""By name: `cpu` in cores, `memory` in bytes, `gpus`, `amd.com/gpu` and others in pieces. None: no limit."""


@dataclass(frozen=True)
class Scheduled:
    """Limits that hold from `starts` until just before `ends`. `made`: the order in which changes were made."""

    made: int
    limits: Limits
    starts: datetime
    ends: datetime

    def holds_at(self, now: datetime) -> bool:
        return self.starts <= now < self.ends


@dataclass(frozen=True)
class Step:
    """A limit from one time on. `since` None: from now on."""

    limit: float | int | None
    since: datetime | None


def overlaid(scheduled: Iterable[Scheduled], now: datetime) -> dict[str, float | int | None]:
    """The limits that scheduled changes set at this time."""
    found: dict[str, float | int | None] = {}
    for one in sorted(scheduled, key=lambda one: one.made):
        if one.holds_at(now):
            found |= one.limits
    return found


def in_force(usual: Limits, scheduled: Iterable[Scheduled], now: datetime) -> dict[str, float | int | None]:
    """Every limit as it is at this time."""
    return {**usual, **overlaid(scheduled, now)}


def outlook(usual: Limits, scheduled: Sequence[Scheduled], now: datetime) -> dict[str, list[Step]]:
    """Of each limit that changes after now: what it is now, and each later value with the time from which it holds."""
    times = sorted({at for one in scheduled for at in (one.starts, one.ends) if at > now})
    names = sorted({name for one in scheduled if one.ends > now for name in one.limits})
    found: dict[str, list[Step]] = {}
    states = [(None, in_force(usual, scheduled, now)), *((at, in_force(usual, scheduled, at)) for at in times)]
    for name in names:
        steps: list[Step] = []
        for since, limits in states:
            limit = limits.get(name)
            if not steps or steps[-1].limit != limit:
                steps.append(Step(limit, since))
        if len(steps) > 1:
            found[name] = steps
    return found
