"""What is kept of an object that a watch told: without what no fact is drawn from, and each word that many objects
share only once. Pure.

Of 10,000 pods all else would be most of the memory of every process that watches them. Not here: what is kept of nodes,
and of every pod for the room that it takes, which is less (`holdings`).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

Raw = Mapping[str, Any]

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
_LONGEST_WORD = 100
"""Characters. Longer texts are messages, or what people wrote: hardly ever the same twice."""


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


def shared(value: Any) -> Any:
    """A copy in which equal words are one object: names of fields, labels of a run, times of the same second."""
    if isinstance(value, str):
        return sys.intern(value) if len(value) <= _LONGEST_WORD else value
    if isinstance(value, Mapping):
        return {sys.intern(name): shared(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [shared(one) for one in value]
    return value
