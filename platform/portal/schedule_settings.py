"""Bounds of templates and schedules. Not here: what they bound (`apps.schedules`)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from portal import env


@dataclass(frozen=True)
class Schedules:
    """`templates` and `schedules` in a namespace; `interval` between two times of one; `refusals` in a row after
    which a schedule is paused."""

    templates: int
    schedules: int
    interval: timedelta
    refusals: int


def schedules() -> Schedules:
    return Schedules(
        templates=env.number("YARDMASTER_TEMPLATES_PER_NAMESPACE", 100),
        schedules=env.number("YARDMASTER_SCHEDULES_PER_NAMESPACE", 50),
        interval=timedelta(minutes=env.number("YARDMASTER_SCHEDULE_MINUTES", 5, least=1)),
        refusals=env.number("YARDMASTER_SCHEDULE_REFUSALS", 5, least=1),
    )
