"""Fetch what the cluster has of some runs: one list per kind for all of them together. Only reads.

Not here: what it means (`facts`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from yardmaster.engines.kubernetes import names
from yardmaster.engines.kubernetes.api import Api
from yardmaster.engines.kubernetes.facts import Seen, needs_events, observation_of
from yardmaster.engines.kubernetes.options import TaskOptions
from yardmaster.engines.kubernetes.rolefacts import newest_of
from yardmaster.ids import JobKey
from yardmaster.phases import ABSENT, Observation
from yardmaster.spec import Role

_AT_ONCE = 100
"""Runs per list: their names stand in the address."""
_REMOVED = "StoppedOutside"


class Reader:
    """May be shared by threads."""

    def __init__(self, api: Api, options: TaskOptions) -> None:
        self._api, self._options = api, options

    def observe(self, keys: Collection[JobKey]) -> dict[JobKey, Observation]:
        """An answer for every key."""
        found: dict[JobKey, Observation] = dict.fromkeys(keys, ABSENT)
        ordered = sorted(found)
        for start in range(0, len(ordered), _AT_ONCE):
            found.update(self._observe(ordered[start : start + _AT_ONCE]))
        return found

    def see(self, keys: Collection[JobKey]) -> dict[JobKey, Seen]:
        """What there is of each, without events."""
        owners = self._by_run("ConfigMap", keys)
        if not any(owners.values()):
            return {key: Seen(None) for key in keys}
        # The controllers before their pods: a pod that is gone from the second list may be in the first one's counts.
        jobs, sets, pods = (self._by_run(kind, keys) for kind in ("Job", "StatefulSet", "Pod"))
        return {
            key: Seen(next(iter(owners[key.name]), None), [*jobs[key.name], *sets[key.name]], pods[key.name])
            for key in keys
        }

    def newest_pod(self, key: JobKey, role: Role, index: int) -> dict[str, Any] | None:
        """The pod that is, or was last, this task."""
        labels = f"{names.RUN}={key.name},{names.ROLE}={role.value}"
        return newest_of(self._api.find("Pod", self._place([key]), labels)).get(index)

    def _observe(self, keys: Collection[JobKey]) -> dict[JobKey, Observation]:
        seen = self.see(keys)
        found = {key: observation_of(one) for key, one in seen.items()}
        held_up = [key for key, one in found.items() if needs_events(one)]
        if held_up:
            events = self._api.find("Event", self._place(held_up), fields="type=Warning")
            for key in held_up:
                found[key] = observation_of(replace(seen[key], events=_about(key, events)))
        return {**found, **self._again(seen, found)}

    def _again(self, seen: Mapping[JobKey, Seen], found: Mapping[JobKey, Observation]) -> dict[JobKey, Observation]:
        """What looks removed by others may have been released by us after its owner was read: read the owner again."""
        odd = [key for key, one in found.items() if any(task.reason == _REMOVED for task in one.tasks)]
        if not odd:
            return {}
        owners = self._by_run("ConfigMap", odd)
        return {key: observation_of(replace(seen[key], owner=next(iter(owners[key.name]), None))) for key in odd}

    def _by_run(self, kind: str, keys: Collection[JobKey]) -> dict[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = {key.name: [] for key in keys}
        for one in self._api.find(kind, self._place(keys), names.selector(keys)):
            found[one["metadata"]["labels"][names.RUN]].append(one)
        return found

    def _place(self, keys: Iterable[JobKey]) -> str:
        """Their namespace where it is one, else all."""
        places = {names.namespace_name(key.namespace_id, self._options) for key in keys}
        return places.pop() if len(places) == 1 else ""


def _about(key: JobKey, events: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Events of the run's objects: all are named after it."""
    return [one for one in events if (one.get("involvedObject") or {}).get("name", "").startswith(key.name)]
