"""What the watches have heard of a cluster's capacity: its nodes, and what pods hold of them. Each object is read when
a watch brings it, and what `capacity` counts of it is kept. No requests, no threads; a lock, because one thread per
kind writes and others read.

Of every object the newest version is kept, as in `store`. A watch that is late makes the capacity late, and nothing
worse: a job that is let in where there is no capacity any more waits for it on the cluster, as it does where another
tenant took the capacity a moment after it was counted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from yardmaster.engines.kubernetes.capacity.holdings import Held, held_by, node_as_counted
from yardmaster.engines.kubernetes.client.errors import Expired
from yardmaster.engines.kubernetes.client.objects import ObjectName, Raw, object_name, version_of
from yardmaster.ids import JobKey

T = TypeVar("T")
PLACED = "status.phase!=Succeeded,status.phase!=Failed,spec.nodeName!="
"""Of pods: those that hold something of a node."""
SELECTORS: Mapping[str, tuple[str, str]] = {"Node": ("", ""), "Pod": ("", PLACED)}
"""Kind → the labels and fields of what counts. Of a pod that ends the watch tells that it went."""


@dataclass
class _Kind(Generic[T]):
    read: Callable[[Raw], T | None]
    mark: int = 0
    entries: dict[ObjectName, tuple[int, T | None]] = field(default_factory=dict)
    """The version, and what counts of the object; None: it is gone, or holds nothing."""

    def known(self) -> list[T]:
        return [one for _, one in self.entries.values() if one is not None]


class CapacityStore:
    """May be shared by threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._nodes, self._pods = _Kind(node_as_counted), _Kind(held_by)
        self._kinds: dict[str, _Kind[Any]] = {"Node": self._nodes, "Pod": self._pods}

    # --- for the watches: as those of `RunStore`; no run is ever concerned -------------------------------------------

    def replace(self, kind: str, found: Iterable[Raw], version: str) -> set[JobKey]:
        """A whole list, as of `version`: it takes the place of everything known."""
        known = self._kinds[kind]
        fresh = {object_name(one): (_version(one), known.read(one)) for one in found}
        with self._lock:
            known.mark, known.entries = version_of(version), fresh
        return set()

    def take(self, kind: str, happened: str, found: Raw) -> JobKey | None:
        """One event (ADDED, MODIFIED, DELETED)."""
        version, place = _version(found), object_name(found)
        known = self._kinds[kind]
        read = None if happened == "DELETED" else known.read(found)
        with self._lock:
            if version > known.mark and version > known.entries.get(place, (0, None))[0]:
                known.entries[place] = (version, read)
        return None

    def vouch(self, kind: str, version: str) -> None:
        """A bookmark: everything up to `version` was reported. Raises `Expired` where that is less than before."""
        mark = version_of(version)
        with self._lock:
            known = self._kinds[kind]
            if mark < known.mark:
                raise Expired(f"The cluster's version of {kind} went back from {known.mark} to {mark}.")
            known.mark = mark
            gone = [place for place, (at, found) in known.entries.items() if found is None and at <= mark]
            for place in gone:
                del known.entries[place]

    def mark(self, kind: str) -> int:
        with self._lock:
            return self._kinds[kind].mark

    # --- for those who count -----------------------------------------------------------------------------------------

    def known(self) -> tuple[list[Raw], list[Held]]:
        """The nodes, and what pods hold of them, for `capacity.Count`."""
        with self._lock:
            return self._nodes.known(), self._pods.known()


def _version(found: Raw) -> int:
    return version_of(found["metadata"]["resourceVersion"])
