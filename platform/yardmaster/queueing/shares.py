"""Who has how much of an engine, against how much is theirs: a tree of groups and namespaces with weights.

The share of a node is what it holds of the resource of which it holds the largest part of the engine (its dominant
resource), divided by its weight. At each level the node with the least share is next. A node of weight 0 comes after
all others: it gets what they leave idle. Namespaces that are in no group count as one node of weight 1, in which the
jobs are served as they came: so is everything where no group is set up.

Pure values and sums. Not here: the order that follows from it (`order`), and what a guarantee changes (`borrowing`).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from yardmaster.queueing.resources import Units

REST = uuid.UUID(int=0)
"""The node of all namespaces that are in no group."""
DEEPEST = 8
"""So many nodes are above each other at most: a longer chain, such as a circle, is cut there."""


@dataclass(frozen=True)
class Member:
    """A group, or a namespace, in the tree. `parent` None: at the top."""

    parent: uuid.UUID | None = None
    weight: int = 1
    guaranteed: Units = field(default_factory=dict)
    """What it gets first, in whole units by resource; nothing: no guarantee."""
    name: str = ""
    """Of a group, for those who wait; empty of a namespace."""


@dataclass(frozen=True)
class Shares:
    """The tree, and what every namespace holds on the engine, in whole units: also of those that wait for nothing."""

    members: Mapping[uuid.UUID, Member] = field(default_factory=dict)
    held: Mapping[uuid.UUID, Units] = field(default_factory=dict)


@dataclass(frozen=True)
class ShareOf:
    """A node's part of the engine, and the part that is its own while those who are active want theirs; 0 to 1."""

    used: float
    fair: float
    group: str = ""
    """Its name; empty: it is the namespace itself."""


class Standing:
    """What each node of the tree holds, while a walk along the queue promises more."""

    def __init__(self, shares: Shares, total: Units) -> None:
        self._members = shares.members
        self._total = {name: amount for name, amount in total.items() if amount > 0}
        self._held: dict[uuid.UUID, dict[str, int]] = {}
        self._paths: dict[uuid.UUID, tuple[uuid.UUID, ...]] = {}
        for namespace_id, amount in shares.held.items():
            self.charge(namespace_id, amount)

    def path(self, namespace_id: uuid.UUID) -> tuple[uuid.UUID, ...]:
        """The nodes that the namespace counts for, from its own up to one at the top."""
        if namespace_id not in self._paths:
            self._paths[namespace_id] = self._path(namespace_id)
        return self._paths[namespace_id]

    def _path(self, namespace_id: uuid.UUID) -> tuple[uuid.UUID, ...]:
        found: list[uuid.UUID] = []
        at: uuid.UUID | None = namespace_id
        while at is not None and at in self._members and len(found) < DEEPEST:
            found.append(at)
            at = self._members[at].parent
        return tuple(found) or (REST,)

    def member(self, key: uuid.UUID) -> Member:
        """The node itself."""
        return self._members.get(key) or Member()

    def charge(self, namespace_id: uuid.UUID, amount: Units) -> None:
        """Count this amount for the namespace and all nodes above it."""
        for key in self.path(namespace_id):
            held = self._held.setdefault(key, {})
            for name, units in amount.items():
                held[name] = held.get(name, 0) + units

    def held(self, key: uuid.UUID) -> Units:
        """What the node holds, with what was charged."""
        return self._held.get(key, {})

    def used(self, key: uuid.UUID) -> float:
        """Its part of the engine in its dominant resource. 0: it holds nothing."""
        held = self._held.get(key)
        if not held:
            return 0.0
        return max((held.get(name, 0) / total for name, total in self._total.items()), default=0.0)

    def rank(self, key: uuid.UUID) -> tuple[bool, float]:
        """The node of the least rank among those of one parent is next."""
        weight = self.member(key).weight
        return (True, self.used(key)) if weight <= 0 else (False, self.used(key) / weight)


def shares_of(standing: Standing, active: Iterable[uuid.UUID]) -> dict[uuid.UUID, ShareOf]:
    """For each of these namespaces, which hold or want something, what is used and what is fair: of the node nearest to
    the top that uses more than is fair, or of the namespace itself where none does. Those in no group are left out."""
    paths = {one: standing.path(one) for one in active}
    parts = parts_of(standing, paths)
    found = {}
    for one, path in paths.items():
        if path != (REST,):
            over = (parts[key] for key in reversed(path) if parts[key].used > parts[key].fair)
            found[one] = next(over, parts[path[0]])
    return found


def parts_of(standing: Standing, active: Iterable[uuid.UUID]) -> dict[uuid.UUID, ShareOf]:
    """The same of every node that is above one of these namespaces, or is one. What is fair depends on them all: a node
    whose neighbours want nothing has their parts."""
    paths = {standing.path(one) for one in active}
    beside: dict[uuid.UUID | None, set[uuid.UUID]] = {}
    for path in paths:
        for key, parent in zip(path, (*path[1:], None), strict=True):
            beside.setdefault(parent, set()).add(key)
    found: dict[uuid.UUID, ShareOf] = {}
    for path in paths:
        fair, above = 1.0, None
        for key in reversed(path):
            weights = sum(standing.member(one).weight for one in beside[above])
            fair *= standing.member(key).weight / weights if weights else 1 / len(beside[above])
            found[key], above = ShareOf(standing.used(key), fair, standing.member(key).name), key
    return found
