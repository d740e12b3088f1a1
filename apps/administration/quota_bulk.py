"""Changing the quotas of many namespaces at once: what would change, and the change itself, all or nothing.

Only what is named changes. A limit below what is held now stops nothing: it only admits nothing new. Not here: which
namespaces there are (`quota_table`), and who may do this (the views).
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.utils import timezone
from simple_history.utils import bulk_update_with_history

from apps.accounts.models import User
from apps.administration.quota_names import offered
from apps.administration.quota_table import Row, rows_of
from apps.administration.services import quota_facts
from apps.administration.usage import NAMES_OF_CHANGES
from apps.audit.services import record
from apps.errors import Conflict, Invalid
from apps.jobs.services import quotas_changed
from apps.namespaces.models import LIMIT_NAMES, Quota, default_limits, default_quotas_create, kind_of
from apps.namespaces.quota_limits import COLUMNS, Flat, flat, open_schedules, usual_limits, usual_put
from apps.namespaces.quota_models import LONGEST_REASON, Kind
from apps.namespaces.services import engine_namespaces_changed
from yardmaster.errors import Problem

MOST = 2_000
"""Namespaces in one change: all of it is one transaction."""
Changes = Mapping[str, Any]
"""Limits by the fields of a quota; None: unlimited. `extended`: by name, only those that change, None: no limit."""


@dataclass(frozen=True)
class Defaults:
    """Instead of changes: every limit becomes what a new namespace of the kind gets, as it was a moment ago."""

    limits: Mapping[Kind, Mapping[str, Any]] = field(default_factory=default_limits)


@dataclass(frozen=True)
class Moved:
    """One limit, before and after; None: unlimited. `is_below`: the new one is below what is held now."""

    name: str
    unit: str
    before: float | None
    after: float | None
    held: float
    is_below: bool


@dataclass(frozen=True)
class Planned:
    """What would become of one namespace."""

    row: Row
    moved: Sequence[Moved]

    @property
    def is_below(self) -> bool:
        return any(one.is_below for one in self.moved)


@dataclass(frozen=True)
class Plan:
    """`seen`: stands for the limits that it was made from; given back with the change, it detects edits by others.
    `unknown`: resources that are to be limited, and that no engine has."""

    planned: Sequence[Planned]
    unchanged: int
    seen: str
    unknown: Sequence[str] = ()

    @property
    def below(self) -> int:
        """In how many namespaces a limit would be below what is held."""
        return sum(one.is_below for one in self.planned)


def quotas_plan(namespace_ids: Sequence[uuid.UUID], changes: Changes | Defaults) -> Plan:
    """What `quotas_change` would do now. Changes nothing. Raises `Invalid` where nothing is selected or named."""
    check_selected(namespace_ids, changes)
    rows = rows_of(list(namespace_ids))
    found = [Planned(row, _moved(row, changes_of(row.quota, changes))) for row in rows]
    changed = [one for one in found if one.moved]
    named = changes.get("extended") if isinstance(changes, Mapping) else None
    unknown = offered().unknown_of(named) if named else ()
    return Plan(changed, len(found) - len(changed), _seen(one.quota for one in rows), unknown)


def quotas_change(
    *, namespace_ids: Sequence[uuid.UUID], changes: Changes | Defaults, reason: str, actor: User, seen: str = ""
) -> int:
    """Change what is named in all of these namespaces, or in none. Returns in how many something changed. What a
    scheduled change has in force stays so until its end.

    `seen`, of a plan: where any of their limits, or which namespaces they are, was changed since, 409. Everything that
    waits is decided again at once. Raises `Invalid` without a reason.
    """
    check_selected(namespace_ids, changes)
    reason, now = checked_reason(reason), timezone.now()
    with transaction.atomic():
        quotas = locked_quotas(namespace_ids, seen)
        scheduled = open_schedules(namespace_ids)
        before = {one.pk: quota_facts(one) for one in quotas}
        for one in quotas:
            usual = usual_limits(one) | changes_of(one, changes)
            usual_put(one, usual, scheduled.get(one.pk, []), now)
        changed = [one for one in quotas if quota_facts(one) != before[one.pk]]
        write_quotas(changed, reason, actor)
        for one in changed:
            facts = {"reason": reason, "before": before[one.pk], "after": quota_facts(one)}
            record(actor, "quota.set", f"namespace:{one.pk}", namespace=one.namespace, **facts)
            engine_namespaces_changed(one.pk, now)
        if changed:
            quotas_changed()
    return len(changed)


def locked_quotas(namespace_ids: Sequence[uuid.UUID], seen: str = "") -> list[Quota]:
    """The quotas of these namespaces, of those that are open, locked in one order. 409 where `seen` is of others."""
    default_quotas_create(namespace_ids)
    locked = Quota.objects.select_for_update(of=("self",)).select_related("namespace")
    quotas = list(locked.filter(namespace_id__in=namespace_ids, namespace__closed_at=None).order_by("pk"))
    if seen and seen != _seen(quotas):
        raise Conflict(
            "The limits were changed by another user since the preview. Nothing was saved.",
            "quotas_changed",
            remedy="Review the new preview, then apply it.",
        )
    return quotas


def write_quotas(quotas: list[Quota], reason: str, actor: User | None) -> None:
    """Save them, each with a row of its history."""
    if quotas:
        bulk_update_with_history(
            quotas, Quota, COLUMNS, batch_size=200, default_user=actor, default_change_reason=reason[:LONGEST_REASON]
        )


def changes_of(quota: Quota, changes: Changes | Defaults) -> Flat:
    """What changes of this quota, flat. The defaults say every limit, also of other resources."""
    if isinstance(changes, Defaults):
        named = dict.fromkeys(name for name in usual_limits(quota) if name not in LIMIT_NAMES)
        return {**named, **flat(changes.limits[kind_of(quota.namespace)])}
    return flat(changes)


def _moved(row: Row, changes: Flat) -> list[Moved]:
    usual = usual_limits(row.quota)
    found = [_one(row, name, *NAMES_OF_CHANGES.get(name, (name, "")), usual.get(name), new)
             for name, new in changes.items()]  # fmt: skip
    return [one for one in found if one.before != one.after]


def _one(row: Row, key: str, label: str, unit: str, before: float | None, after: float | None) -> Moved:
    cell = row.cells.get(key)
    held = cell.held if cell else 0
    return Moved(label, unit, before, after, held, after is not None and after < held)


def _seen(quotas: Any) -> str:
    """Which namespaces, and every limit of theirs, in a few letters."""
    facts = sorted((str(one.namespace_id), quota_facts(one)) for one in quotas)
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]


def check_selected(namespace_ids: Sequence[uuid.UUID], changes: Changes | Defaults) -> None:
    """Raises `Invalid` where no namespace is selected, too many are, or nothing is to change."""
    if not namespace_ids:
        raise Invalid([Problem("namespaces", "required", "No namespace is selected.", "Select at least one.")])
    if len(namespace_ids) > MOST:
        message = f"{len(namespace_ids):,} namespaces are selected; {MOST:,} can be changed at once."
        raise Invalid([Problem("namespaces", "too_many", message, "Narrow the search.", str(len(namespace_ids)))])
    if not changes:
        message = "No limit is filled in."
        raise Invalid([Problem("changes", "required", message, "Fill in at least one limit.")])


def checked_reason(
    text: str, remedy: str = "Write why the limits change. The members of the namespaces see it."
) -> str:
    """The reason without the space around it. Raises `Invalid` without one, or with too long a one."""
    reason = text.strip()
    if not reason or len(reason) > LONGEST_REASON:
        message = f"A reason of at most {LONGEST_REASON} characters is required."
        raise Invalid([Problem("reason", "required", message, remedy, reason[:100])])
    return reason
