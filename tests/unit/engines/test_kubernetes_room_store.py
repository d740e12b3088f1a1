"""What is kept of nodes and pods gives the same capacity as all of them would, in whatever order it is told."""

from __future__ import annotations

import json
import random

import pytest

from tests.unit.engines.kubernetes_objects import OPTIONS
from yardmaster.engines.kubernetes.capacity import capacity_of
from yardmaster.engines.kubernetes.room import RoomStore, slim_node, slim_pod
from yardmaster.engines.kubernetes.troubles import Expired

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


def test_less_is_kept_and_the_capacity_is_the_same():
    nodes = [node("a"), node("b", taints=[{"key": "gpu", "effect": "NoSchedule"}]), node("c", unschedulable=True)]
    pods = [pod("one"), pod("two", kind="DaemonSet"), pod("three", cpu="2", at="c")]
    slim_nodes, slim_pods = [slim_node(one) for one in nodes], [slim_pod(one) for one in pods]
    assert capacity_of(slim_nodes, slim_pods, OPTIONS) == capacity_of(nodes, pods, OPTIONS)
    assert len(json.dumps([slim_nodes, slim_pods])) < len(json.dumps([nodes, pods])) / 5


@pytest.mark.parametrize("seed", range(30))
def test_events_in_any_order_and_however_often_end_in_the_newest_version(seed: int):
    chance = random.Random(seed)
    store = RoomStore()
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
    assert capacity_of(*store.known(), OPTIONS) == expected
    store.vouch("Pod", "6")
    store.take("Pod", "ADDED", pod("two", 4))
    assert capacity_of(*store.known(), OPTIONS) == expected
    assert (store.mark("Pod"), store.mark("Node")) == (6, 1)


def test_a_list_takes_the_place_of_everything_and_history_never_goes_back():
    store = RoomStore()
    store.take("Pod", "ADDED", pod("one", 3))
    store.replace("Pod", [pod("two", 8)], "9")
    assert len(store.known()[1]) == 1
    store.take("Pod", "MODIFIED", pod("three", 7))
    assert len(store.known()[1]) == 1, "older than the list"
    with pytest.raises(Expired):
        store.vouch("Pod", "8")
