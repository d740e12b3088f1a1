"""What a node is, for administrators: its state, what is left of it, and what its labels say of its GPUs. Pure.

Not here: what of it counts for jobs (`count`).
"""

from __future__ import annotations

from collections.abc import Mapping

from yardmaster.engines.base import Machine, MachineState
from yardmaster.engines.kubernetes.client.objects import Raw
from yardmaster.engines.kubernetes.render.node_pools import is_passing
from yardmaster.queueing.placement import Node
from yardmaster.queueing.resources import resources_of

_MODELS = (
    "nvidia.com/gpu.product",
    "amd.com/gpu.product-name",
    "cloud.google.com/gke-accelerator",
    "cloud.google.com/gke-tpu-accelerator",
    "k8s.amazonaws.com/accelerator",
    "gpu.nvidia.com/class",
)
"""Labels under which device plugins and clouds name the model of a node's accelerators, the most exact first."""
MOST_LABELS = 40


def machine_of(found: Raw, node: Node) -> Machine:
    """The node that `count` has counted as `node`."""
    labels: Mapping[str, str] = found["metadata"].get("labels") or {}
    left = node.left_beside(frozenset(one.job_id for one in node.bound))
    return Machine(
        name=node.name,
        state=state_of(found),
        total=node.total,
        free=resources_of({name: max(0, amount) for name, amount in left.items()}),
        bound=node.bound,
        model=next((labels[one] for one in _MODELS if labels.get(one)), ""),
        labels={name: labels[name] for name in sorted(labels)[:MOST_LABELS]},
        is_usable=node.takes is None or bool(node.takes),
    )


def state_of(node: Raw) -> MachineState:
    """READY: the scheduler would put something there now."""
    spec = node.get("spec", {})
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in node["status"].get("conditions") or ())
    if not ready:
        return MachineState.NOT_READY
    if spec.get("unschedulable"):
        return MachineState.CORDONED
    passing = any(is_passing(one) and one.get("effect") != "PreferNoSchedule" for one in spec.get("taints") or ())
    return MachineState.UNDER_PRESSURE if passing else MachineState.READY
