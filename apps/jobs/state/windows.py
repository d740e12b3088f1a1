"""What is reserved on an engine, as the core knows it. One statement; a second one where something is.

Not here: what it keeps from whom (`yardmaster.queueing.windows`), changing it (`apps.administration.reservations`).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from apps.jobs.models import AdvanceReservation, Job
from yardmaster.queueing.needs import needs_or_none
from yardmaster.queueing.resources import to_units
from yardmaster.queueing.windows import Booked, Window

_COLUMNS = ("namespace_id", "amounts", "begins_at", "ends_at", "namespace__slug")


def windows_on(engine: str, now: datetime) -> list[Window]:
    """Those that are not over, the first begun first."""
    rows = AdvanceReservation.objects.filter(engine=engine, ends_at__gt=now).order_by("begins_at", "pk")
    return [
        Window(namespace_id, to_units(amounts), begins, ends, slug)
        for namespace_id, amounts, begins, ends, slug in rows.values_list(*_COLUMNS)
    ]


def booked_on(engine: str, holders: Iterable[uuid.UUID], now: datetime | None = None) -> Booked | None:
    """With when these jobs, which hold something there, end at the latest. None: nothing is reserved."""
    now = now or timezone.now()
    windows = windows_on(engine, now)
    if not windows:
        return None
    start_timeout = settings.YARDMASTER_TIMING.start_timeout
    return Booked(now, tuple(windows), _ends(holders, now, start_timeout), start_timeout)


def reserved_for(namespace_id: uuid.UUID) -> list[AdvanceReservation]:
    """What is reserved for a namespace, on every engine, the next first: for its members."""
    rows = AdvanceReservation.objects.filter(namespace_id=namespace_id, ends_at__gt=timezone.now())
    return list(rows.order_by("begins_at", "pk"))


def _ends(holders: Iterable[uuid.UUID], now: datetime, start_timeout: timedelta) -> dict[uuid.UUID, datetime]:
    """A job that runs on past its end is not among them: when it ends is not known."""
    found = {}
    jobs = Job.objects.filter(pk__in=list(holders))
    for job_id, needs, started_at, admitted_at in jobs.values_list("pk", "needs", "started_at", "admitted_at"):
        known = needs_or_none(needs)
        begun = started_at or (admitted_at and admitted_at + start_timeout)
        if known is not None and known.longest is not None and begun is not None:
            found[job_id] = begun + known.longest
    return {job_id: at for job_id, at in found.items() if at > now}
