"""In which order a queue is asked, where each answer may change who is next.

Without shares it is the order of `turns`. With them it is: first who stays within a guarantee (`borrowing`); then the
priority, as far as it counts between namespaces; then at each level of the tree the node with the least share
(`shares`), of two equal ones the one whose turn it is; within a namespace the order of `turns`.

A job is counted for its namespace when it starts, and also when it waits for the engine: the next in the queue is who
would be next if it had started. Else all waiting jobs of one namespace would be before the first one of another. A job
that lacks its own namespace's quota, waits for the end of a time that is reserved for others or for certain machines,
or may not start at all, is not counted.

Pure. Not here: whether a job starts (`admission`).
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heapreplace
from itertools import groupby
from typing import NamedTuple

from yardmaster.queueing.borrowing import has_guarantee, is_within
from yardmaster.queueing.ledger import Candidate, Ledger
from yardmaster.queueing.pools import Needs, Pools
from yardmaster.queueing.resources import units_of
from yardmaster.queueing.shares import ShareOf, Standing, shares_of
from yardmaster.queueing.turns import Turn, in_order, level_of


class Place(NamedTuple):
    """A job whose turn it is. `borrows`: it does not stay within a guarantee."""

    turn: Turn
    borrows: bool = True


class Order:
    """The queue, first first. Say with `count` what became of each place before asking for the next."""

    def __init__(self, queue: Iterable[Candidate], ledger: Ledger, pools: Pools) -> None:
        self.turns = in_order(queue, ledger, pools)
        self._ledger, self._pools = ledger, pools
        self._standing: Standing | None = None
        self._shares: dict[uuid.UUID, ShareOf] = {}
        self._guarded: set[uuid.UUID] = set()
        if ledger.shares is not None:
            self._standing = Standing(ledger.shares, units_of(ledger.capacity.total))
            waiting = {one.candidate.namespace_id for one in self.turns}
            # Who may start nothing claims no part of what is shared out.
            open_ones = {
                one.candidate.namespace_id for one in self.turns if one.candidate.job_id not in ledger.held_jobs
            }
            active = {
                *(open_ones - ledger.closed.keys()),
                *(key for key, held in ledger.shares.held.items() if any(held.values())),
            }
            self._shares = shares_of(self._standing, active)
            self._guarded = {one for one in waiting if has_guarantee(self._standing, one)}

    def __iter__(self) -> Iterator[Place]:
        if self._standing is None:
            return (Place(one) for one in self.turns)
        return self._by_shares(self._standing)

    def count(self, place: Place, needs: Needs, *, starts: bool) -> None:
        """It starts, or waits although nothing forbids it to start: asked before what it needs is taken."""
        if self._standing is not None and (starts or not self._waits_elsewhere(needs)):
            one = place.turn.candidate
            self._standing.charge(one.namespace_id, units_of(one.total))

    def _waits_elsewhere(self, needs: Needs) -> bool:
        """For something else than what others have of the engine."""
        pools = self._pools
        return pools.lacks_quota(needs) or pools.waits_for_end(needs) or pools.waits_for_machines(needs)

    def share_of(self, namespace_id: uuid.UUID) -> ShareOf | None:
        """What the namespace has and what is fair, before anything of the queue starts; None without shares."""
        return self._shares.get(namespace_id)

    def _by_shares(self, standing: Standing) -> Iterator[Place]:
        first = [at for at, one in enumerate(self.turns) if one.candidate.namespace_id in self._guarded]
        done: set[int] = set()
        for at in self._served(standing, first):
            one = self.turns[at].candidate
            if is_within(standing, one.namespace_id, units_of(one.total)):
                done.add(at)
                yield Place(self.turns[at], borrows=False)
        for at in self._served(standing, [at for at in range(len(self.turns)) if at not in done]):
            yield Place(self.turns[at])

    def _served(self, standing: Standing, places: list[int]) -> Iterator[int]:
        """These places of `turns`: one priority after the other, in each by the shares as they are then."""

        def level(at: int) -> int:
            return level_of(self._ledger, self.turns[at].candidate)

        for _, these in groupby(places, level):
            yield from _Tree(standing, [(at, self.turns[at].candidate.namespace_id) for at in these])


class _Branch:
    """A node of the tree with what waits below it: further nodes, or the places of its own jobs."""

    def __init__(self, key: uuid.UUID | None) -> None:
        self.key = key
        self.below: dict[uuid.UUID, _Branch] = {}
        self.places: deque[int] = deque()
        self.heap: list[tuple[tuple[bool, float], int, _Branch]] = []
        """Those below by rank, then by the place of whose turn it would be: no two have the same."""

    @property
    def next_place(self) -> int:
        return self.heap[0][1] if self.heap else self.places[0]

    @property
    def is_empty(self) -> bool:
        return not self.heap and not self.places

    def entry(self, standing: Standing) -> tuple[tuple[bool, float], int, _Branch]:
        assert self.key is not None
        return standing.rank(self.key), self.next_place, self

    def arrange(self, standing: Standing) -> None:
        for one in self.below.values():
            one.arrange(standing)
        self.heap = [one.entry(standing) for one in self.below.values()]
        heapify(self.heap)


class _Tree:
    """Serves places, each of a namespace: from the top down the node of the least rank."""

    def __init__(self, standing: Standing, places: Iterable[tuple[int, uuid.UUID]]) -> None:
        self._standing = standing
        self._top = _Branch(None)
        for at, namespace_id in places:
            node = self._top
            for key in reversed(standing.path(namespace_id)):
                if key not in node.below:
                    node.below[key] = _Branch(key)
                node = node.below[key]
            node.places.append(at)
        self._top.arrange(standing)

    def __iter__(self) -> Iterator[int]:
        while self._top.heap:
            path = [self._top]
            while path[-1].heap:
                path.append(path[-1].heap[0][2])
            yield path[-1].places.popleft()
            # What was counted meanwhile has changed the ranks on this path, and no other.
            for above, node in zip(reversed(path[:-1]), reversed(path), strict=False):
                if node.is_empty:
                    heappop(above.heap)
                else:
                    heapreplace(above.heap, node.entry(self._standing))
