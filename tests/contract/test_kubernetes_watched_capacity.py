"""Capacity on a cluster: counted without a list by a process that watches, and never by what a broken watch told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.contract.engine_harness import ACCESS, KubernetesHarness, lists_of, new_key, spec_of, wait_for
from tests.fakes.kubernetes_api import DOUBLED_AND_REORDERED, GONE_IN_THE_MIDDLE, HALF_AN_ANSWER
from yardmaster.engines.base import Capacity, Machine, MachineState
from yardmaster.engines.kubernetes import KubernetesEngine

THEIRS = ("pods", "elsewhere", "theirs")


@pytest.fixture
def harness() -> Iterator[KubernetesHarness]:
    made = KubernetesHarness(watch=True)
    yield made
    made.close()


def watched(harness: KubernetesHarness) -> KubernetesEngine:
    wait_for(lambda: lists_of(harness, harness.engine.capacity) == 0)
    return harness.engine


def put_theirs(harness: KubernetesHarness, cpu: str, phase: str = "Running", name: str = "theirs") -> None:
    """Another owner's pod on the first node."""
    store, place = harness.api.store, ("pods", "elsewhere", name)
    with store.lock:
        node = next(one for (plural, _, _), one in store.objects.items() if plural == "nodes")["metadata"]
        known = store.objects.get(place, {"metadata": {}})["metadata"]
        kept = {one: known[one] for one in ("uid", "creationTimestamp") if one in known}
        owner = {"kind": "Node", "uid": node["uid"]}
        container = {"name": "a", "resources": {"requests": {"cpu": cpu}}}
        pod = {
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "elsewhere", "ownerReferences": [owner], **kept},
            "spec": {"nodeName": node["name"], "containers": [container]},
            "status": {"phase": phase},
        }
        store.write(place, pod)


def of_another(harness: KubernetesHarness) -> Capacity:
    """As a process sees it that watches nothing."""
    return harness.another_process(watch=False).capacity()


def test_it_is_counted_without_a_list_and_by_one_watch_per_kind(harness: KubernetesHarness):
    engine = watched(harness)
    # What a watch has listed is believed a moment before its stream is open.
    wait_for(lambda: harness.api.count("watch") >= 2)
    assert lists_of(harness, lambda: [engine.capacity() for _ in range(50)]) == 0
    assert sorted(what for verb, what in harness.api.requests if verb == "watch") == ["nodes", "pods"]


def test_who_does_not_ask_does_not_watch_it(harness: KubernetesHarness):
    key = new_key()
    harness.engine.submit(spec_of(), key, ACCESS)
    harness.engine.observe([key])
    wait_for(lambda: harness.api.count("watch") >= 4)
    assert ("watch", "nodes") not in harness.api.requests
    assert of_another(harness).total.cpu > 0
    assert ("watch", "nodes") not in harness.api.requests


def test_what_others_take_and_give_back_is_heard(harness: KubernetesHarness):
    engine = watched(harness)
    empty = engine.capacity()
    put_theirs(harness, "1500m")
    wait_for(lambda: engine.capacity().free.cpu == empty.free.cpu - 1.5)
    assert engine.capacity() == of_another(harness)
    put_theirs(harness, "1500m", phase="Succeeded")
    wait_for(lambda: engine.capacity() == empty)
    put_theirs(harness, "2")
    wait_for(lambda: engine.capacity().free.cpu == empty.free.cpu - 2)
    harness.api.store.delete(THEIRS, 0)
    wait_for(lambda: engine.capacity() == empty)


def test_our_own_pods_are_the_ledgers_matter(harness: KubernetesHarness):
    engine = watched(harness)
    empty, key = engine.capacity(), new_key()
    engine.submit(spec_of(), key, ACCESS)
    harness.let_begin(key)
    put_theirs(harness, "1")
    wait_for(lambda: engine.capacity().free.cpu == empty.free.cpu - 1)


def test_a_node_that_is_closed_counts_no_more(harness: KubernetesHarness):
    engine = watched(harness)
    with harness.api.store.lock:
        nodes = [place for place in harness.api.store.objects if place[0] == "nodes"]
    for place in nodes:
        harness.api.store.merge(place, {"spec": {"unschedulable": True}})
    wait_for(lambda: engine.capacity().free.cpu == 0)
    wait_for(lambda: {one.state for one in engine.machines()} == {MachineState.CORDONED})
    assert all(one.free.cpu == 0 for one in engine.machines())


def in_order(machine: Machine) -> Machine:
    """With its tasks in an order that does not depend on who was heard of first."""
    return replace(machine, bound=tuple(sorted(machine.bound, key=lambda one: one.role)))


def test_machines_say_what_they_are_and_what_is_theirs(harness: KubernetesHarness):
    engine, key = watched(harness), new_key()
    with harness.api.store.lock:
        places = sorted(place for place in harness.api.store.objects if place[0] == "nodes")
    label = {"metadata": {"labels": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB", "zone": "a"}}}
    harness.api.store.merge(places[0], label)
    down = {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
    for place in places[1:]:
        harness.api.store.merge(place, down)
    engine.submit(spec_of(), key, ACCESS)
    harness.let_begin(key)
    wait_for(lambda: sum(len(one.bound) for one in engine.machines()) == 3)
    wait_for(lambda: engine.machines()[0].model == "NVIDIA-H100-80GB")
    wait_for(lambda: {one.state for one in engine.machines()[1:]} <= {MachineState.NOT_READY})
    first = engine.machines()[0]
    assert first.state is MachineState.READY
    assert first.labels["zone"] == "a"
    listed = harness.another_process(watch=False).machines()
    assert [in_order(one) for one in engine.machines()] == [in_order(one) for one in listed]


@pytest.mark.parametrize("mood", [410, 500, HALF_AN_ANSWER, GONE_IN_THE_MIDDLE, DOUBLED_AND_REORDERED])
@pytest.mark.parametrize("plural", ["nodes", "pods"])
def test_after_a_watch_that_went_wrong_it_is_as_it_was(harness: KubernetesHarness, mood, plural):
    engine = watched(harness)
    harness.api.refuse("watch", plural, mood, times=2)
    harness.api.end_watches()
    for number in range(3):
        put_theirs(harness, "1", name=f"theirs-{number}")
    wait_for(lambda: engine.capacity() == of_another(harness))
    wait_for(lambda: lists_of(harness, engine.capacity) == 0 and engine.capacity() == of_another(harness))


def test_while_a_watch_is_broken_or_forbidden_it_is_listed(harness: KubernetesHarness):
    engine = watched(harness)
    empty = engine.capacity()
    harness.api.refuse("watch", "nodes", 403, times=10_000)
    harness.api.end_watches()
    wait_for(lambda: lists_of(harness, engine.capacity) == 2)
    put_theirs(harness, "1")
    assert engine.capacity().free.cpu == empty.free.cpu - 1


def test_runs_are_told_from_the_watches_whether_room_may_be_watched_or_not(harness: KubernetesHarness):
    harness.api.refuse("watch", "nodes", 403, times=10_000)
    key = new_key()
    harness.engine.submit(spec_of(), key, ACCESS)
    harness.let_begin(key)
    harness.engine.capacity()
    wait_for(lambda: lists_of(harness, lambda: harness.engine.observe([key])) == 0)
