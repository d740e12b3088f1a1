"""Decide the whole queue of an engine at once: the answers that `admission.admit` would give to one job after another,
in their order, each that starts taking its capacity before the next is asked.

One walk along the queue, so that ten thousand jobs take a second and not an hour. Pure, like `admit`, which stays the
rule: a property test compares the two.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from heapq import merge
from itertools import islice
from operator import itemgetter
from typing import TypeVar

from yardmaster.queueing.admission import (
    DEFAULT_PATIENCE,
    MOST_SHOWN,
    STARTS,
    Decision,
    Fit,
    held_keys,
    hindrance,
    keeps_for,
    waiting,
    with_claim,
    with_machines,
    with_share,
    with_window,
)
from yardmaster.queueing.bars import walked_bars
from yardmaster.queueing.ledger import Candidate, Holder, Ledger
from yardmaster.queueing.order import Order, Place
from yardmaster.queueing.pools import Needs, PoolKey, Pools
from yardmaster.queueing.turns import Exchange

T = TypeVar("T")
Keys = frozenset[PoolKey]


@dataclass(frozen=True)
class QueueDecision:
    """The answer for every job, in the order of the queue."""

    decisions: Mapping[uuid.UUID, Decision]
    turns: Mapping[uuid.UUID, datetime]
    """`turn_at` of the jobs whose turn has become another one, because one of their namespace started with theirs."""
    is_whole: bool = True
    """False: as many as were allowed have started, and the jobs behind them were not looked at."""


def decide_queue(
    queue: Iterable[Candidate],
    ledger: Ledger,
    now: datetime,
    patience: timedelta = DEFAULT_PATIENCE,
    *,
    most_admitted: int | None = None,
) -> QueueDecision:
    """Who of the queue starts now, and why each of the others waits. `queue` is as for `admit`."""
    walk = _Walk(queue, ledger, now, patience)
    exchange = Exchange(walk.order.turns)
    decisions: dict[uuid.UUID, Decision] = {}
    admitted = 0
    for place in walk.order:
        if admitted == most_admitted:
            return QueueDecision(decisions, exchange.moved(), is_whole=False)
        decision = decisions[place.turn.candidate.job_id] = walk.decide(place)
        if decision.fit is Fit.FITS_NOW:
            admitted += 1
            exchange.use(place.turn)
    return QueueDecision(decisions, exchange.moved())


class _Walk:
    """How far along the queue, and what those before have left."""

    def __init__(self, queue: Iterable[Candidate], ledger: Ledger, now: datetime, patience: timedelta) -> None:
        self.pools = Pools(ledger)
        self.order = Order(queue, ledger, self.pools)
        self._ledger, self._now, self._patience = ledger, now, patience
        self._ahead = _Ahead(self.pools)
        self._barred = walked_bars(self.pools)
        self._kept = walked_bars(self.pools)
        """From jobs that borrow, for those that are guaranteed what they lack."""
        self._holders = _Holders(ledger.holders)

    def decide(self, place: Place) -> Decision:
        """The answer for the next job. Every job of the queue must be asked for once, in its order."""
        one = place.turn.candidate
        needs = self.pools.needs(one)
        hindered = hindrance(one, self._ledger, self._ahead.count)
        if hindered is not None:
            if self.pools.could_ever_hold(needs):
                self._ahead.add(one, needs)
            return hindered
        lacking = self._lacking(place, needs)
        self.order.count(place, needs, starts=not lacking)
        if not lacking:
            self._admit(one, needs)
            return STARTS
        count, ahead = self._ahead.wanting(one.namespace_id, lacking)
        numbers = self.pools.shortages(needs)
        decision = waiting(numbers, numbers, self._ahead.count, ahead, count, self._holders.of(lacking))
        decision = with_window(decision, self.pools.kept_from(needs), self._ledger.booked)
        decision = with_share(decision, self.order.share_of(one.namespace_id), self._ahead.of_others(one.namespace_id))
        decision = with_claim(decision, self._ledger.claimants.get(one.job_id, 0))
        decision = with_machines(decision, one, self._ledger)
        self._ahead.add(one, needs)
        if keeps_for(one, self._ledger, self._now, self._patience):
            self._barred.add(needs, needs)
        if not place.borrows:
            self._kept.add(needs, needs)
        return decision

    def _lacking(self, place: Place, needs: Needs) -> Keys:
        """What it lacks, or may not take."""
        lacking = self.pools.lacking(needs)
        if lacking:
            return lacking
        barred = self._barred.among(needs)
        if place.borrows:
            barred |= self._kept.among(needs)
        return barred

    def _admit(self, one: Candidate, needs: Needs) -> None:
        self.pools.take(needs)
        self._holders.add(Holder(one.job_id, one.namespace_id, one.total))


@dataclass
class _Group:
    """Jobs that want the same: how many, and the first few with their place."""

    count: int = 0
    first: list[tuple[int, uuid.UUID]] = field(default_factory=list)

    def add(self, place: int, job_id: uuid.UUID) -> None:
        self.count += 1
        if len(self.first) < MOST_SHOWN:
            self.first.append((place, job_id))


class _Ahead:
    """Who is before, grouped by what they want: there are few different wishes, however long the queue."""

    def __init__(self, pools: Pools) -> None:
        self.count = 0
        self._pools = pools
        self._own: defaultdict[uuid.UUID, int] = defaultdict(int)
        self._all: defaultdict[Keys, _Group] = defaultdict(_Group)
        """By what they want of the engine."""
        self._of_namespace: defaultdict[uuid.UUID, defaultdict[tuple[Keys, Keys], _Group]]
        self._of_namespace = defaultdict(lambda: defaultdict(_Group))
        """By what they want of the engine and of the quota."""

    def add(self, one: Candidate, needs: Needs) -> None:
        # What is nowhere to be had, no job waits for.
        known = [key for key in needs.units if self._pools.has(key)]
        engine = frozenset(key for key in known if key.namespace_id is None)
        quota = frozenset(key for key in known if key.namespace_id is not None)
        self._all[engine].add(self.count, one.job_id)
        self._of_namespace[one.namespace_id][engine, quota].add(self.count, one.job_id)
        self.count += 1
        self._own[one.namespace_id] += 1

    def of_others(self, namespace_id: uuid.UUID) -> int:
        """How many are of other namespaces."""
        return self.count - self._own[namespace_id]

    def wanting(self, namespace_id: uuid.UUID, lacking: Keys) -> tuple[int, list[uuid.UUID]]:
        """How many want some of what a job of this namespace lacks, and the first of them."""
        groups = [group for engine, group in self._all.items() if not engine.isdisjoint(lacking)]
        groups += [
            group
            for (engine, quota), group in self._of_namespace[namespace_id].items()
            if engine.isdisjoint(lacking) and not quota.isdisjoint(lacking)
        ]
        first = _first_of(group.first for group in groups)
        return sum(group.count for group in groups), first


class _Holders:
    """The admitted jobs by what they hold."""

    def __init__(self, holders: Iterable[Holder]) -> None:
        self._count = 0
        self._by_key: defaultdict[PoolKey, list[tuple[int, Holder]]] = defaultdict(list)
        self._known: dict[Keys, list[Holder]] = {}
        for one in holders:
            self.add(one)

    def add(self, one: Holder) -> None:
        self._known.clear()
        for key in held_keys(one):
            self._by_key[key].append((self._count, one))
        self._count += 1

    def of(self, lacking: Keys) -> list[Holder]:
        """The first that hold some of it."""
        if lacking not in self._known:
            self._known[lacking] = _first_of(self._by_key[key] for key in lacking if key in self._by_key)
        return self._known[lacking]


def _first_of(lists: Iterable[list[tuple[int, T]]]) -> list[T]:
    """The first few of all these, by their place, each once. Each list is in order."""
    found: dict[int, T] = {}
    for place, one in merge(*(islice(each, MOST_SHOWN) for each in lists), key=itemgetter(0)):
        found[place] = one
        if len(found) == MOST_SHOWN:
            break
    return list(found.values())
