"""What the watches have heard of a cluster's room: its nodes, and the pods that run on them, reduced to what
`capacity` reads. No requests, no threads; a lock, because one thread per kind writes and others read.

Of every object the newest version is kept, as in `store`. A watch that is late makes the room late, and nothing worse:
a job that is let in where there is no room any more waits for it on the cluster, as it does where somebody else took
the room a moment after it was counted.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from yardmaster.engines.kubernetes import names
from yardmaster.engines.kubernetes.slimming import shared
from yardmaster.engines.kubernetes.troubles import Expired, version_of
from yardmaster.ids import JobKey

Raw = Mapping[str, Any]
Place = tuple[str, str]
"""Namespace, name."""

PLACED = "status.phase!=Succeeded,status.phase!=Failed,spec.nodeName!="
"""Of pods: those that hold something of a node."""
SELECTORS: Mapping[str, tuple[str, str]] = {"Node": ("", ""), "Pod": ("", PLACED)}
"""Kind → the labels and fields of what counts. Of a pod that ends the watch tells that it went."""


_READ = (names.MANAGED_BY, names.NAMESPACE_ID, names.JOB_ID, names.ATTEMPT, names.ROLE)


@dataclass
class _Kind:
    mark: int = 0
    entries: dict[Place, tuple[int, Raw | None]] = field(default_factory=dict)
    """The version, and the object; None: gone."""


class RoomStore:
    """May be shared by threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kinds = {kind: _Kind() for kind in SELECTORS}

    # --- for the watches: as those of `RunStore`; no run is ever concerned -------------------------------------------

    def replace(self, kind: str, found: Iterable[Raw], version: str) -> set[JobKey]:
        """A whole list, as of `version`: it takes the place of everything known."""
        fresh = _Kind(version_of(version), {_place_of(one): (_version(one), shared(_SLIM[kind](one))) for one in found})
        with self._lock:
            self._kinds[kind] = fresh
        return set()

    def take(self, kind: str, happened: str, found: Raw) -> JobKey | None:
        """One event (ADDED, MODIFIED, DELETED)."""
        version, place = _version(found), _place_of(found)
        slim = None if happened == "DELETED" else shared(_SLIM[kind](found))
        with self._lock:
            known = self._kinds[kind]
            if version > known.mark and version > known.entries.get(place, (0, None))[0]:
                known.entries[place] = (version, slim)
        return None

    def vouch(self, kind: str, version: str) -> None:
        """A bookmark: everything up to `version` has been told. Raises `Expired` where that is less than before."""
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

    def known(self) -> tuple[list[Raw], list[Raw]]:
        """The nodes, and the pods on them, for `capacity_of`."""
        with self._lock:
            nodes, pods = ([one for _, one in self._kinds[kind].entries.values() if one] for kind in ("Node", "Pod"))
            return nodes, pods


def slim_node(found: Raw) -> Raw:
    """Without the list of images, most of all."""
    metadata, status = found["metadata"], found.get("status") or {}
    return {
        "metadata": {"name": metadata["name"], "labels": metadata.get("labels") or {}},
        "spec": {
            name: value for name, value in (found.get("spec") or {}).items() if name in ("unschedulable", "taints")
        },
        "status": {name: status[name] for name in ("allocatable", "conditions") if name in status},
    }


def slim_pod(found: Raw) -> Raw:
    """Where it is, what it asks for, and whether every node has one of its kind."""
    metadata, spec = found["metadata"], found["spec"]
    return {
        "metadata": {
            "namespace": metadata.get("namespace", ""),
            "labels": {name: one for name, one in (metadata.get("labels") or {}).items() if name in _READ},
            "ownerReferences": [{"kind": one["kind"]} for one in metadata.get("ownerReferences") or ()],
        },
        "spec": {
            "nodeName": spec.get("nodeName", ""),
            **{kind: [{"resources": one.get("resources") or {}} for one in spec.get(kind) or ()]
               for kind in ("containers", "initContainers")},
        },
        "status": {"phase": (found.get("status") or {}).get("phase")},
    }  # fmt: skip


_SLIM = {"Node": slim_node, "Pod": slim_pod}


def _place_of(found: Raw) -> Place:
    return str(found["metadata"].get("namespace", "")), str(found["metadata"]["name"])


def _version(found: Raw) -> int:
    return version_of(found["metadata"]["resourceVersion"])
