"""What the watches have heard of all runs: the objects of each kind, as late as that kind's watch is. No requests, no
threads; a lock, because one thread per kind writes and others read.

Of every object the newest version is kept, whatever order its events come in and however often: a version that is not
newer than what is known changes nothing, and an object that is gone leaves its last version behind until the server has
vouched (a list, a bookmark) for everything up to there. Not here: whether what is known is new enough (`basis`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from yardmaster.engines.kubernetes.client.errors import Expired
from yardmaster.engines.kubernetes.client.objects import ObjectName, Raw, object_name, shared, version_of
from yardmaster.engines.kubernetes.render import names
from yardmaster.ids import JobKey

KINDS = ("ConfigMap", "Job", "StatefulSet", "Pod")


@dataclass(frozen=True)
class KindView:
    """The objects of one kind of one run, by name; the versions at which others went; up to which version the server
    has vouched that nothing is missing."""

    found: Mapping[str, Raw]
    gone: Mapping[str, int]
    mark: int


@dataclass
class _Entry:
    version: int
    found: Raw | None
    """None: gone."""
    run: ObjectName


@dataclass
class _Kind:
    mark: int = 0
    entries: dict[ObjectName, _Entry] = field(default_factory=dict)
    of_run: dict[ObjectName, set[ObjectName]] = field(default_factory=dict)

    def put(self, place: ObjectName, entry: _Entry) -> None:
        self.drop(place)
        self.entries[place] = entry
        self.of_run.setdefault(entry.run, set()).add(place)

    def drop(self, place: ObjectName) -> None:
        old = self.entries.pop(place, None)
        if old is not None:
            rest = self.of_run[old.run]
            rest.discard(place)
            if not rest:
                del self.of_run[old.run]


class RunStore:
    """Objects of runs whose namespaces begin with `namespace_prefix`. May be shared by threads."""

    def __init__(self, namespace_prefix: str) -> None:
        self._prefix = namespace_prefix
        self._lock = threading.Lock()
        self._kinds = {kind: _Kind() for kind in KINDS}
        self._keys: dict[ObjectName, JobKey] = {}

    # --- for the watches ---------------------------------------------------------------------------------------------

    def replace(self, kind: str, found: Iterable[Raw], version: str) -> set[JobKey]:
        """A whole list, as of `version`: it takes the place of everything known. Returns the runs that are in it, and
        those that were. `found` is read first, and may fail: then nothing changes."""
        fresh = _Kind(mark=version_of(version))
        slim = [slimmed(one) for one in found]
        with self._lock:
            known = set(self._kinds[kind].of_run)
            for one in slim:
                run = self._run_of(one)
                if run is not None:
                    entry = _Entry(version_of(one["metadata"]["resourceVersion"]), one, run)
                    fresh.put(object_name(one), entry)
            self._kinds[kind] = fresh
            return {self._keys[run] for run in known | set(fresh.of_run)}

    def take(self, kind: str, happened: str, found: Raw) -> JobKey | None:
        """One event (ADDED, MODIFIED, DELETED). Returns the run that it changed; None where it was known."""
        version, place = version_of(found["metadata"]["resourceVersion"]), object_name(found)
        with self._lock:
            known = self._kinds[kind]
            old = known.entries.get(place)
            if version <= known.mark or (old is not None and version <= old.version):
                return None
            run = self._run_of(found) or (old.run if old else None)
            if run is None:
                return None
            known.put(place, _Entry(version, None if happened == "DELETED" else slimmed(found), run))
            return self._keys[run]

    def vouch(self, kind: str, version: str) -> None:
        """A bookmark: everything up to `version` was reported. Raises `Expired` where that is less than was vouched
        for before: the server's history is another one now."""
        mark = version_of(version)
        with self._lock:
            known = self._kinds[kind]
            if mark < known.mark:
                raise Expired(f"The cluster's version of {kind} went back from {known.mark} to {mark}.")
            known.mark = mark
            for place in [one for one, entry in known.entries.items() if entry.found is None and entry.version <= mark]:
                known.drop(place)
            if kind == KINDS[0]:
                self._forget_runs()

    # --- for those who look ------------------------------------------------------------------------------------------

    def view(self, namespace: str, run: str) -> dict[str, KindView]:
        """What is known of one run, of all kinds at one moment."""
        with self._lock:
            return {kind: _view(known, (namespace, run)) for kind, known in self._kinds.items()}

    def mark(self, kind: str) -> int:
        with self._lock:
            return self._kinds[kind].mark

    def runs(self) -> set[JobKey]:
        """All runs of which there is anything."""
        with self._lock:
            return {self._keys[run] for known in self._kinds.values() for run in known.of_run}

    # --- parts -------------------------------------------------------------------------------------------------------

    def _run_of(self, found: Raw) -> ObjectName | None:
        """The run that it belongs to, which is noted; None where it is none of ours."""
        metadata = found["metadata"]
        labels, namespace = metadata.get("labels") or {}, str(metadata.get("namespace", ""))
        key = names.key_from_labels(labels)
        if key is None or names.RUN not in labels or not namespace.startswith(self._prefix):
            return None
        run = (namespace, str(labels[names.RUN]))
        self._keys[run] = key
        return run

    def _forget_runs(self) -> None:
        living = {run for known in self._kinds.values() for run in known.of_run}
        self._keys = {run: key for run, key in self._keys.items() if run in living}


def _view(known: _Kind, run: ObjectName) -> KindView:
    entries = {place[1]: known.entries[place] for place in known.of_run.get(run, ())}
    found = {name: one.found for name, one in entries.items() if one.found is not None}
    gone = {name: one.version for name, one in entries.items() if one.found is None}
    return KindView(found, gone, known.mark)


# --- what is kept of an object ----------------------------------------------------------------------------------------

_OF_POD_SPEC = ("nodeName",)
"""The rest is the same in all pods of a role, and stands in the run's record."""
_UNREAD = {
    "metadata": frozenset({"managedFields", "generateName", "finalizers", "selfLink"}),
    "spec": frozenset({"template", "selector"}),
    "status": frozenset({"hostIP", "hostIPs", "podIP", "podIPs", "qosClass"}),
}
"""Part → what is dropped of it."""
_STATUSES = ("containerStatuses", "initContainerStatuses")
_OF_CONTAINER = ("name", "state", "lastState", "ready", "restartCount")


def slimmed(found: Raw) -> Raw:
    """The same object, as far as it is read."""
    kept = {name: _part(name, value) for name, value in found.items()}
    if "containers" in (found.get("spec") or {}):
        kept["spec"] = {name: found["spec"][name] for name in _OF_POD_SPEC if name in found["spec"]}
    made: Raw = shared(kept)
    return made


def _part(name: str, value: Any) -> Any:
    if name not in _UNREAD or not isinstance(value, Mapping):
        return value
    rest = {one: inner for one, inner in value.items() if one not in _UNREAD[name]}
    for kind in _STATUSES:
        if name == "status" and rest.get(kind):
            rest[kind] = [{word: one[word] for word in _OF_CONTAINER if word in one} for one in rest[kind]]
    return rest
