"""The limits of a quota as one flat mapping, and what a scheduled change makes of them.

A quota's own columns are what is in force; `usual` keeps those limits that a scheduled change sets for a while, as they
are without it. So every reader of a quota reads what is in force, and a pass over the queue asks nothing more. Not
here: the rule (`yardmaster.queueing.scheduled_limits`), who may change limits, and the audit (`apps.administration`).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from apps.namespaces.models import LIMIT_NAMES, Quota
from apps.namespaces.quota_models import ScheduledQuota
from yardmaster.queueing.scheduled_limits import Scheduled, in_force, overlaid

Flat = dict[str, float | int | None]
COLUMNS = [*LIMIT_NAMES, "extended", "usual"]
"""Of a quota: what `usual_put` may change."""


def limits_in_force(quota: Quota) -> Flat:
    """What holds now, by the fields of a quota and the names of other resources; None: no limit."""
    return {name: plain_limit(getattr(quota, name)) for name in LIMIT_NAMES} | dict(quota.extended)


def usual_limits(quota: Quota) -> Flat:
    """What holds where no scheduled change does."""
    return limits_in_force(quota) | dict(quota.usual)


def usual_put(quota: Quota, usual: Mapping[str, Any], open_ones: Iterable[ScheduledQuota],
              now: datetime) -> None:  # fmt: skip
    """Set the usual limits, and with them what is in force now. Saves nothing.

    `open_ones`: the scheduled changes of this namespace that are not over.
    """
    scheduled = scheduled_of(open_ones)
    wanted = {name: plain_limit(value) for name, value in usual.items()}
    for_a_while = overlaid(scheduled, now)
    force = in_force(wanted, scheduled, now)
    for name in LIMIT_NAMES:
        value = force.get(name)
        setattr(quota, name, Decimal(str(value)) if name == "cpu" and value is not None else value)
    others = {name: limit for name, limit in sorted(force.items()) if name not in LIMIT_NAMES and limit is not None}
    quota.extended = {name: int(limit) for name, limit in others.items()}
    quota.usual = {name: wanted.get(name) for name in sorted(for_a_while)}


def open_schedules(namespace_ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, list[ScheduledQuota]]:
    """The scheduled changes of these namespaces that are to come or in force. One statement."""
    found: dict[uuid.UUID, list[ScheduledQuota]] = {}
    for one in ScheduledQuota.objects.filter(namespace_id__in=list(namespace_ids), over_at=None).order_by("pk"):
        found.setdefault(one.namespace_id, []).append(one)
    return found


def scheduled_of(rows: Iterable[ScheduledQuota]) -> list[Scheduled]:
    """Changes as the core knows them, in the order in which they were made."""
    ordered = sorted(rows, key=lambda one: (one.made_at, one.pk))
    return [Scheduled(at, one.limits, one.starts_at, one.ends_at) for at, one in enumerate(ordered)]


def plain_limit(value: Any) -> Any:
    """A number as JSON has it."""
    return float(value) if isinstance(value, Decimal) else value


def by_fields(limits: Mapping[str, float | int | None]) -> dict[str, Any]:
    """The same by the fields of a quota: other resources are one mapping of its field `extended`."""
    fields = {name: limits.get(name) for name in LIMIT_NAMES}
    others = {name: limit for name, limit in sorted(limits.items()) if name not in LIMIT_NAMES and limit is not None}
    return {**fields, "extended": others}


def flat(fields: Mapping[str, Any]) -> Flat:
    """The contrary: of a quota's fields, of which some may be left out."""
    others = fields.get("extended") or {}
    return {name: plain_limit(value) for name, value in fields.items() if name != "extended"} | dict(others)
