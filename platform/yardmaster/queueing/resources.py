"""What resources are: which of them count as an accelerator, told by name, and amounts in whole units. Pure; the
one place that knows vendors' names.

No cluster says of a resource what it is: all that there is of it is the name under which a device plugin counts it. The
names here are those that the plugins register, each as its maker documents it: NVIDIA's (`gpu`, shared and MIG ones),
AMD's (`gpu`, and its partitions), Intel's (GPU, NPU, Gaudi, FPGA), Google's and AWS's accelerators, and those of others
on the list that Kubernetes keeps of device plugins. Names of plugins that share GPUs have `gpu` in them, of any
maker.

Whole units are thousandths of a core, bytes and pieces: no sum of them is ever a little too large.

Not here: which of them jobs may ask for (the engine's options), and how many (`ledger.Quota`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from yardmaster.job.spec import Resources
from yardmaster.job.spec_spark import of_spark_cluster

DEVICE = "device/"
"""Begins the name of a device that the operator named, with a pool of nodes that have it: jobs ask for it and quotas
bound it by that name, of any maker."""
_OF_MAKERS = re.compile(
    r"""
      (?: nvidia | amd | xilinx | cambricon | iluvatar | mthreads | metax-tech | enflame | hygon | qualcomm )\.com/.+
    | (?: habana | graphcore | furiosa | rebellions | tenstorrent )\.ai/.+
    | (?: gpu | npu | vpu | fpga )\.intel\.com/.+
    | (?: [a-z0-9-]+\.)*google\.com/tpu.* | cloud-tpus\.google\.com/.+
    | aws\.amazon\.com/neuron.*
    | huawei\.com/ascend.*
    """,
    re.VERBOSE | re.IGNORECASE,
)
_SHARED = re.compile(r"gpu|vcuda|(?:^|[^a-z])(?:tpu|npu)(?:[^a-z]|$)", re.IGNORECASE)
"""What the names of GPUs in parts have in common: `vendor.example/vgpu-memory`, `vendor.example/gpu-mem`."""


def is_accelerator(resource: str) -> bool:
    """Whether the resource of this name computes: a GPU, a part of one, or a device of another kind made for it."""
    if of_spark_cluster(resource):
        return False  # whatever the cluster is called
    return resource.startswith(DEVICE) or bool(_OF_MAKERS.fullmatch(resource) or _SHARED.search(resource))


def is_device(resource: str) -> bool:
    """Whether a pattern is too wide a word for it: an accelerator, or what a domain `devices.…` hands out of a node
    (`devices.kubevirt.io/kvm`). Only its own full name means it."""
    return is_accelerator(resource) or resource.startswith("devices.")


def asks_for_one(amounts: Mapping[str, float]) -> bool:
    """Whether any of these amounts (`Resources.as_amounts`) is one of an accelerator."""
    return any(amount > 0 and is_accelerator(name) for name, amount in amounts.items())


Units = Mapping[str, int]


def to_units(amounts: Mapping[str, float]) -> dict[str, int]:
    """Whole units of each resource."""
    return {name: round(amount * 1000) if name == "cpu" else int(amount) for name, amount in amounts.items()}


def to_amount(resource: str, units: int) -> float:
    """What people call this many units of a resource."""
    return units / 1000 if resource == "cpu" else units


def units_of(resources: Resources) -> dict[str, int]:
    """Whole units of each of these, the named ones under their own names."""
    return to_units(resources.as_amounts())


def resources_of(units: Units) -> Resources:
    """The same the other way round. What is not among them is nothing."""
    rest = {name: one for name, one in units.items() if name not in ("cpu", "memory", "gpus")}
    return Resources(to_amount("cpu", units.get("cpu", 0)), units.get("memory", 0), units.get("gpus", 0), rest)
