"""What is reserved on an engine, as the core knows it. One statement; a second one where something is.

Not here: what it keeps from whom (`yardmaster.queueing.windows`), changing it (`apps.administration.reservations`).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime

from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Coalesce
from django.utils import timezone

from apps.jobs.models import AdvanceReservation, Job
from apps.namespaces.models import Namespace, ShareNode
from yardmaster.lifecycle.plan import Timing
from yardmaster.queueing.needs import needs_or_none
from yardmaster.queueing.resources import to_units
from yardmaster.queueing.shares import DEEPEST
from yardmaster.queueing.windows import Booked, Window

_COLUMNS = ("namespace_id", "group_id", "amounts", "begins_at", "ends_at", "namespace__slug", "group__name")
Above = Mapping[uuid.UUID, tuple[uuid.UUID, ...]]


def windows_on(engine: str, now: datetime) -> list[Window]:
    """Those that are not over, the first begun first."""
    rows = AdvanceReservation.objects.filter(engine=engine, ends_at__gt=now).order_by("begins_at", "pk")
    return [
        Window(namespace_id or group_id, to_units(amounts), begins, ends, slug or f"the group {group}")
        for namespace_id, group_id, amounts, begins, ends, slug, group in rows.values_list(*_COLUMNS)
    ]


def booked_on(
    engine: str, holders: Iterable[uuid.UUID], now: datetime | None = None, above: Above | None = None
) -> Booked | None:
    """With when these jobs, which hold something there, end at the latest. None: nothing is reserved. `above`: the
    groups above each namespace."""
    now = now or timezone.now()
    windows = windows_on(engine, now)
    if not windows:
        return None
    timing = settings.YARDMASTER_TIMING
    ends = _ends(holders, now, timing)
    return Booked(now, tuple(windows), ends, timing.start_timeout, timing.kill_margin, above or {})


def reserved_for(namespace: Namespace) -> list[AdvanceReservation]:
    """What is reserved for a namespace and for the groups above it, on every engine, the next first: for its members.
    Two statements."""
    nodes = {node.pk: node for node in ShareNode.objects.only("pk", "parent_id", "namespace_id", "is_default")}
    mine = next((node for node in nodes.values() if node.namespace_id == namespace.pk), None)
    usual = next((node for node in nodes.values() if node.is_default), None)
    groups: list[uuid.UUID] = []
    at = usual if mine is None else nodes.get(mine.parent_id) if mine.parent_id else None
    while at is not None and len(groups) < DEEPEST:
        groups.append(at.pk)
        at = nodes.get(at.parent_id) if at.parent_id else None
    whose = Q(namespace=namespace) | Q(group__in=groups)
    rows = AdvanceReservation.objects.filter(whose, ends_at__gt=timezone.now()).select_related("namespace", "group")
    return list(rows.order_by("begins_at", "pk"))


def _ends(holders: Iterable[uuid.UUID], now: datetime, timing: Timing) -> dict[uuid.UUID, datetime]:
    """When each of these jobs has ended at the latest. A job that runs on past its end is not among them: when it ends
    is not known. Of one whose tasks were asked to stop, the time that they have for that counts and no limit."""
    found = {}
    jobs = Job.objects.filter(pk__in=list(holders))
    asked_at = Coalesce("stop_sent_at", "released_at")
    for job_id, stored, started, admitted, asked in jobs.values_list(
        "pk", "needs", "started_at", "admitted_at", asked_at
    ):
        known = needs_or_none(stored)
        ends = None if known is None else known.ends_by(started, admitted, asked, timing.start_timeout)
        if ends is not None:
            found[job_id] = ends + timing.kill_margin
    return {job_id: at for job_id, at in found.items() if at > now}
