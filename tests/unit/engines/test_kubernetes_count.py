"""Capacity that is counted again and again is what a first count of the same cluster says, whatever happened in
between."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from typing import Any

import pytest

from tests.fakes.kubernetes_cluster import node
from tests.unit.engines.kubernetes_objects import OPTIONS, capacity_of
from yardmaster.engines.base import Capacity
from yardmaster.engines.kubernetes.capacity.count import Count
from yardmaster.engines.kubernetes.capacity.store import CapacityStore
from yardmaster.engines.kubernetes.render import names
from yardmaster.engines.kubernetes.render.options import TaskOptions
from yardmaster.ids import JobKey

KEYS = [JobKey(uuid.UUID(int=at % 2 + 1), uuid.UUID(int=at + 10), 1) for at in range(4)]
NODES, PODS = ("a", "b", "c"), tuple(f"pod-{at}" for at in range(8))
POOLED = TaskOptions.from_table({
    "image": "tasks:1",
    "pools": [
        {"name": "t4", "device": True, "node_selector": {"gpu": "t4"}},
        {"name": "servers", "roles": ["ps"], "node_selector": {"kind": "memory"}},
    ],
})  # fmt: skip
TAINTS = [{"key": "gpu", "effect": "NoSchedule"}], [{"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}]


class Course:
    """A cluster to which things happen, and a process that hears of them."""

    def __init__(self, seed: int, options: TaskOptions) -> None:
        self._chance, self._options = random.Random(seed), options
        self._store, self._count = CapacityStore(), Count(options)
        self._there: dict[str, dict[tuple[str, str], Any]] = {"Node": {}, "Pod": {}}
        self._told: list[tuple[str, str, Any]] = []
        self._version = 0
        for kind in self._there:
            self._list(kind)

    def step(self) -> None:
        happens = [self._put] * 6 + [self._delete] * 2 + [self._tell_again, self._vouch, self._miss_and_list]
        kind = self._chance.choice(["Node", "Pod", "Pod"])
        self._chance.choice(happens)(kind)

    def counted(self) -> dict[str, Any]:
        return comparable(self._count.of(*self._store.known()))

    def expected(self) -> dict[str, Any]:
        return comparable(capacity_of(self._there["Node"].values(), self._there["Pod"].values(), self._options))

    def _put(self, kind: str) -> None:
        self._tell(kind, *self._change(kind))

    def _change(self, kind: str) -> tuple[str, Any]:
        made = self._node() if kind == "Node" else self._pod()
        place = made["metadata"].get("namespace", ""), made["metadata"]["name"]
        happened = "MODIFIED" if place in self._there[kind] else "ADDED"
        self._there[kind][place] = self._versioned(made)
        return happened, self._there[kind][place]

    def _delete(self, kind: str) -> None:
        if self._there[kind]:
            gone = self._there[kind].pop(self._chance.choice(sorted(self._there[kind])))
            self._tell(kind, "DELETED", self._versioned(gone))

    def _tell_again(self, kind: str) -> None:
        """As after a break: what was told before, in the wrong order."""
        for one in self._chance.sample(self._told, min(5, len(self._told))):
            self._store.take(*one)

    def _vouch(self, kind: str) -> None:
        self._store.vouch(kind, str(self._version))

    def _miss_and_list(self, kind: str) -> None:
        for _ in range(self._chance.randrange(4)):
            self._change(kind)
        if self._there[kind]:
            self._there[kind].pop(self._chance.choice(sorted(self._there[kind])))
        self._list(kind)

    def _list(self, kind: str) -> None:
        self._version += 1
        self._store.replace(kind, list(self._there[kind].values()), str(self._version))

    def _tell(self, kind: str, happened: str, found: Any) -> None:
        self._told.append((kind, happened, found))
        self._store.take(kind, happened, found)

    def _versioned(self, found: dict[str, Any]) -> dict[str, Any]:
        self._version += 1
        return {**found, "metadata": {**found["metadata"], "resourceVersion": str(self._version)}}

    def _node(self) -> dict[str, Any]:
        draw = self._chance.choice
        made = node(draw(NODES), cpu=draw(["4", "7910m"]), **{"nvidia.com/gpu": draw(["0", "2"])})
        made["metadata"]["labels"] = draw([{}, {"gpu": "t4"}, {"kind": "memory"}])
        made["spec"] = draw([{}, {}, {"unschedulable": True}, *({"taints": one} for one in TAINTS)])
        made["status"]["conditions"][0]["status"] = draw(["True", "True", "Unknown"])
        return made

    def _pod(self) -> dict[str, Any]:
        draw, key = self._chance.choice, self._chance.choice(KEYS)
        ours = {**names.labels(key), names.ROLE: draw(["worker", "ps"])}
        asked = [{"resources": {"requests": {"cpu": draw(["300m", "2"]), "nvidia.com/gpu": draw(["0", "1"])}}}]
        return {
            "metadata": {
                "name": draw(PODS),
                "namespace": "n",
                "labels": draw([ours, {}]),
                "ownerReferences": [{"kind": draw(["Job", "DaemonSet"])}],
                **({"namespace": names.namespace_name(key.namespace_id, OPTIONS)} if draw([True, True, False]) else {}),
            },
            "spec": {
                "nodeName": draw([*NODES, ""]),
                "containers": asked * draw([1, 2]),
                "initContainers": draw([None, [{"resources": {"requests": {"cpu": "3", "memory": "1Gi"}}}]]),
            },
            "status": {"phase": draw(["Running", "Running", "Pending", "Succeeded"])},
        }


def comparable(found: Capacity) -> dict[str, Any]:
    """In no order: lists and events tell in different ones."""
    nodes = {one.name: (one.total, one.free, Counter(one.bound), one.takes, one.in_all) for one in found.nodes}
    everything = frozenset(key.job_id for key in KEYS)
    left = {one.name: [dict(one.left_beside(some)) for some in (everything, everything - {KEYS[0].job_id})]
            for one in found.nodes}  # fmt: skip
    return {"sums": (found.total, found.free, found.largest_task), "nodes": nodes, "left": left}


@pytest.mark.parametrize("options", [OPTIONS, POOLED], ids=["plain", "pooled"])
@pytest.mark.parametrize("seed", range(40))
def test_after_any_course_of_events_the_count_is_that_of_a_first_look(seed: int, options: TaskOptions) -> None:
    course = Course(seed, options)
    for at in range(60):
        course.step()
        if at % 3 == 0:  # several events between two counts
            assert course.counted() == course.expected()


def test_a_node_to_which_nothing_happened_is_not_counted_again() -> None:
    count, nodes = Count(OPTIONS), [node("a"), node("b")]
    first = count.of(nodes, []).nodes
    again = count.of([node("a"), node("b", cpu="4")], []).nodes
    assert first[0] is again[0]
    assert again[1].total.cpu == 4
