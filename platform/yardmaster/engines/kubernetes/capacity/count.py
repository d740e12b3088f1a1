"""What a cluster has for jobs: its usable nodes' allocatable resources, less what others' pods ask for, in sum and node
by node. Pure.

Our own pods are named beside that and not subtracted: the portal's ledger does that, also for those not made yet.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache, partial
from typing import NamedTuple

from yardmaster.engines.base import Capacity, Machine, MachineState
from yardmaster.engines.kubernetes.capacity.holdings import Held
from yardmaster.engines.kubernetes.capacity.machines import machine_of, state_of
from yardmaster.engines.kubernetes.client.objects import Amounts, Raw, amounts_of, sum_of
from yardmaster.engines.kubernetes.render import names
from yardmaster.engines.kubernetes.render.node_pools import selects
from yardmaster.engines.kubernetes.render.options import TaskOptions
from yardmaster.job.spec import Resources, Role
from yardmaster.queueing.packing import SERVICE, Kind
from yardmaster.queueing.placement import Bound, Node
from yardmaster.queueing.resources import Units, resources_of, units_of


class Count:
    """Counts the same cluster again and again: a node is counted again where it, or a pod on it, has changed.
    What comes out depends on the arguments, and never on what was counted before. May be shared by threads."""

    def __init__(self, options: TaskOptions) -> None:
        self._options = options
        self._known: Mapping[str, _Counted] = {}

    def of(self, nodes: Iterable[Raw], pods: Iterable[Held]) -> Capacity:
        """Over the nodes that tasks may use, less what runs on every node, which no task can ever get: so `total` and
        `largest_task` hold what there is for jobs when all else has gone. `largest_task` is the most of each resource
        on any one node. A node that takes no pods for now (cordoned, not ready, under pressure) counts in `total` and
        has nothing free: jobs wait for it."""
        found = self._all(nodes, pods)
        meant = tuple(one.node for one in found if one.node.takes is None or one.node.takes)
        totals = [one.in_all for one in meant]
        total = _sum(totals)
        return Capacity(
            total=resources_of(total),
            free=resources_of(_sum(units_of(one.free) for one in meant)),
            largest_task=resources_of({name: max(one.get(name, 0) for one in totals) for name in total}),
            nodes=meant,
        )

    def machines(self, nodes: Iterable[Raw], pods: Iterable[Held]) -> list[Machine]:
        """Each node as administrators see it, by name; also those that no task may use."""
        return sorted((machine_of(one.of[0], one.node) for one in self._all(nodes, pods)), key=lambda one: one.name)

    def _all(self, nodes: Iterable[Raw], pods: Iterable[Held]) -> Collection[_Counted]:
        on = defaultdict[str, list[Held]](list)
        for pod in pods:
            on[pod.node].append(pod)
        before = self._known
        found = {(name := _name(one)): self._counted(before.get(name), one, on[name]) for one in nodes}
        self._known = found
        return found.values()

    def _counted(self, known: _Counted | None, node: Raw, pods: list[Held]) -> _Counted:
        if known is not None and known.of == (node, pods):
            return known
        return _Counted((node, pods), _count(node, pods, self._options))


class _Counted(NamedTuple):
    of: tuple[Raw, list[Held]]
    node: Node


def _count(found: Raw, pods: Iterable[Held], options: TaskOptions) -> Node:
    """One node. What pods hold of it: others, among them those that every node has, and ours."""
    ours, others = list[Held](), list[Held]()
    for pod in pods:
        (ours if _is_ours(pod, options) else others).append(pod)
    has = amounts_of(found["status"].get("allocatable", {}))
    total = _less(has, sum_of(one.asked for one in others if one.is_everywhere))
    if state_of(found) is MachineState.READY:
        free = _less(has, sum_of(one.asked for one in others))
    else:
        free = sum_of(one.asked for one in ours)  # subtracted where it is known who still holds it
    called = partial(_called, gpu_resource=options.gpu_resource, devices=_devices(found, options))
    return Node(
        _name(found),
        called(tuple(total.items())),
        called(tuple(free.items())),
        tuple(Bound(one.key.job_id, one.role, called(one.asked)) for one in ours if one.key),
        _meant_for(found, options),
    )


def _is_ours(pod: Held, options: TaskOptions) -> bool:
    """Another portal's are in other namespaces: strangers, as everything else."""
    return pod.key is not None and pod.namespace == names.namespace_name(pod.key.namespace_id, options)


def _meant_for(node: Raw, options: TaskOptions) -> frozenset[Kind] | None:
    """Which tasks the operator's selectors, tolerations and taints allow there; None: all, as there are no pools, nor
    nodes that are set apart for services."""
    if not options.pools and options.service_pool is None:
        return None if selects(options.node_selector, options.tolerations, node) else frozenset()
    found = set()
    for kind in (*(role.value for role in Role), SERVICE):
        for is_accelerated in (False, True):
            pool = options.pool_without_device(kind, is_accelerated=is_accelerated)
            devices = [one for one in options.pools if one.device and is_accelerated]
            if any(selects(*options.chosen(one), node) for one in (pool, *devices)):
                found.add((kind, is_accelerated))
    return frozenset(found)


def _devices(node: Raw, options: TaskOptions) -> tuple[tuple[str, str], ...]:
    """What the cluster calls the node's devices, and how jobs ask for them, where the operator named them."""
    return tuple(
        (one.resource, one.asked_as) for one in options.pools if one.device and selects(*options.chosen(one), node)
    )


@lru_cache(maxsize=4096)
def _called(found: Amounts, gpu_resource: str, devices: tuple[tuple[str, str], ...]) -> Resources:
    """Under the names by which jobs ask; `devices`: those that the operator chose. What has none, such as storage and
    counts of pods, is not for jobs."""
    called = {gpu_resource: "gpus", "cpu": "cpu", "memory": "memory", **dict(devices)}
    return resources_of({called.get(name, name): amount for name, amount in found if "/" in name or name in called})


def _less(has: Amounts, taken: Units) -> dict[str, int]:
    """What is left; never less than nothing."""
    return {name: max(0, amount - taken.get(name, 0)) for name, amount in has}


def _sum(some: Iterable[Units]) -> dict[str, int]:
    return sum_of(tuple(one.items()) for one in some)


def _name(node: Raw) -> str:
    return str(node["metadata"]["name"])
