"""What people may hold of devices, and what they hold: for each namespace in which they may launch. Only reads.

A quota is one for all engines together, and so is what is in use here.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from apps.accounts.models import User
from apps.jobs.models import Reservation
from apps.namespaces.models import Membership, Namespace, Role, limits_of

MOST = 20
"""Namespaces of each device."""
_LOOKED_AT = 100
"""Namespaces of a member, the newest: as many as are offered elsewhere."""


@dataclass(frozen=True)
class DeviceQuota:
    """Of one device in one namespace: pieces. `hard` None: unlimited."""

    namespace_id: uuid.UUID
    namespace: str
    """Its slug."""
    hard: int | None
    used: int


def device_quotas(user: User, names: Collection[str]) -> dict[str, list[DeviceQuota]]:
    """By the devices' names, the namespaces that hold the most first, `MOST` of each. An administrator may launch in
    every namespace: of those that are not their own, the ones that hold some are listed. Three queries at most."""
    if not names:
        return {}
    mine = Membership.objects.filter(user=user).exclude(role=Role.VIEWER).order_by("-namespace_id")
    usable = set(mine.values_list("namespace_id", flat=True)[:_LOOKED_AT])
    held = _held(names, None if user.is_staff else usable)
    shown = usable.union(*(dict(counts.most_common(MOST)) for counts in held.values()))
    namespaces = list(Namespace.objects.filter(pk__in=shown).select_related("quota"))
    may_begin = {one.pk for one in namespaces if one.pk in usable and one.closed_at is None}
    return {name: _of_device(name, namespaces, may_begin, held[name]) for name in names}


def _held(names: Collection[str], within: Collection[uuid.UUID] | None) -> dict[str, Counter[uuid.UUID]]:
    """How many of each device admitted jobs hold, by namespace."""
    rows = Reservation.objects.filter(released_at__isnull=True, extended__has_any_keys=list(names))
    rows = rows if within is None else rows.filter(namespace_id__in=within)
    found: dict[str, Counter[uuid.UUID]] = {name: Counter() for name in names}
    for namespace_id, extended in rows.values_list("namespace_id", "extended"):
        for name in found.keys() & extended:
            found[name][namespace_id] += extended[name]
    return found


def _of_device(
    name: str, namespaces: Collection[Namespace], may_begin: Collection[uuid.UUID], used: Mapping[uuid.UUID, int]
) -> list[DeviceQuota]:
    """Those in which jobs may begin, and any other that holds some: it is closed, or seen by an administrator."""
    found = [
        DeviceQuota(one.pk, one.slug, _limit(one, name), used.get(one.pk, 0))
        for one in namespaces
        if one.pk in may_begin or used.get(one.pk)
    ]
    return sorted(found, key=lambda one: (-one.used, one.namespace))[:MOST]


def _limit(namespace: Namespace, name: str) -> int | None:
    quota = getattr(namespace, "quota", None)
    limit = None if quota is None else limits_of(quota).limits([name]).get(name)
    return None if limit is None else int(limit)
