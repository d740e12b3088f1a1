"""What counts as an accelerator and as a device; and that a limit on GPUs bounds all of them."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.core.generators import NOW
from yardmaster.job.spec import Resources
from yardmaster.queueing.admission import Candidate, Code, EngineCapacity, Fit, Ledger, Quota, Usage, admit
from yardmaster.queueing.placement import Tasks
from yardmaster.queueing.resources import asks_for_one, is_accelerator, is_device

TEAM = uuid.UUID(int=1)
ACCELERATORS = (
    "gpus", "nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.5gb", "nvidia.com/mig-7g.80gb", "amd.com/gpu",
    "amd.com/cpx_nps4", "gpu.intel.com/i915", "gpu.intel.com/xe", "npu.intel.com/accel", "fpga.intel.com/af-1",
    "habana.ai/gaudi", "google.com/tpu", "cloud-tpus.google.com/v3", "aws.amazon.com/neuron",
    "aws.amazon.com/neuroncore", "huawei.com/Ascend910", "aliyun.com/gpu-mem", "volcano.sh/vgpu-memory",
    "k8s.amazonaws.com/vgpu", "vendor.example/npu", "xilinx.com/fpga-xilinx_u250", "vendor.example/vcuda-core",
)  # fmt: skip
OTHERS = (
    "cpu", "memory", "running_jobs", "rdma/hca", "rdma/hca_shared.v1", "hugepages-2Mi", "vendor.example/input",
    "example.com/license", "smarter-devices/fuse", "google.com/other", "aws.amazon.com/efa", "intel.com/sriov",
)  # fmt: skip


@pytest.mark.parametrize("name", ACCELERATORS)
def test_what_makers_and_those_who_share_devices_call_an_accelerator_is_one(name):
    assert is_accelerator(name)
    assert is_device(name)


@pytest.mark.parametrize("name", OTHERS)
def test_what_computes_nothing_is_none(name):
    assert not is_accelerator(name)
    assert not is_device(name)


def test_what_a_node_hands_out_is_a_device_and_no_accelerator():
    assert is_device("devices.kubevirt.io/kvm")
    assert not is_accelerator("devices.kubevirt.io/kvm")


def test_only_what_is_asked_for_counts():
    assert not asks_for_one(Resources().as_amounts())
    assert not asks_for_one(Resources(extended={"rdma/hca": 1}).as_amounts())
    assert asks_for_one(Resources(gpus=1).as_amounts())
    assert asks_for_one(Resources(extended={"nvidia.com/mig-1g.5gb": 1}).as_amounts())


_names = st.sampled_from(["amd.com/gpu", "nvidia.com/mig-1g.5gb", "rdma/hca", "vendor.example/license"])
_amounts = st.dictionaries(_names, st.integers(1, 4))
_quotas = st.builds(Quota, gpus=st.none() | st.integers(0, 4), extended=st.dictionaries(_names, st.integers(0, 6)))


def allowed(quota: Quota, name: str) -> float:
    """The rule in other words."""
    if name in quota.extended:
        return quota.extended[name]
    return 0 if is_accelerator(name) and quota.gpus is not None else float("inf")


@given(_quotas, _amounts, _amounts)
def test_what_is_admitted_never_holds_more_of_any_name_than_the_quota_lets(quota, held, asked):
    plenty = Resources(cpu=64, memory=1 << 40, gpus=8, extended=dict.fromkeys(("amd.com/gpu", "rdma/hca"), 20))
    plenty += Resources(0, 0, extended={"nvidia.com/mig-1g.5gb": 20, "vendor.example/license": 20})
    used, size = Resources(0, 0, extended=held), Resources(extended=asked)
    books = Ledger(EngineCapacity(plenty, plenty, plenty, used), {TEAM: quota}, {TEAM: Usage(used, 1)})
    one = Candidate(uuid.UUID(int=2), TEAM, NOW, 0, size, (Tasks("worker", size, 1),))
    fits = all(held.get(name, 0) + amount <= allowed(quota, name) for name, amount in asked.items())
    decision = admit(one, [], books, NOW)
    assert (decision.fit is Fit.FITS_NOW) == fits
    if any(amount > allowed(quota, name) for name, amount in asked.items()):
        assert decision.fit is Fit.NEVER_FITS
        assert decision.code is Code.EXCEEDS_MAX_QUOTA


@given(_quotas, _amounts)
def test_a_bound_that_lets_what_is_held_start_again_is_the_quota_everywhere_else(quota, held):
    bound = quota.at_least(Resources(0, 0, extended=held))
    for name in {*quota.extended, *held}:
        limit = allowed(quota, name)
        assert allowed(bound, name) == (limit if limit == float("inf") else max(limit, held.get(name, 0)))
    assert bound.gpus == quota.gpus
