"""The pools that a job takes from, its namespace's quota and its engine's capacity, and what is left of each.

Counted in whole units (thousandths of a core, bytes, pieces), so that no sum of fractions is ever a little too large.
Not here: whose turn it is (`admission`).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, KeysView, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from yardmaster.queueing.ledger import RUNNING_JOBS, Candidate, Ledger, Quota, Usage
from yardmaster.queueing.placement import Board, Tasks
from yardmaster.queueing.resources import to_amount, to_units, units_of
from yardmaster.queueing.windows import Booked, Calendar, Kept

CAPACITY = "capacity"
QUOTA = "quota"
MACHINE = "machine"
NODES = "nodes"
TASKS = "tasks"
RESERVED = "reserved"


@dataclass(frozen=True)
class Shortage:
    """One resource that lacks in one pool. `limit` is the pool's size; `unused` is what is left of it now (it may be
    negative, where a limit was lowered below what is held)."""

    pool: str
    """`quota` or `capacity`; `machine` where one task is too large for every machine, or for what is free on those that
    alone may take it; `nodes` where there is enough in sum and not on single nodes: then the resource is `tasks`, and
    counted is how many of them have a place; `reserved` where the rest is reserved for others (`windows`)."""
    resource: str
    needs: float
    unused: float
    limit: float

    @property
    def short_by(self) -> float:
        """How much more must be free."""
        return round(self.needs - max(self.unused, 0), 3)


class PoolKey(NamedTuple):
    """One resource of one pool. `namespace_id` None: the engine's."""

    namespace_id: uuid.UUID | None
    resource: str

    @property
    def pool(self) -> str:
        return CAPACITY if self.namespace_id is None else QUOTA


@dataclass(frozen=True)
class Needs:
    """How many units of which pools a job takes, and which tasks are to be placed on nodes."""

    units: Mapping[PoolKey, int]
    tasks: tuple[Tasks, ...] = ()
    namespace_id: uuid.UUID | None = None
    ends_by: datetime | None = None
    """Until when at most; None: without a limit."""

    @cached_property
    def is_limited(self) -> bool:
        """Whether certain machines alone may take some of its tasks."""
        return any(one.only is not None for one in self.tasks)

    @cached_property
    def is_pinned(self) -> bool:
        """Whether it keeps nothing of the engine while it waits for these."""
        return any(one.only is not None and not one.only.keeps for one in self.tasks)

    def keys(self) -> KeysView[PoolKey]:
        return self.units.keys()


def exceeding(pool: str, needs: Mapping[str, int], limits: Mapping[str, int]) -> tuple[Shortage, ...]:
    """What is needed beyond the limits; a resource without a limit here is not there at all."""
    return tuple(
        _shortage(pool, name, need, limits.get(name, 0), limits.get(name, 0))
        for name, need in needs.items()
        if need > max(0, limits.get(name, 0))
    )


def _shortage(pool: str, resource: str, needs: int, unused: int, limit: int) -> Shortage:
    return Shortage(pool, resource, *(to_amount(resource, units) for units in (needs, unused, limit)))


class Pools:
    """What is left of every limit of one ledger. `take` promises some of it; nothing else changes."""

    def __init__(self, ledger: Ledger) -> None:
        self._limits: dict[PoolKey, int] = {}
        self._left: dict[PoolKey, int] = {}
        self._capacity = capacity = ledger.capacity
        self._machine = units_of(capacity.largest_task)
        self._holding = frozenset(one.job_id for one in ledger.holders if one.on_engine)
        self._booked = ledger.booked
        self._calendar = None if ledger.booked is None else _calendar(ledger.booked, ledger)
        self.version = 0
        """How often something was taken."""
        total, free, reserved = units_of(capacity.total), units_of(capacity.free), units_of(capacity.reserved)
        for name in {*total, *free, *reserved}:
            self._limits[PoolKey(None, name)] = total.get(name, 0)
            self._left[PoolKey(None, name)] = free.get(name, 0) - reserved.get(name, 0)
        for namespace_id, quota in ledger.quotas.items():
            used = to_units(ledger.usage.get(namespace_id, Usage()).amounts())
            for name, limit in to_units(quota.limits({*total, *free, *reserved, *used})).items():
                self._limits[PoolKey(namespace_id, name)] = limit
                self._left[PoolKey(namespace_id, name)] = limit - used.get(name, 0)

    @cached_property
    def _board(self) -> Board:
        return Board.now(self._capacity.nodes, self._holding, self._capacity.promised, self._capacity.by_name)

    def needs(self, candidate: Candidate) -> Needs:
        """What the candidate takes from which pool: only what it takes at all, and of quotas only what has a limit."""
        found = {}
        asked = units_of(candidate.total)
        for name, need in asked.items():
            if need > 0:
                found[PoolKey(None, name)] = need
        asked[RUNNING_JOBS] = 1
        for name, need in asked.items():
            key = PoolKey(candidate.namespace_id, name)
            if need > 0 and key in self._limits:
                found[key] = need
        return Needs(found, candidate.tasks, candidate.namespace_id, self.end_of(candidate))

    def end_of(self, candidate: Candidate) -> datetime | None:
        """When it would end at the latest if it were admitted now; None: it has no limit, or nothing is reserved."""
        if self._booked is None or candidate.longest is None:
            return None
        return self._booked.now + self._booked.start_timeout + candidate.longest + self._booked.margin

    def left(self, key: PoolKey) -> int:
        """What is left of one resource of one pool."""
        return self._left.get(key, 0)

    def remaining(self) -> dict[PoolKey, int]:
        """What is left of every pool."""
        return dict(self._left)

    def has(self, key: PoolKey) -> bool:
        """Whether the pool has, or bounds, this resource at all."""
        return key in self._limits

    def could_ever_hold(self, needs: Needs) -> bool:
        """Whether a job with these needs fits if no other holds anything."""
        if any(need > self._limits.get(key, 0) for key, need in needs.units.items()):
            return False
        if self._capacity.nodes:
            return self._capacity.idle.fits(needs.tasks)
        return not any(exceeding(MACHINE, units_of(one.size), self._machine) for one in needs.tasks)

    def lacking(self, needs: Needs) -> frozenset[PoolKey]:
        """The pools that have less left than is needed; where all have enough and the nodes do not take all tasks at
        once, everything that is needed of the engine; else what is reserved for others."""
        lacking = self._lacking_now(needs)
        if lacking or (kept := self.kept_from(needs)) is None:
            return lacking
        return frozenset(PoolKey(None, name) for name in kept.lacking)

    def _lacking_now(self, needs: Needs) -> frozenset[PoolKey]:
        lacking = self.lacking_in_sum(needs)
        if lacking or self.are_placed(needs):
            return lacking
        return frozenset(key for key in needs.units if key.namespace_id is None)

    def kept_from(self, needs: Needs) -> Kept | None:
        """The first window of others for which it may not start now."""
        if self._calendar is None or needs.namespace_id is None:
            return None
        return self._calendar.kept_from(needs.namespace_id, _of_engine(needs), needs.ends_by)

    def lacking_in_sum(self, needs: Needs) -> frozenset[PoolKey]:
        """The pools that have less left than is needed, wherever on the engine it is."""
        return frozenset(key for key, need in needs.units.items() if need > self._left.get(key, 0))

    def are_placed(self, needs: Needs) -> bool:
        """Whether the nodes take all tasks at once. Always, where the engine is one machine."""
        return not self._capacity.nodes or self._board.fits(needs.tasks)

    def waits_for_machines(self, needs: Needs) -> bool:
        """Whether certain machines alone may take it, which have no space for it now, and no job that ends brings it
        closer to its start: it has a place of its own, or the machines take no tasks."""
        if not needs.is_limited or self.are_placed(needs):
            return False
        return needs.is_pinned or not self._capacity.idle_open.fits(needs.tasks)

    def lacks_quota(self, needs: Needs) -> bool:
        """Whether its namespace's quota has less left than is needed."""
        return any(key.namespace_id is not None for key in self.lacking_in_sum(needs))

    def waits_for_end(self, needs: Needs) -> bool:
        """Whether it can start only once a window of others is over, whatever ends before."""
        if self._calendar is None or needs.namespace_id is None:
            return False
        return self._calendar.outlasts(needs.namespace_id, _of_engine(needs), needs.ends_by)

    def own_now(self, needs: Needs) -> frozenset[PoolKey]:
        """What of these is reserved for its namespace now: only a job that it is reserved for, too, may keep it."""
        if self._calendar is None or needs.namespace_id is None:
            return frozenset()
        own = self._calendar.own_now(needs.namespace_id)
        return frozenset(PoolKey(None, name) for name, need in _of_engine(needs).items() if need <= own.get(name, 0))

    def owners_now(self, needs: Needs) -> frozenset[uuid.UUID]:
        """For whom something is reserved now that a job with these needs may take: its namespace, groups above it."""
        if self._calendar is None or needs.namespace_id is None:
            return frozenset()
        return self._calendar.owners_now(needs.namespace_id)

    def kept_for(self, needs: Needs) -> frozenset[PoolKey]:
        """What a job with these needs may keep from later ones: what it lacks, and where it lacks nothing now, what it
        lacks beside a window of others. Where it lacks some of its own namespace's quota it cannot start whatever the
        engine has, so that it keeps nothing of that. One that waits for the end of a window, or for certain machines,
        keeps nothing at all."""
        if self.waits_for_end(needs) or self.waits_for_machines(needs):
            return frozenset()
        lacking = self.lacking(needs)
        quota = frozenset(key for key in lacking if key.namespace_id is not None)
        return quota if needs.is_pinned else quota or lacking

    def shortages(self, needs: Needs) -> tuple[Shortage, ...]:
        """What lacks now, with numbers, quota first; empty when it fits."""
        if needs.is_limited and not self.lacks_quota(needs) and not self.are_placed(needs):
            return self._on_machines(needs) or self._scattered(needs)
        keys = sorted(self.lacking_in_sum(needs), key=lambda key: (key.pool != QUOTA, key.resource))
        if not keys and not self.are_placed(needs):
            return self._scattered(needs)
        if not keys and (kept := self.kept_from(needs)) is not None:
            return tuple(
                _shortage(RESERVED, name, needs.units[PoolKey(None, name)], left, self._limits[PoolKey(None, name)])
                for name, left in sorted(kept.lacking.items())
            )
        return tuple(
            _shortage(key.pool, key.resource, needs.units[key], self._left.get(key, 0), self._limits.get(key, 0))
            for key in keys
        )

    def _scattered(self, needs: Needs) -> tuple[Shortage, ...]:
        asked = sum(one.count for one in needs.tasks)
        return (Shortage(NODES, TASKS, asked, self._board.most(needs.tasks), self._capacity.idle.most(needs.tasks)),)

    def _on_machines(self, needs: Needs) -> tuple[Shortage, ...]:
        """What a task for which none of its machines has the space lacks on the one that comes closest, of those that
        are large enough."""
        found = list[list[Shortage]]()
        for task in needs.tasks:
            over = self._lacks_there(task)
            found += over if all(over) else []
        return tuple(min(found, key=lambda over: sum(one.short_by / one.needs for one in over), default=()))

    def _lacks_there(self, task: Tasks) -> list[list[Shortage]]:
        """What one task lacks on each of its machines that is large enough."""
        asked, names = units_of(task.size), task.only.names if task.only is not None else frozenset()
        found = []
        for node in self._capacity.nodes:
            if node.name in names and all(need <= node.in_all.get(one, 0) for one, need in asked.items()):
                left = self._board.left_on(node.name)
                over = [name for name, need in asked.items() if need > max(0, left.get(name, 0))]
                found.append([_shortage(MACHINE, one, asked[one], left.get(one, 0), node.in_all[one]) for one in over])
        return found

    def take(self, needs: Needs) -> None:
        """Promise what is needed."""
        self.version += 1
        for key, need in needs.units.items():
            self._left[key] = self._left.get(key, 0) - need
        if self._calendar is not None and needs.namespace_id is not None:
            self._calendar.take(needs.namespace_id, _of_engine(needs), needs.ends_by)
        if self._capacity.nodes:
            self._board.take(needs.tasks)

    def left_for(
        self, namespace_id: uuid.UUID, resources: Iterable[str], ends_by: datetime | None = None
    ) -> dict[str, int]:
        """The units of each of these resources that a job of this namespace could still get, in quota and capacity and
        beside what is reserved for others until it has ended."""
        found = {}
        for name in resources:
            limits = (PoolKey(None, name), PoolKey(namespace_id, name))
            left = [self._left[key] for key in limits if key in self._left]
            if left and self._calendar is not None:
                most = self._calendar.most_for(namespace_id, name, ends_by)
                left += [] if most is None else [most]
            found[name] = max(0, min(left, default=0))
        return found


def _of_engine(needs: Needs) -> dict[str, int]:
    return {key.resource: need for key, need in needs.units.items() if key.namespace_id is None}


def _calendar(booked: Booked, ledger: Ledger) -> Calendar:
    held = [(one.job_id, one.namespace_id, units_of(one.resources)) for one in ledger.holders if one.on_engine]
    return Calendar(booked, units_of(ledger.capacity.free), held)


def quota_limits(ledger: Ledger, namespace_id: uuid.UUID, names: Iterable[str] = ()) -> dict[str, int]:
    """The namespace's limits in units, and those of `names` that follow from them; empty where it has none."""
    return to_units(ledger.quotas.get(namespace_id, Quota()).limits(names))
