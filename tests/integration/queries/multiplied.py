"""More of everything: each row of a populated team is copied with all that hangs on it, and beside itself.

A page that asks the database once for each row that it shows costs no more than it may with one row of each; with
many, it does. A new table is copied as the others are.

Not here: rows at the size of a large portal (`tests/bench/full_rows.py`).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.apps import apps
from django.db import IntegrityError, models, transaction

from yardmaster.ids import new_id

PEOPLE = {"accounts.User", "namespaces.Namespace", "namespaces.Quota", "uploads.StorageAccount"}
"""Copied only where whole teams are."""
_ONE = {
    "jobs.AdmissionLock",
    "dispatch.OutboxEvent",
    "dispatch.Leadership",
    "audit.AuditRetention",
    "accounting.UsageState",
    "accounting.IdleCounted",
}
_FAR = 100_000
"""Between the number of a row and that of its copy."""


def multiplied(times: int) -> dict[str, int]:
    """Copy what there is this many times: each row with what hangs on it, each row beside itself, and whole teams with
    their people. What a constraint forbids is left out. Returns how many rows each table has then."""
    firsts = [row for kind in _kinds() for row in kind._default_manager.order_by("pk")]
    inside = [row for row in firsts if row._meta.label not in PEOPLE]
    generations = iter(range(1, 3 * times + 1))
    for _, generation in zip(range(times), generations, strict=False):
        _copies(inside, generation, _swaps(inside))
    for _, generation in zip(range(times), generations, strict=False):
        _copies(inside, generation, {})
    for generation in generations:
        _copies(firsts, generation, _swaps(firsts))
    return {kind._meta.label: kind._default_manager.count() for kind in _kinds()}


def _kinds() -> Iterator[type[models.Model]]:
    for kind in apps.get_models():
        if kind.__module__.startswith("apps.") and kind._meta.label not in _ONE:
            yield kind


def _swaps(firsts: list[models.Model]) -> dict[uuid.UUID, uuid.UUID]:
    """A new id for each. The target of an upload is the version that it became."""
    targets = (row.target_id for row in firsts if row._meta.label == "uploads.Upload")  # type: ignore[attr-defined]
    keys = [row.pk for row in firsts if isinstance(row.pk, uuid.UUID) and not _is_relation(row._meta.pk)]
    return {old: new_id() for old in [*keys, *targets]}


def _copies(firsts: list[models.Model], generation: int, swaps: dict[uuid.UUID, uuid.UUID]) -> None:
    """One more of each. What refers to a row in `swaps` refers to its copy."""
    waiting = [_copy(row, generation, swaps) for row in firsts]
    saved: set[tuple[str, Any]] = set()
    is_new = set(swaps.values())
    while ready := [row for row in waiting if _targets(row, is_new) <= saved]:
        waiting = [row for row in waiting if row not in ready]
        saved |= {(row._meta.label, row.pk) for row in ready if _is_saved(row)}


def _targets(row: models.Model, is_new: set[uuid.UUID]) -> set[tuple[str, Any]]:
    """The copies that must be there before this one."""
    found = ((field, getattr(row, field.attname)) for field in row._meta.concrete_fields if _is_relation(field))
    return {(field.related_model._meta.label, value) for field, value in found if value in is_new}


def _is_saved(row: models.Model) -> bool:
    try:
        with transaction.atomic():
            type(row)._default_manager.bulk_create([row])  # without the signals of a save
    except IntegrityError:
        return False
    return True


def _copy(row: models.Model, generation: int, swaps: dict[uuid.UUID, uuid.UUID]) -> models.Model:
    alone = _alone(type(row))
    values = {
        field.attname: _value(field, getattr(row, field.attname), generation, swaps, alone)
        for field in row._meta.concrete_fields
        if not isinstance(field, models.GeneratedField)
    }
    return type(row)(**values)


def _alone(kind: type[models.Model]) -> set[str]:
    """The columns of which no two rows may have the same, alone or together."""
    together = [
        name for one in kind._meta.constraints if isinstance(one, models.UniqueConstraint) for name in one.fields
    ]
    return {field.name for field in kind._meta.concrete_fields if field.unique} | set(together)


def _value(field: Any, value: Any, generation: int, swaps: dict[uuid.UUID, uuid.UUID], alone: set[str]) -> Any:
    if isinstance(value, uuid.UUID) and value in swaps:
        return swaps[value]
    if value is None or field.name not in alone or _is_relation(field) or field.choices:
        return value
    if isinstance(value, uuid.UUID):
        return new_id()
    if isinstance(value, str):
        return f"{value[: (field.max_length or 100) - 4]}-{generation}"
    if isinstance(value, bytes | memoryview):
        return bytes(value) + bytes([generation])
    if isinstance(value, datetime):
        return value + timedelta(seconds=generation)
    if isinstance(value, int) and not isinstance(value, bool):
        return value + (_FAR if field.primary_key else 1) * generation
    return value


def _is_relation(field: Any) -> bool:
    return bool(field.is_relation)
