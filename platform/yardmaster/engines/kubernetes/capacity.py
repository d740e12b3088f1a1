"""What a cluster has for jobs: its usable nodes' allocatable resources, less what others' pods ask for. Pure.

Our own pods are not subtracted: the portal's ledger does that, also for those not made yet.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from yardmaster.engines.base import Capacity
from yardmaster.engines.kubernetes import names
from yardmaster.engines.kubernetes.options import TaskOptions
from yardmaster.spec import NOTHING, Resources

Raw = Mapping[str, Any]
_SCALES: Mapping[str, str | int] = {
    **{"": 1, "n": "1e-9", "u": "1e-6", "m": "1e-3", "k": 10**3},
    **{letter: 1000**power for power, letter in enumerate("MGTPE", 2)},
    **{f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", 1)},
}
_QUANTITY = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?)([numkMGTPE]|[KMGTPE]i|)", re.ASCII)


def capacity_of(nodes: Sequence[Raw], pods: Iterable[Raw], options: TaskOptions) -> Capacity:
    """Sums over the nodes that tasks may use, less what runs on every node, which no task can ever get: so `total` and
    `largest_task` hold what there is for jobs when all else has gone. `largest_task` is the most of each resource on
    any one node."""
    usable = {node["metadata"]["name"]: amounts(node["status"].get("allocatable", {}), options)
              for node in nodes if is_usable(node, options)}  # fmt: skip
    taken = dict.fromkeys(usable, NOTHING)
    everywhere = dict.fromkeys(usable, NOTHING)
    for pod in pods:
        node = pod["spec"].get("nodeName", "")
        if node in usable and not _is_ours(pod) and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
            asked = requests(pod, options)
            taken[node] += asked
            if any(one["kind"] == "DaemonSet" for one in pod["metadata"].get("ownerReferences") or ()):
                everywhere[node] += asked
    free = sum((_less(usable[name], taken[name]) for name in usable), NOTHING)
    machines = [_less(usable[name], everywhere[name]) for name in usable]
    return Capacity(total=sum(machines, NOTHING), free=free, largest_task=_most(machines))


def is_usable(node: Raw, options: TaskOptions) -> bool:
    """Whether the scheduler would put tasks there."""
    spec, labels = node.get("spec", {}), node["metadata"].get("labels") or {}
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in node["status"].get("conditions") or ())
    if not ready or spec.get("unschedulable") or any(labels.get(k) != v for k, v in options.node_selector.items()):
        return False
    return all(
        taint.get("effect") == "PreferNoSchedule" or any(_tolerates(one, taint) for one in options.tolerations)
        for taint in spec.get("taints") or ()
    )


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
    stands in somebody else's pod."""
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


def _is_ours(pod: Raw) -> bool:
    return (pod["metadata"].get("labels") or {}).get(names.MANAGED_BY) == names.US
