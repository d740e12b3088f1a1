"""The managers of a namespace are told when it has used 80 % of a quota, and when it has used it up.

Each is told once as it is passed; the level that was told is kept for each namespace and resource. May be repeated, by
several workers at once. Not here: which level a use stands for (`yardmaster.queueing.quota_levels`), and by which way
each manager is told (`apps.notifications.telling`).
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.urls import reverse

from apps.accounts.models import User
from apps.administration.quota_table import Cell, Row, Wanted, quota_table
from apps.api.display import amount
from apps.audit.services import record
from apps.namespaces.models import QUANTITY_NAMES, Membership, Namespace, Role
from apps.notifications.models import QuotaLevel
from apps.notifications.telling import announce
from yardmaster.ids import new_id
from yardmaster.queueing.quota_levels import FULL, NEARLY, STORED, level_of

MOST_MANAGERS = 50
_NONE = QuotaLevel(level=0)
KINDS = {NEARLY: "quota.warned", FULL: "quota.full"}


def quota_warnings_sweep(now: datetime) -> int:
    """Tell of every level that was passed since the last call. Returns how many. Six statements where nothing has
    changed."""
    before: dict[UUID, dict[str, QuotaLevel]] = defaultdict(dict)
    for one in QuotaLevel.objects.all():
        before[one.namespace_id][one.resource] = one
    notified = 0
    for row in quota_table(Wanted()).rows:
        for resource in sorted({*row.cells, *before[row.pk]}):
            cell, known = row.cells.get(resource, Cell(0, 0, None)), before[row.pk].get(resource, _NONE)
            level = level_of(resource, _share(resource, cell), 0 if _is_raised(known, cell) else known.level)
            if level != known.level or (level and cell.hard != known.limit):
                notified += _move(row, resource, cell, known.level, level, now)
    return notified


def _is_raised(known: QuotaLevel, cell: Cell) -> bool:
    """What is used of a higher limit counts again: as it fills up, a warning is sent once more."""
    return known.limit is not None and cell.hard is not None and cell.hard > known.limit


def _share(resource: str, cell: Cell) -> float:
    """A limit of none at all is no level that one passes."""
    return _counted(resource, cell) / cell.hard if cell.hard else 0.0


def _counted(resource: str, cell: Cell) -> float:
    """What is warned of: all that jobs hold; of storage what is stored, since an upload may be given up."""
    return cell.used if resource in STORED else cell.held


def _move(row: Row, resource: str, cell: Cell, was: int, level: int, now: datetime) -> bool:
    """Keep the new level, and tell of it if it is higher, unless another worker has done so."""
    with transaction.atomic():
        namespace = Namespace.objects.select_for_update(no_key=True).filter(pk=row.pk).first()
        if namespace is None:
            return False
        mine = QuotaLevel.objects.filter(namespace=namespace, resource=resource)
        kept = mine.values_list("level", flat=True).first() or 0
        if kept != was:
            return False
        mine.delete()
        if level:
            QuotaLevel.objects.create(namespace=namespace, resource=resource, level=level, limit=cell.hard, at=now)
        if level > was:
            _tell(namespace, resource, cell, level, now)
        return level > was


def _tell(namespace: Namespace, resource: str, cell: Cell, level: int, now: datetime) -> None:
    name, unit = QUANTITY_NAMES.get(resource, (resource, ""))
    counted = _counted(resource, cell)
    used, hard = amount(counted, unit), amount(cell.hard, unit)
    state = "is used up" if level == FULL else f"has reached {level} %"
    record(None, "quota.warn", f"namespace:{namespace.pk}", namespace=namespace, resource=resource, level=level,
           used=counted, limit=cell.hard)  # fmt: skip
    url = f"{settings.PUBLIC_URL}{reverse('namespace_page', args=[namespace.pk])}"
    lines = [f"{name} of {namespace.slug} {state}: {used} of {hard}.", *_then(resource, level), url]
    text = "\n".join(lines) + f"\n\n-- \nYou get this e-mail as a manager of {namespace.slug}.\n"
    key = f"{KINDS[level]} {new_id()}"
    managers = Membership.objects.filter(namespace=namespace, role=Role.MANAGER).values("user_id")
    for user in User.objects.filter(pk__in=managers, is_active=True, is_service=False).order_by("pk")[:MOST_MANAGERS]:
        announce(
            user, KINDS[level], namespace, key=key, subject=f"{name} of {namespace.slug} {state}", text=text, url=url,
            now=now,
        )  # fmt: skip


def _then(resource: str, level: int) -> list[str]:
    if level != FULL:
        return []
    if resource == "logs":
        return ["Further output of its tasks is not kept until logs are deleted or the quota is raised."]
    if resource in STORED:
        return ["Uploads are refused until something is deleted or the quota is raised."]
    if resource == "sessions":
        return ["Further sessions are refused until one ends or the quota is raised."]
    if resource == "queued_jobs":
        return ["Further jobs are refused until a queued one has started or the quota is raised."]
    return ["Further jobs wait until others end or the quota is raised."]
