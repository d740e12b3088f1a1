"""The tree of shares as the core knows it, read with the ledger. One statement.

Not here: what follows from it (`yardmaster.queueing.order`), changing it (`apps.administration.shares`).
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable
from typing import Any

from apps.namespaces.models import ShareNode
from yardmaster.queueing.ledger import Holder
from yardmaster.queueing.resources import to_units, units_of
from yardmaster.queueing.shares import Member, Shares, Standing

_COLUMNS = ("pk", "parent_id", "namespace_id", "name", "weight", "guaranteed", "is_default")


def shares_on(holders: Iterable[Holder], waiting: Collection[uuid.UUID]) -> Shares | None:
    """The tree, with what these holders hold on the engine; None where there is no group. `waiting`: the namespaces of
    the jobs that wait."""
    rows = list(ShareNode.objects.values_list(*_COLUMNS))
    if not rows:
        return None
    held = _held(holders)
    return Shares(_members(rows, {*waiting, *held}), held)


def groups_above(shares: Shares | None, namespaces: Iterable[uuid.UUID]) -> dict[uuid.UUID, tuple[uuid.UUID, ...]]:
    """The groups above each of these namespaces, the nearest first. One that is in none is left out."""
    if shares is None:
        return {}
    standing = Standing(Shares(shares.members), {})
    paths = {one: standing.path(one) for one in namespaces if one in shares.members}
    return {one: path[1:] for one, path in paths.items() if len(path) > 1}


def _members(rows: Iterable[tuple[Any, ...]], concerned: Iterable[uuid.UUID]) -> dict[uuid.UUID, Member]:
    """Groups by their own id, namespaces by theirs."""
    found: dict[uuid.UUID, Member] = {}
    usual: uuid.UUID | None = None
    for key, parent, namespace_id, name, weight, guaranteed, is_default in rows:
        found[namespace_id or key] = Member(parent, weight, to_units(guaranteed), name)
        usual = key if is_default else usual
    if usual is not None:
        for one in concerned:
            found.setdefault(one, Member(usual))
    return found


def _held(holders: Iterable[Holder]) -> dict[uuid.UUID, dict[str, int]]:
    found: dict[uuid.UUID, dict[str, int]] = {}
    for one in holders:
        if one.on_engine:
            mine = found.setdefault(one.namespace_id, {})
            for name, units in units_of(one.resources).items():
                mine[name] = mine.get(name, 0) + units
    return found
