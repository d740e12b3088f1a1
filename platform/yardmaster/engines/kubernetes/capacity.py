"""What a cluster has for jobs: its usable nodes' allocatable resources, less what others' pods ask for, in sum and node
by node. Pure.

Our own pods are named beside that and not subtracted: the portal's ledger does that, also for those not made yet.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from yardmaster.engines.base import Capacity
from yardmaster.engines.kubernetes import names
from yardmaster.engines.kubernetes.node_pools import is_passing, pool_without_device, selects
from yardmaster.engines.kubernetes.options import TaskOptions
from yardmaster.packing import Kind
from yardmaster.placement import Bound, Node
from yardmaster.spec import NOTHING, Resources, Role

Raw = Mapping[str, Any]
_SCALES: Mapping[str, str | int] = {
    **{"": 1, "n": "1e-9", "u": "1e-6", "m": "1e-3", "k": 10**3},
    **{letter: 1000**power for power, letter in enumerate("MGTPE", 2)},
    **{f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", 1)},
}
NO_DEVICES: Mapping[str, str] = MappingProxyType({})
_QUANTITY = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?)([numkMGTPE]|[KMGTPE]i|)", re.ASCII)


def capacity_of(nodes: Sequence[Raw], pods: Iterable[Raw], options: TaskOptions) -> Capacity:
    """Over the nodes that tasks may use, less what runs on every node, which no task can ever get: so `total` and
    `largest_task` hold what there is for jobs when all else has gone. `largest_task` is the most of each resource on
    any one node. A node that takes no pods for now (cordoned, not ready, under pressure) counts in `total` and has
    nothing free: jobs wait for it."""
    found = {node["metadata"]["name"]: _NodeFacts(node, options) for node in nodes}
    for pod in pods:
        node = found.get(pod["spec"].get("nodeName", ""))
        if node is not None and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
            node.add(pod)
    meant = [one.node() for one in found.values() if one.takes is None or one.takes]
    return Capacity(
        total=sum((one.total for one in meant), NOTHING),
        free=sum((one.free for one in meant), NOTHING),
        largest_task=_most([one.total for one in meant]),
        nodes=tuple(meant),
    )


class _NodeFacts:
    """A node: what tasks it is meant for, what its devices are called, and what pods hold of it, of others, those that
    every node has, and ours."""

    def __init__(self, found: Raw, options: TaskOptions) -> None:
        self._found, self._options = found, options
        self.takes, self._devices = _meant_for(found, options), _devices(found, options)
        self._taken = self._everywhere = NOTHING
        self._bound: list[Bound] = []

    def add(self, pod: Raw) -> None:
        labels = pod["metadata"].get("labels") or {}
        asked = requests(pod, self._options, self._devices)
        key = names.key_from_labels(labels) if labels.get(names.MANAGED_BY) == names.US else None
        # Another portal's are in other namespaces: strangers, as everything else.
        if key is not None and pod["metadata"].get("namespace") == names.namespace_name(
            key.namespace_id, self._options
        ):
            self._bound.append(Bound(key.job_id, labels.get(names.ROLE, ""), asked))
            return
        self._taken += asked
        if any(one["kind"] == "DaemonSet" for one in pod["metadata"].get("ownerReferences") or ()):
            self._everywhere += asked

    def node(self) -> Node:
        has = amounts(self._found["status"].get("allocatable", {}), self._options, self._devices)
        ours = sum((one.resources for one in self._bound), NOTHING)  # subtracted where it is known who still holds it
        free = _less(has, self._taken) if takes_pods(self._found) else ours
        name = self._found["metadata"]["name"]
        return Node(name, _less(has, self._everywhere), free, tuple(self._bound), self.takes)


def _meant_for(node: Raw, options: TaskOptions) -> frozenset[Kind] | None:
    """Which tasks the operator's selectors, tolerations and taints let go there; None: all, as there are no pools."""
    if not options.pools:
        return None if selects(options.node_selector, options.tolerations, node) else frozenset()
    found = set()
    for role in Role:
        for is_accelerated in (False, True):
            pool = pool_without_device(role.value, options.pools, is_accelerated=is_accelerated)
            devices = [one for one in options.pools if one.device and is_accelerated]
            if any(selects(*options.chosen(one), node) for one in (pool, *devices)):
                found.add((role.value, is_accelerated))
    return frozenset(found)


def _devices(node: Raw, options: TaskOptions) -> Mapping[str, str]:
    """What the cluster calls the node's devices → as jobs ask for them, where the operator named them."""
    return {one.resource: one.asked_as for one in options.pools if one.device and selects(*options.chosen(one), node)}


def takes_pods(node: Raw) -> bool:
    """Whether the scheduler would put anything there now."""
    spec = node.get("spec", {})
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in node["status"].get("conditions") or ())
    passing = any(is_passing(one) and one.get("effect") != "PreferNoSchedule" for one in spec.get("taints") or ())
    return ready and not spec.get("unschedulable") and not passing


def requests(pod: Raw, options: TaskOptions, devices: Mapping[str, str] = NO_DEVICES) -> Resources:
    """What a pod asks for: its containers together, or its largest init container."""
    asked = sum((_of_container(one, options, devices) for one in pod["spec"].get("containers") or ()), NOTHING)
    first = [_of_container(one, options, devices) for one in pod["spec"].get("initContainers") or ()]
    return _most([asked, *first]) if first else asked


def amounts(found: Mapping[str, Any], options: TaskOptions, devices: Mapping[str, str] = NO_DEVICES) -> Resources:
    """A table of Kubernetes amounts as the portal counts them; `devices`: other names for some. Storage and counts of
    pods are not for jobs."""
    table = tuple((name, str(value)) for name, value in found.items())
    return _amounts(table, options.gpu_resource, tuple(devices.items()))


@lru_cache(maxsize=4096)
def _amounts(found: tuple[tuple[str, str], ...], gpu_resource: str, devices: tuple[tuple[str, str], ...]) -> Resources:
    """Ten thousand pods, and a thousand nodes, ask for and have few different tables."""
    table, called = dict(found), dict(devices)
    extended = {
        called.get(name, name): int(amount_of(value))
        for name, value in table.items()
        if "/" in name and (name in called or name != gpu_resource)
    }
    return Resources(
        cpu=round(float(amount_of(table.get("cpu", 0))), 3),
        memory=int(amount_of(table.get("memory", 0))),
        gpus=0 if gpu_resource in called else int(amount_of(table.get(gpu_resource, 0))),
        extended=extended,
    )


def _of_container(container: Raw, options: TaskOptions, devices: Mapping[str, str]) -> Resources:
    return amounts((container.get("resources") or {}).get("requests") or {}, options, devices)


def amount_of(text: object) -> Decimal:
    """A quantity as Kubernetes writes it: `1500m`, `32Gi`, `250000000n`, `1e3`. What is none counts as nothing: it
    stands in a stranger's pod."""
    found = _QUANTITY.fullmatch(str(text))
    if found is None:
        return Decimal(0)
    return Decimal(found[1]) * Decimal(_SCALES[found[2]])


def _less(one: Resources, other: Resources) -> Resources:
    """What is left; never less than nothing."""
    return Resources(
        cpu=max(0.0, round(one.cpu - other.cpu, 3)),
        memory=max(0, one.memory - other.memory),
        gpus=max(0, one.gpus - other.gpus),
        extended={name: max(0, amount - other.extended.get(name, 0)) for name, amount in one.extended.items()},
    )


def _most(some: Sequence[Resources]) -> Resources:
    """The largest of each."""
    names_ = {name for one in some for name in one.extended}
    return Resources(
        cpu=max((one.cpu for one in some), default=0.0),
        memory=max((one.memory for one in some), default=0),
        gpus=max((one.gpus for one in some), default=0),
        extended={name: max(one.extended.get(name, 0) for one in some) for name in names_},
    )
