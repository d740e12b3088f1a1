"""What a cluster has for jobs: its usable nodes' allocatable resources, less what others' pods ask for, in sum and node
by node. Pure.

Our own pods are named beside that and not subtracted: the portal's ledger does that, also for those not made yet.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

from yardmaster.engines.base import Capacity
from yardmaster.engines.kubernetes import names
from yardmaster.engines.kubernetes.options import TaskOptions
from yardmaster.placement import Bound, Node
from yardmaster.spec import NOTHING, Resources

Raw = Mapping[str, Any]
_SCALES: Mapping[str, str | int] = {
    **{"": 1, "n": "1e-9", "u": "1e-6", "m": "1e-3", "k": 10**3},
    **{letter: 1000**power for power, letter in enumerate("MGTPE", 2)},
    **{f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", 1)},
}
_PASSING = "node.kubernetes.io/"
"""Taints that Kubernetes itself sets and takes away: not ready, unreachable, unschedulable, disk pressure ...
(https://kubernetes.io/docs/reference/labels-annotations-taints/)."""
_QUANTITY = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?)([numkMGTPE]|[KMGTPE]i|)", re.ASCII)


def capacity_of(nodes: Sequence[Raw], pods: Iterable[Raw], options: TaskOptions) -> Capacity:
    """Over the nodes that tasks may use, less what runs on every node, which no task can ever get: so `total` and
    `largest_task` hold what there is for jobs when all else has gone. `largest_task` is the most of each resource on
    any one node. A node that takes no pods for now (cordoned, not ready, under pressure) counts in `total` and has
    nothing free: jobs wait for it."""
    held = _Held()
    for pod in pods:
        if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
            held.add(pod, options)
    found = [_node(one, held, options) for one in nodes if is_meant(one, options)]
    return Capacity(
        total=sum((one.total for one in found), NOTHING),
        free=sum((one.free for one in found), NOTHING),
        largest_task=_most([one.total for one in found]),
        nodes=tuple(found),
    )


class _Held:
    """What pods hold of each node: those of others, those that every node has, and ours."""

    def __init__(self) -> None:
        self.taken: defaultdict[str, Resources] = defaultdict(lambda: NOTHING)
        self.everywhere: defaultdict[str, Resources] = defaultdict(lambda: NOTHING)
        self.bound: defaultdict[str, list[Bound]] = defaultdict(list)

    def add(self, pod: Raw, options: TaskOptions) -> None:
        node, labels = pod["spec"].get("nodeName", ""), pod["metadata"].get("labels") or {}
        if not node:
            return
        asked = requests(pod, options)
        key = names.key_from_labels(labels) if labels.get(names.MANAGED_BY) == names.US else None
        # Another portal's are in other namespaces: strangers, as everything else.
        if key is not None and pod["metadata"].get("namespace") == names.namespace_name(key.namespace_id, options):
            self.bound[node].append(Bound(key.job_id, labels.get(names.ROLE, ""), asked))
            return
        self.taken[node] += asked
        if any(one["kind"] == "DaemonSet" for one in pod["metadata"].get("ownerReferences") or ()):
            self.everywhere[node] += asked


def _node(found: Raw, held: _Held, options: TaskOptions) -> Node:
    name, has = found["metadata"]["name"], amounts(found["status"].get("allocatable", {}), options)
    total, bound = _less(has, held.everywhere[name]), tuple(held.bound[name])
    ours = sum((one.resources for one in bound), NOTHING)  # is subtracted by whoever knows which jobs still hold it
    return Node(name, total, _less(has, held.taken[name]) if takes_pods(found) else ours, bound)


def is_meant(node: Raw, options: TaskOptions) -> bool:
    """Whether the node is for tasks, as the operator's selectors, tolerations and taints say."""
    labels = node["metadata"].get("labels") or {}
    if any(labels.get(name) != value for name, value in options.node_selector.items()):
        return False
    taints = [one for one in node.get("spec", {}).get("taints") or () if not one["key"].startswith(_PASSING)]
    return all(
        taint.get("effect") == "PreferNoSchedule" or any(_tolerates(one, taint) for one in options.tolerations)
        for taint in taints
    )


def takes_pods(node: Raw) -> bool:
    """Whether the scheduler would put anything there now."""
    spec = node.get("spec", {})
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in node["status"].get("conditions") or ())
    passing = any(
        one["key"].startswith(_PASSING) and one.get("effect") != "PreferNoSchedule" for one in spec.get("taints") or ()
    )
    return ready and not spec.get("unschedulable") and not passing


def _tolerates(toleration: Raw, taint: Raw) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("key") in (None, ""):
        return toleration.get("operator") == "Exists"
    if toleration["key"] != taint.get("key"):
        return False
    return toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", "")


def requests(pod: Raw, options: TaskOptions) -> Resources:
    """What a pod asks for: its containers together, or its largest init container."""
    asked = sum((_of_container(one, options) for one in pod["spec"].get("containers") or ()), NOTHING)
    first = [_of_container(one, options) for one in pod["spec"].get("initContainers") or ()]
    return _most([asked, *first])


def amounts(found: Mapping[str, Any], options: TaskOptions) -> Resources:
    """A table of Kubernetes amounts as the portal counts them. Storage and counts of pods are not for jobs."""
    extended = {
        name: int(amount_of(value)) for name, value in found.items() if "/" in name and name != options.gpu_resource
    }
    return Resources(
        cpu=round(float(amount_of(found.get("cpu", 0))), 3),
        memory=int(amount_of(found.get("memory", 0))),
        gpus=int(amount_of(found.get(options.gpu_resource, 0))),
        extended=extended,
    )


def _of_container(container: Raw, options: TaskOptions) -> Resources:
    return amounts((container.get("resources") or {}).get("requests") or {}, options)


def amount_of(text: object) -> Decimal:
    """A quantity as Kubernetes writes it: `1500m`, `32Gi`, `250000000n`, `1e3`. What is none counts as nothing: it
    stands in a stranger's pod."""
    return _amount_of(str(text))


@lru_cache(maxsize=4096)
def _amount_of(text: str) -> Decimal:
    """Ten thousand pods name few different amounts."""
    found = _QUANTITY.fullmatch(text)
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
