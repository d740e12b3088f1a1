"""What the cluster has of some runs: from the store that the watches fill, where that may be believed; else fetched,
one list per kind for all of them together. Only reads.

Not here: what it means (`facts`), and the rule of what may be believed (`basis`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from yardmaster.engines.kubernetes.capacity.holdings import Held
from yardmaster.engines.kubernetes.capacity.store import SELECTORS, CapacityStore
from yardmaster.engines.kubernetes.client.api import Api
from yardmaster.engines.kubernetes.client.objects import Raw, version_of
from yardmaster.engines.kubernetes.observe.basis import Basis, Memory, ended_in, may_be_believed
from yardmaster.engines.kubernetes.observe.facts import Seen, events_wanted, observation_of
from yardmaster.engines.kubernetes.observe.roles import newest_of
from yardmaster.engines.kubernetes.observe.store import KINDS
from yardmaster.engines.kubernetes.observe.watching import Watching
from yardmaster.engines.kubernetes.render import names
from yardmaster.engines.kubernetes.render.options import TaskOptions
from yardmaster.engines.kubernetes.render.volumes import is_of_claim
from yardmaster.ids import JobKey
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import ABSENT, Observation
from yardmaster.lifecycle.success import STOPPED_OUTSIDE

_AT_ONCE = 100
"""Runs per list: their names stand in the address."""
_ASK_AGAIN = 5.0
"""Seconds until the events of a run that is held up are asked for again, where it is not asked about at each look."""

_LONGEST_PAUSE = 60.0
_MOST_RUNS = 1000


@dataclass
class _Looked:
    """A direct look: of each kind, what was found of each run (by name), and the version as of which it was."""

    found: dict[str, dict[str, list[Raw]]] = field(default_factory=dict)
    listed_at: dict[str, int] = field(default_factory=dict)

    def seen(self, key: JobKey) -> Seen:
        """All of one run."""
        owner, jobs, sets, pods = (self.found.get(kind, {}).get(key.name, []) for kind in KINDS)
        return Seen(next(iter(owner), None), [*jobs, *sets], pods)

    def basis(self, key: JobKey, seen: Observation) -> Basis | None:
        """None for a run that is not there: it is never believed to be absent without a look."""
        if not seen.exists:
            return None
        return Basis(
            {kind: {_name(one): _version(one) for one in self.found[kind][key.name]} for kind in KINDS},
            self.listed_at,
            ended_in(seen),
        )


@dataclass(frozen=True)
class _Asked:
    events: Sequence[Mapping[str, Any]]
    until: float
    pause: float


class PendingEvents:
    """The events of runs whose tasks are pending without a reason: asked for again, later each time, while that lasts.
    They carry no labels, so that a watch would be one of all events of the cluster. `shortest` seconds pass between the
    first two questions of a run; 0: ask each time. May be shared by threads."""

    def __init__(self, shortest: float) -> None:
        self._shortest = shortest
        self._lock = threading.Lock()
        self._asked: dict[JobKey, _Asked] = {}

    def known(self, key: JobKey, now: float) -> Sequence[Mapping[str, Any]] | None:
        """The run's events as they were last; None: ask now."""
        with self._lock:
            asked = self._asked.get(key)
            return asked.events if asked is not None and now < asked.until else None

    def keep(self, key: JobKey, events: Sequence[Mapping[str, Any]], now: float) -> None:
        """Good for twice as long as those before."""
        with self._lock:
            before = self._asked.pop(key, None)
            pause = min(_LONGEST_PAUSE, before.pause * 2) if before else self._shortest
            self._asked[key] = _Asked(events, now + pause, pause)
            while len(self._asked) > _MOST_RUNS:
                del self._asked[next(iter(self._asked))]

    def forget(self, keys: Collection[JobKey]) -> None:
        """Their tasks are pending no more, or say why."""
        with self._lock:
            for key in keys:
                self._asked.pop(key, None)


class Reader:
    """`watching` may be left out: then every look is a direct one. May be shared by threads."""

    def __init__(self, api: Api, options: TaskOptions, watching: Watching | None = None) -> None:
        self._api, self._options, self._watching = api, options, watching
        self._memory = Memory()
        self._pending_events = PendingEvents(_ASK_AGAIN if watching else 0.0)

    def observe(self, keys: Collection[JobKey]) -> dict[JobKey, Observation]:
        """An answer for every key."""
        found: dict[JobKey, Observation] = dict.fromkeys(keys, ABSENT)
        if self._watching is not None:
            self._watching.start()
            found.update(self._from_watches(keys))
        ordered = sorted(key for key in found if not found[key].exists)
        for start in range(0, len(ordered), _AT_ONCE):
            found.update(self._observe(ordered[start : start + _AT_ONCE]))
        return found

    def capacity(self) -> tuple[list[Raw], list[Held]]:
        """The nodes, and what pods hold of them: from the watches, where they are live; else two lists."""
        if self._watching is not None:
            self._watching.start_capacity()
            if self._watching.knows_capacity():
                return self._watching.capacity.known()
        listed = CapacityStore()
        for kind, (labels, fields) in SELECTORS.items():
            listed.replace(kind, *self._api.find_paged(kind, "", labels, fields))
        return listed.known()

    def wrote(self, key: JobKey) -> None:
        """The run was changed by us, just now: what was seen before is not enough any more."""
        self._memory.wrote(key)

    def see(self, keys: Collection[JobKey]) -> dict[JobKey, Seen]:
        """What there is of each now, without events."""
        looked = self._look(keys)
        return {key: looked.seen(key) for key in keys}

    def newest_pod(self, key: JobKey, role: Role, index: int) -> dict[str, Any] | None:
        """The pod that is, or was last, this task."""
        labels = f"{names.RUN}={key.name},{names.ROLE}={role.value}"
        return newest_of(self._api.find("Pod", self._place([key]), labels)).get(index)

    # --- from the watches --------------------------------------------------------------------------------------------

    def _from_watches(self, keys: Collection[JobKey]) -> dict[JobKey, Observation]:
        """Of those runs whose watches may be believed."""
        if self._watching is None or not self._watching.is_live():
            return {}
        found: dict[JobKey, Observation] = {}
        seen: dict[JobKey, Seen] = {}
        for key in keys:
            basis = self._memory.basis(key)
            if basis is None:
                continue
            view = self._watching.store.view(self._place([key]), key.name)
            seen[key] = _Looked({kind: {key.name: [*view[kind].found.values()]} for kind in KINDS}).seen(key)
            observed = observation_of(seen[key])
            if may_be_believed(view, observed, basis):
                found[key] = observed
        return self._with_events(seen, found)

    # --- from the server ---------------------------------------------------------------------------------------------

    def _observe(self, keys: Collection[JobKey]) -> dict[JobKey, Observation]:
        looked_at, marks = self._memory.now(), self._marks()
        looked = self._look(keys)
        seen = {key: looked.seen(key) for key in keys}
        found = self._with_events(seen, {key: observation_of(one) for key, one in seen.items()})
        odd = [key for key, one in found.items() if seen[key].owner is not None and _lacks_something(one)]
        again = self._owners_again(looked, odd) if odd else looked
        found.update({key: observation_of(again.seen(key)) for key in odd})
        if self._watching is not None:
            for key in keys:
                basis = (again if key in odd else looked).basis(key, found[key])
                self._memory.remember(key, basis, looked_at)
            if any(version < marks[kind] for kind, version in looked.listed_at.items()):
                self._watching.relist()  # the server has lost a part of its history, and so has the store
        return found

    def _owners_again(self, looked: _Looked, keys: Collection[JobKey]) -> _Looked:
        """What looks removed by others may have been released by us after its owner was read: read the owner again."""
        owners, version = self._by_run("ConfigMap", keys)
        return _Looked({**looked.found, "ConfigMap": owners}, {**looked.listed_at, "ConfigMap": version})

    def _marks(self) -> dict[str, int]:
        return {} if self._watching is None else {kind: self._watching.store.mark(kind) for kind in KINDS}

    def _look(self, keys: Collection[JobKey]) -> _Looked:
        looked = _Looked()
        # The controllers before their pods: a pod that is gone from the second list may be in the first one's counts.
        for kind in KINDS:
            looked.found[kind], looked.listed_at[kind] = self._by_run(kind, keys)
            if not any(looked.found["ConfigMap"].values()):
                break
        return looked

    def _with_events(
        self, seen: Mapping[JobKey, Seen], found: Mapping[JobKey, Observation]
    ) -> dict[JobKey, Observation]:
        """The same, with the events of what is held up without saying why."""
        wanted = {key: fields for key, one in found.items() if (fields := events_wanted(one))}
        self._pending_events.forget(found.keys() - wanted.keys())
        if not wanted:
            return dict(found)
        now = time.monotonic()
        known = {key: self._pending_events.known(key, now) for key in wanted}
        if unknown := [key for key, events in known.items() if events is None]:
            kinds = sorted({fields for key in unknown for fields in wanted[key]})
            events = [one for fields in kinds for one in self._api.find("Event", self._place(unknown), fields=fields)]
            for key in unknown:
                known[key] = mine = _about(key, events, self._place([key]))
                self._pending_events.keep(key, mine, now)
        return {**found, **{key: observation_of(replace(seen[key], events=known[key] or ())) for key in wanted}}

    def _by_run(self, kind: str, keys: Collection[JobKey]) -> tuple[dict[str, list[Raw]], int]:
        found: dict[str, list[Raw]] = {key.name: [] for key in keys}
        items, version = self._api.find_at(kind, self._place(keys), names.selector(keys))
        for one in items:
            found[one["metadata"]["labels"][names.RUN]].append(one)
        return found, version_of(version)

    def _place(self, keys: Iterable[JobKey]) -> str:
        """Their namespace where it is one, else all."""
        namespaces = {names.namespace_name(key.namespace_id, self._options) for key in keys}
        return namespaces.pop() if len(namespaces) == 1 else ""


def _lacks_something(found: Observation) -> bool:
    """Whether a workload is gone that was not released."""
    return not found.exists or any(task.reason == STOPPED_OUTSIDE for task in found.tasks)


def _name(found: Raw) -> str:
    return str(found["metadata"]["name"])


def _version(found: Raw) -> int:
    return version_of(found["metadata"]["resourceVersion"])


def _about(key: JobKey, events: Iterable[Mapping[str, Any]], namespace: str) -> list[Mapping[str, Any]]:
    """Events of the run's objects, which are all named after it, and of the volumes of its namespace."""
    return [
        one
        for one in events
        if (of := one.get("involvedObject") or {}).get("name", "").startswith(key.name)
        or (is_of_claim(one) and of.get("namespace") == namespace)
    ]
