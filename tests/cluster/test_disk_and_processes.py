"""What one task takes of its node beyond memory and processors: disk is bounded, and so are processes."""

from __future__ import annotations

import json

import pytest

from tests.cluster.engine_on_cluster import ClusterHarness
from tests.cluster.reach import Cluster
from tests.contract.engine_harness import ACCESS, SMALL, has_phase, spec_of, task_in, wait_until
from yardmaster.engines.base import Probe
from yardmaster.engines.kubernetes import KubernetesEngine
from yardmaster.engines.kubernetes.probes.processes import MOST
from yardmaster.ids import JobKey
from yardmaster.job.spec import Role, RoleSpec, Strategy
from yardmaster.lifecycle.failures import verdict_for
from yardmaster.lifecycle.phases import TaskPhase

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(420)]

ALONE = {Role.WORKER: RoleSpec(1, SMALL)}
WORKER_FAILED = has_phase(Role.WORKER, 0, TaskPhase.FAILED)
MEASURED = 240.0
"""Seconds: a kubelet measures its pods' disk once a minute."""
WRITES = """
import os, time
with open(os.path.join(os.environ["HOME"], "much"), "wb") as file:
    for _ in range(96):
        file.write(os.urandom(1 << 20))
print("written", flush=True)
time.sleep(600)
"""

BEGINS_THREADS = """
import subprocess, sys, threading
threading.stack_size(65536)
gate, begun = threading.Event(), 0
try:
    while begun < 6000:
        threading.Thread(target=gate.wait, daemon=True).start()
        begun += 1
except RuntimeError as error:
    print("after", begun, "threads:", error)
    try:
        subprocess.run([sys.executable, "-c", "pass"], check=True)
    except OSError as refusal:
        print("and no process:", refusal)
gate.set()
sys.exit(begun >= 6000)
"""


@pytest.fixture
def narrow(on_cluster: ClusterHarness) -> KubernetesEngine:
    return on_cluster.new_engine(scratch="32Mi", scratch_request="1Mi")


def test_a_task_that_writes_more_than_it_may_fails_for_good_in_words_of_disk(
    on_cluster: ClusterHarness, narrow: KubernetesEngine, key: JobKey
):
    on_cluster.portal.orders(WRITES)
    narrow.submit(spec_of(Strategy.SINGLE, roles=ALONE, retries=3), key, ACCESS)
    task = task_in(wait_until(narrow, key, WORKER_FAILED, MEASURED), Role.WORKER, 0)
    assert task.reason == "ScratchExceeded"
    assert task.restarts <= 1, "its Job may make one more pod before anything looks at the first"
    verdict = verdict_for(task)
    assert "exceeded its disk limit" in verdict.message
    assert "exceeds the limit" in verdict.message
    assert "memory" not in verdict.message + verdict.remedy


def bounds_of_nodes(cluster: Cluster) -> set[int]:
    """What the kubelets say: an administrator may ask them."""
    configs = (f"/api/v1/nodes/{name}/proxy/configz" for name in cluster.names("nodes"))
    told = [json.loads(cluster.kubectl("get", "--raw", config)) for config in configs]
    return {int(one["kubeletconfig"].get("podPidsLimit", -1)) for one in told}


def test_what_a_pod_finds_of_the_bound_on_processes_is_what_the_kubelets_are_set_to(
    cluster: Cluster, on_cluster: ClusterHarness
):
    bounds = bounds_of_nodes(cluster)
    if len(bounds) > 1:
        pytest.skip(f"nodes have different bounds on processes: {bounds}")
    found = on_cluster.engine.probe(Probe.PROCESSES, ACCESS.portal_url)
    assert found.is_well == (0 < max(bounds) <= MOST), found.message
    assert ("nothing stopped it" in found.message) != found.is_well


def test_a_task_that_begins_threads_without_end_is_stopped_by_the_bound_and_takes_nothing_else_along(
    cluster: Cluster, on_cluster: ClusterHarness, key: JobKey
):
    if min(bounds_of_nodes(cluster)) <= 0:
        pytest.skip("the kubelets of this cluster set no podPidsLimit")
    on_cluster.portal.orders(BEGINS_THREADS)
    on_cluster.engine.submit(spec_of(Strategy.SINGLE, roles=ALONE, retries=0), key, ACCESS)
    done = has_phase(Role.WORKER, 0, TaskPhase.SUCCEEDED)
    wait_until(on_cluster.engine, key, done, MEASURED)
