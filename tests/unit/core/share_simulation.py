"""An engine over days, whose queue is decided by `decide_queue` alone; and the ideal that it is compared with: every
moment, each node of the tree has its weighted part of what its parent has, and what one does not want the others get.

Pure and seeded: a day of a few hundred jobs takes seconds.
"""

from __future__ import annotations

import random
import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from heapq import heappop, heappush

from tests.unit.core.generators import NOW, one_task
from yardmaster.job.spec import NOTHING, Resources
from yardmaster.queueing.admission import Candidate, EngineCapacity, Fit, Holder, Ledger
from yardmaster.queueing.queue_decision import decide_queue
from yardmaster.queueing.resources import units_of
from yardmaster.queueing.shares import Member, Shares

Key = uuid.UUID
Tree = Mapping[Key, Member]


@dataclass
class Engine:
    """`wants(namespace, hour)`: how many jobs the namespace keeps in the queue then. Time is in minutes."""

    tree: Tree
    namespaces: list[Key]
    cores: int
    wants: Callable[[Key, float], int]
    sizes: tuple[int, ...] = (1, 2, 4)
    longest: int = 120
    seed: int = 1
    now: float = 0
    queue: dict[Key, Candidate] = field(default_factory=dict)
    running: dict[Key, Candidate] = field(default_factory=dict)
    ends: list[tuple[float, int, Key]] = field(default_factory=list)
    received: defaultdict[Key, float] = field(default_factory=lambda: defaultdict(float))
    """Core minutes of each namespace, and `ideal` what it would have had."""
    ideal: defaultdict[Key, float] = field(default_factory=lambda: defaultdict(float))
    waits: list[float] = field(default_factory=list)
    count: int = 0
    most_used: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)

    def run(self, until: float, *, step: float = 15) -> None:
        """Go on until then; who wants jobs launches them every so many minutes, and whenever one ends."""
        while self.now < until:
            self._launch()
            self._decide()
            following = min(until, self.now + step, self.ends[0][0] if self.ends else until)
            self._pass(following - self.now)
            self.now = following
            while self.ends and self.ends[0][0] <= self.now:
                del self.running[heappop(self.ends)[2]]

    def held(self, *namespaces: Key) -> float:
        """The cores that they hold now."""
        return sum(one.total.cpu for one in self.running.values() if one.namespace_id in namespaces)

    def forget(self) -> None:
        """Count from here."""
        self.received.clear()
        self.ideal.clear()
        self.waits.clear()

    def _launch(self) -> None:
        waiting: defaultdict[Key, int] = defaultdict(int)
        for one in self.queue.values():
            waiting[one.namespace_id] += 1
        for namespace in self.namespaces:
            for _ in range(self.wants(namespace, self.now / 60) - waiting[namespace]):
                self.count += 1
                size = Resources(self.chance.choice(self.sizes), 0)
                at = NOW + timedelta(minutes=self.now, microseconds=self.count)
                one = Candidate(uuid.UUID(int=10_000 + self.count), namespace, at, 0, size, one_task(size))
                self.queue[one.job_id] = one

    def _decide(self) -> None:
        now = NOW + timedelta(minutes=self.now, seconds=1)
        found = decide_queue(self.queue.values(), self._ledger(), now, timedelta(minutes=10)).decisions
        for key, decision in found.items():
            if decision.fit is Fit.FITS_NOW:
                one = self.running[key] = self.queue.pop(key)
                self.waits.append((now - one.queued_at).total_seconds() / 60)
                heappush(self.ends, (self.now + self.chance.randint(10, self.longest), self.count, key))
                self.count += 1
        self.most_used = max(self.most_used, int(self.held(*self.namespaces)))

    def _ledger(self) -> Ledger:
        total = Resources(self.cores, 1)
        held: defaultdict[Key, Resources] = defaultdict(lambda: NOTHING)
        for one in self.running.values():
            held[one.namespace_id] += one.total
        shares = Shares(self.tree, {key: units_of(one) for key, one in held.items()})
        holders = tuple(Holder(one.job_id, one.namespace_id, one.total) for one in self.running.values())
        return Ledger(EngineCapacity(total, total, total, sum(held.values(), NOTHING)), holders=holders, shares=shares)

    def _pass(self, minutes: float) -> None:
        wanted: defaultdict[Key, float] = defaultdict(float)
        for one in [*self.queue.values(), *self.running.values()]:
            wanted[one.namespace_id] += one.total.cpu
        for key, cores in ideal_parts(self.tree, wanted, self.cores).items():
            self.ideal[key] += cores * minutes
        for one in self.running.values():
            self.received[one.namespace_id] += one.total.cpu * minutes


def ideal_parts(tree: Tree, wanted: Mapping[Key, float], cores: float) -> dict[Key, float]:
    """The cores that each namespace has when they are poured out by weight, level by level."""
    below: defaultdict[Key | None, list[Key]] = defaultdict(list)
    for key, member in tree.items():
        below[member.parent].append(key)

    def demand(key: Key) -> float:
        return sum(map(demand, below[key])) if key in below else wanted.get(key, 0)

    def pour(keys: list[Key], amount: float) -> dict[Key, float]:
        heavy, light = ([key for key in keys if bool(tree[key].weight) == is_heavy] for is_heavy in (True, False))
        first = by_weight(heavy, amount)
        return first | by_weight(light, max(0.0, amount - sum(first.values())))

    def by_weight(keys: list[Key], amount: float) -> dict[Key, float]:
        """Those of weight 0 are equal among themselves."""
        found: dict[Key, float] = {}
        open_ones = dict(zip(keys, map(demand, keys), strict=True))
        while open_ones:
            weights = {key: tree[key].weight or 1 for key in open_ones}
            parts = {key: amount * one / sum(weights.values()) for key, one in weights.items()}
            full = [key for key, one in open_ones.items() if one <= parts[key]]
            if not full:
                return found | parts
            for key in full:
                found[key] = open_ones.pop(key)
            amount = max(0.0, amount - sum(found[key] for key in full))
        return found

    parts: dict[Key, float] = {}

    def walk(keys: list[Key], amount: float) -> None:
        for key, one in pour(keys, amount).items():
            if key in below:
                walk(below[key], one)
            else:
                parts[key] = one

    walk(below[None], cores)
    return parts
