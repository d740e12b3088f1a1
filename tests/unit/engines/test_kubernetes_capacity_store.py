"""What is kept of nodes and pods gives the same capacity as all of them would, in whatever order it is told."""

from __future__ import annotations

import json
import random
import tracemalloc

import pytest

from tests.unit.engines.kubernetes_objects import OPTIONS, capacity_of
from yardmaster.engines.base import Capacity
from yardmaster.engines.kubernetes.capacity.count import Count
from yardmaster.engines.kubernetes.capacity.holdings import node_as_counted
from yardmaster.engines.kubernetes.capacity.store import CapacityStore
from yardmaster.engines.kubernetes.client.errors import Expired

IMAGES = [{"names": [f"registry.example/{n}"] * 2, "sizeBytes": 1 << 30} for n in range(50)]


def node(name: str, version: int = 1, **spec: object) -> dict:
    metadata = {"name": name, "resourceVersion": str(version), "labels": {"pool": "a"}, "annotations": {"x": "y" * 999}}
    status = {
        "allocatable": {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "2", "rdma/hca": "1"},
        "conditions": [{"type": "Ready", "status": "True"}],
        "images": IMAGES,
    }
    return {"metadata": metadata, "spec": spec, "status": status}


def pod(name: str, version: int = 1, cpu: str = "500m", kind: str = "ReplicaSet", at: str = "a") -> dict:
    asked = {"resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}, "env": [{"name": "X", "value": "y" * 999}]}
    metadata = {"name": name, "namespace": "n", "resourceVersion": str(version), "ownerReferences": [{"kind": kind}]}
    first = {"resources": {"requests": {"cpu": "3"}}}
    spec = {"nodeName": at, "containers": [asked, asked], "initContainers": [first] if kind == "DaemonSet" else None}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Running"}}


def counted(store: CapacityStore) -> Capacity:
    return Count(OPTIONS).of(*store.known())


def test_little_is_kept_of_a_node_and_nothing_that_changes_all_the_time():
    kept = node_as_counted(node("a"))
    assert len(json.dumps(kept)) < 400
    later = node("a", 2)
    later["status"]["conditions"] = [
        {"type": "MemoryPressure", "status": "False", "lastHeartbeatTime": "2026-01-01T00:00:00Z"},
        {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"},
    ]
    assert node_as_counted(later) == kept


def test_a_pod_takes_a_few_hundred_bytes_of_the_room():
    store, number = CapacityStore(), 1000
    store.replace("Node", [node("a")], "1")
    told = [json.dumps(pod(f"pod-{at}", at + 2, at=f"node-{at % 50}")) for at in range(number)]
    store.take("Pod", "ADDED", json.loads(told[0]))
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for one in told:
            store.take("Pod", "ADDED", json.loads(one))
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(store.known()[1]) == number
    assert (after - before) / number < 600


@pytest.mark.parametrize("seed", range(30))
def test_events_in_any_order_and_however_often_end_in_the_newest_version(seed: int):
    chance = random.Random(seed)
    store = CapacityStore()
    store.replace("Node", [node("a")], "1")
    store.replace("Pod", [pod("old")], "1")
    events = [
        ("DELETED", pod("old", 2)),
        ("ADDED", pod("one", 3, cpu="1")), ("MODIFIED", pod("one", 5, cpu="2")),
        ("ADDED", pod("two", 4)), ("DELETED", pod("two", 6)),
    ]  # fmt: skip
    for happened, found in chance.sample(events * 2, len(events) * 2):
        store.take("Pod", happened, found)
    expected = capacity_of([node("a")], [pod("one", 5, cpu="2")], OPTIONS)
    assert counted(store) == expected
    store.vouch("Pod", "6")
    store.take("Pod", "ADDED", pod("two", 4))
    assert counted(store) == expected
    assert (store.mark("Pod"), store.mark("Node")) == (6, 1)


def test_a_list_takes_the_place_of_everything_and_history_never_goes_back():
    store = CapacityStore()
    store.take("Pod", "ADDED", pod("one", 3))
    store.replace("Pod", [pod("two", 8)], "9")
    assert len(store.known()[1]) == 1
    store.take("Pod", "MODIFIED", pod("three", 7))
    assert len(store.known()[1]) == 1, "older than the list"
    with pytest.raises(Expired):
        store.vouch("Pod", "8")
