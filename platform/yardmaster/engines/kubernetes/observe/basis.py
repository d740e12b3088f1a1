"""When may a run be observed from the watches, without asking the server? Pure, but for the memory itself.

The rule, of one process and one run:

1. The process has looked at the run directly, after its own last write to it. What that look found is the run's basis.
2. No kind's watch is behind that basis: each object is as new as it was, or newer, or known to have gone later.
3. Exactly those tasks have ended that had ended then. What ends, or is no more, is believed after a direct look only,
   which becomes the next basis.

So nothing that a process has seen or done is unseen again; a run is never taken for absent, nor a task for lost,
because a watch is late; and what may be late is only how far a living run has come.
"""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from yardmaster.engines.kubernetes.client.objects import version_of
from yardmaster.engines.kubernetes.observe.store import KindView
from yardmaster.ids import JobKey
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import Observation

MOST_RUNS = 2000
"""Remembered at a time. Who is forgotten is looked at directly once more."""


@dataclass(frozen=True)
class Basis:
    """What a direct look found."""

    versions: Mapping[str, Mapping[str, int]]
    """Kind → name → version."""
    listed_at: Mapping[str, int]
    """Kind → the version of the list."""
    ended: frozenset[tuple[Role, int]]


def ended_in(seen: Observation) -> frozenset[tuple[Role, int]]:
    return frozenset((task.role, task.index) for task in seen.tasks if task.phase.is_ended)


def may_be_believed(view: Mapping[str, KindView], seen: Observation, basis: Basis) -> bool:
    """Whether `seen`, drawn from `view`, is no older than the basis and ends nothing."""
    if not seen.exists or ended_in(seen) != basis.ended:
        return False
    return not any(is_behind(one, basis, kind) for kind, one in view.items())


def is_behind(view: KindView, basis: Basis, kind: str) -> bool:
    """Whether the direct look saw something of this kind that the watch has not delivered yet."""
    listed_at = basis.listed_at[kind]
    if view.mark >= listed_at:
        return False
    for name, version in basis.versions[kind].items():
        if name in view.found:
            if version_of(view.found[name]["metadata"]["resourceVersion"]) < version:
                return True
        elif view.gone.get(name, -1) < version:
            return True
    fresh = (one for name, one in view.found.items() if name not in basis.versions[kind])
    return any(version_of(one["metadata"]["resourceVersion"]) <= listed_at for one in fresh)


class Memory:
    """The bases of the runs that one process has looked at. May be shared by threads."""

    def __init__(self, most: int = MOST_RUNS) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._clock = itertools.count(1)
        self._known: OrderedDict[JobKey, tuple[int, Basis | None]] = OrderedDict()
        self._forgotten_until = 0

    def now(self) -> int:
        """The moment before a direct look, for `remember`."""
        return next(self._clock)

    def remember(self, key: JobKey, basis: Basis | None, looked_at: int) -> None:
        """The outcome of a direct look that began then. A write or a look that began later counts more."""
        with self._lock:
            if looked_at > max(self._known.get(key, (0, None))[0], self._forgotten_until):
                self._put(key, looked_at, basis)

    def wrote(self, key: JobKey) -> None:
        """This process has changed the run just now: looks that began before say nothing any more."""
        with self._lock:
            self._put(key, next(self._clock), None)

    def basis(self, key: JobKey) -> Basis | None:
        with self._lock:
            return self._known.get(key, (0, None))[1]

    def _put(self, key: JobKey, at: int, basis: Basis | None) -> None:
        self._known[key] = (at, basis)
        self._known.move_to_end(key)
        while len(self._known) > self._most:
            _, (forgotten, _basis) = self._known.popitem(last=False)
            self._forgotten_until = max(self._forgotten_until, forgotten)
