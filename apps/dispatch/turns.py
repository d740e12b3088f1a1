"""Work of many namespaces in an order in which none of them makes the others wait. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from uuid import UUID


def in_turn(rows: Iterable[tuple[UUID, UUID]]) -> list[UUID]:
    """The first of each namespace, then the second of each, and so on. `rows`: each with its namespace."""
    seen: Counter[UUID] = Counter()
    turns = []
    for row_id, namespace_id in rows:
        turns.append((seen[namespace_id], row_id))
        seen[namespace_id] += 1
    return [row_id for _, row_id in sorted(turns, key=lambda one: one[0])]
