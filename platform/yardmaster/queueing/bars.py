"""What jobs that wait keep later ones from taking, and what they do not: the part that is reserved for a later job now,
unless it is reserved for the one that waits as well. Pure.

`static_bars` remember what each lacked when it was asked, for one candidate (`admission`); `walked_bars` follow a whole
walk along the queue, while the pools shrink (`queue_decision`). Both say the same.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Generic, Protocol, TypeVar

from yardmaster.queueing.pools import Needs, PoolKey, Pools

Keys = frozenset[PoolKey]
MOST_LOOKED_AT = 64
"""Of the jobs that have waited long and lack nothing in sum, so many are asked about their places on nodes."""


W = TypeVar("W")
W_contra = TypeVar("W_contra", contravariant=True)


class _Bar(Protocol[W_contra]):
    def add(self, what: W_contra) -> None:
        """Count what one keeps."""

    def among(self, needs: Needs) -> Keys:
        """What of these is barred."""


class _Lacked:
    """What was lacked by those that were added, however the pools change."""

    def __init__(self) -> None:
        self._keys: Keys = frozenset()

    def add(self, keys: Keys) -> None:
        self._keys |= keys

    def among(self, needs: Needs) -> Keys:
        """What of these is barred."""
        return self._keys & needs.keys()


class _Lacking:
    """What jobs that have waited long enough keep later ones from taking: what `Pools.kept_for` says of each. Along the
    walk pools only shrink: who lacks quota once lacks it to the end."""

    def __init__(self, pools: Pools) -> None:
        self._pools = pools
        self._of_nodes: list[Needs] = []
        """Those that lacked nothing in sum: what is free may be, or become, too scattered for them."""
        self._scattered: tuple[int, Keys] = (-1, frozenset())
        """As of which version of the pools, and what of the engine these jobs bar then."""
        self._of_quota: dict[PoolKey, int] = {}
        """The largest need among these jobs. One of them lacks the resource while that is more than what is left."""
        self._of_engine: defaultdict[PoolKey, list[tuple[int, int, Needs]]] = defaultdict(list)
        """Heaps, the largest need first, of those that may yet have their quota."""
        self._count = 0

    def add(self, needs: Needs) -> None:
        if self._pools.waits_for_end(needs) or self._pools.waits_for_machines(needs):
            return
        self._count += 1
        if not needs.is_pinned and len(self._of_nodes) < MOST_LOOKED_AT and not self._pools.lacking_in_sum(needs):
            self._of_nodes.append(needs)
            self._scattered = (-1, frozenset())
        for key, need in needs.units.items():
            if key.namespace_id is not None:
                self._of_quota[key] = max(need, self._of_quota.get(key, 0))
            elif not needs.is_pinned:
                heappush(self._of_engine[key], (-need, self._count, needs))

    def among(self, needs: Needs) -> Keys:
        """What of these is barred."""
        scattered = self._by_nodes()
        return frozenset(key for key in needs.units if key in scattered or self._largest(key) > self._pools.left(key))

    def _by_nodes(self) -> Keys:
        if self._scattered[0] != self._pools.version:
            self._of_nodes = [one for one in self._of_nodes if not self._pools.lacking_in_sum(one)]
            kept = [self._pools.kept_for(one) for one in self._of_nodes]
            self._scattered = self._pools.version, frozenset().union(*kept)
        return self._scattered[1]

    def _largest(self, key: PoolKey) -> int:
        if key.namespace_id is not None:
            return self._of_quota.get(key, 0)
        heap = self._of_engine[key]
        while heap and self._pools.lacks_quota(heap[0][2]):
            heappop(heap)
        return -heap[0][0] if heap else 0


class Bars(Generic[W]):
    """What jobs that wait keep from later ones, of all of them and by whom something is reserved for."""

    def __init__(self, pools: Pools, bar: Callable[[], _Bar[W]]) -> None:
        self._pools = pools
        self._all = bar()
        self._by_owner: defaultdict[uuid.UUID, _Bar[W]] = defaultdict(bar)

    def add(self, needs: Needs, what: W) -> None:
        """Count a job that waits, and what it keeps."""
        self._all.add(what)
        for owner in self._pools.owners_now(needs):
            self._by_owner[owner].add(what)

    def among(self, needs: Needs) -> Keys:
        """What a job with these needs may not take of them: less what is reserved for it, and not kept by one that it
        is reserved for, too."""
        barred = self._all.among(needs)
        own = self._pools.own_now(needs) if barred else frozenset()
        if not own:
            return barred
        owners = [one for one in self._pools.owners_now(needs) if one in self._by_owner]
        shared = (self._by_owner[owner].among(needs) for owner in owners)
        return barred - (own - frozenset().union(*shared))


def static_bars(pools: Pools) -> Bars[Keys]:
    """Of the jobs before one candidate: what each lacked when it was asked."""
    return Bars(pools, _Lacked)


def walked_bars(pools: Pools) -> Bars[Needs]:
    """Along a walk. Every job that keeps something is added once, with its needs, in the order of the queue."""
    return Bars(pools, lambda: _Lacking(pools))
