"""What a cluster has for jobs: usable nodes only, less what others use, never less than nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.fakes.kubernetes_cluster import node
from tests.unit.engines.kubernetes_objects import KEY, OPTIONS, capacity_of
from yardmaster.engines.kubernetes.client.connection import connect
from yardmaster.engines.kubernetes.render.names import ROLE, labels, namespace_name
from yardmaster.engines.registry import engine_from
from yardmaster.errors import Misconfigured

GIB = 1 << 30
KUBERNETES = "yardmaster.engines.kubernetes.KubernetesEngine"


def pod_on(name, cpu="1", memory="1Gi", *, phase="Running", maker="ReplicaSet"):
    return {
        "metadata": {"labels": {}, "ownerReferences": [{"kind": maker}]},
        "spec": {"nodeName": name, "containers": [{"resources": {"requests": {"cpu": cpu, "memory": memory}}}]},
        "status": {"phase": phase},
    }


def task_on(name, cpu="1", role="worker", prefix=OPTIONS.namespace_prefix):
    """A pod of ours."""
    options = replace(OPTIONS, namespace_prefix=prefix)
    found = pod_on(name, cpu)
    found["metadata"] = {"namespace": namespace_name(KEY.namespace_id, options), "labels": {**labels(KEY), ROLE: role}}
    return found


def test_sums_over_nodes_and_the_most_of_one():
    found = capacity_of([node("a"), node("b", cpu="16", memory="8Gi")], [], OPTIONS)
    assert (found.total.cpu, found.total.memory) == (24, 40 * GIB)
    assert found.free == found.total
    assert (found.largest_task.cpu, found.largest_task.memory) == (16, 32 * GIB)


def test_what_others_use_is_not_free_and_our_own_is():
    pods = [pod_on("a", "500m"), task_on("a"), pod_on("a", phase="Succeeded"), pod_on("elsewhere")]
    found = capacity_of([node("a")], pods, OPTIONS)
    assert (found.total.cpu, found.free.cpu, found.free.memory) == (8, 7.5, 31 * GIB)
    assert found.largest_task.cpu == 8


def test_what_runs_on_every_node_no_task_can_ever_get():
    found = capacity_of([node("a")], [pod_on("a", "100m", "1Gi", maker="DaemonSet")], OPTIONS)
    assert (found.largest_task.cpu, found.largest_task.memory) == (7.9, 31 * GIB)
    assert found.total == found.free == found.largest_task
    pods = [pod_on(name, "100m", "1Gi", maker="DaemonSet") for name in ("a", "b")]
    found = capacity_of([node("a"), node("b")], [*pods, pod_on("a", "2")], OPTIONS)
    assert (found.total.cpu, found.total.memory) == (15.8, 62 * GIB), "a job of 16 cores never fits"
    assert found.free.cpu == 13.8


def test_a_node_that_is_overbooked_has_nothing_free():
    assert capacity_of([node("a")], [pod_on("a", "20")], OPTIONS).free.cpu == 0


def test_nodes_that_are_not_meant_for_tasks_do_not_count():
    tainted, other = node("tainted"), node("other")
    tainted["spec"]["taints"] = [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]
    nodes = [tainted, other]
    assert capacity_of(nodes, [], OPTIONS).total.cpu == 8
    tolerant = replace(OPTIONS, tolerations=({"key": "gpu", "operator": "Exists"},))
    assert capacity_of(nodes, [], tolerant).total.cpu == 16
    picky = replace(OPTIONS, node_selector={"pool": "training"})
    assert capacity_of(nodes, [], picky).total.cpu == 0
    other["metadata"]["labels"]["pool"] = "training"
    assert capacity_of(nodes, [], picky).total.cpu == 8


def test_a_node_that_takes_no_pods_for_now_is_waited_for():
    cordoned, away, pressed, other = (node(name) for name in ("cordoned", "away", "pressed", "other"))
    cordoned["spec"]["unschedulable"] = True
    cordoned["spec"]["taints"] = [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
    away["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    pressed["spec"]["taints"] = [{"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}]
    found = capacity_of([cordoned, away, pressed, other], [], OPTIONS)
    assert (found.total.cpu, found.free.cpu) == (32, 8)
    running = capacity_of([cordoned], [task_on("cordoned", cpu="3")], OPTIONS)
    assert running.free.cpu == 3, "the ledger subtracts what the job holds, and nothing is left"


def test_every_node_is_told_with_the_tasks_that_are_on_it():
    pods = [task_on("a", cpu="2"), task_on("a", cpu="1", role="ps"), pod_on("b", "500m"), task_on("a", prefix="other-")]
    a, b = capacity_of([node("a"), node("b")], pods, OPTIONS).nodes
    assert (a.name, a.total.cpu, a.free.cpu) == ("a", 8, 7), "another portal's tasks are strangers"
    assert [(one.job_id, one.role, one.resources.cpu) for one in a.bound] == [
        (KEY.job_id, "worker", 2),
        (KEY.job_id, "ps", 1),
    ]
    assert (b.free.cpu, b.bound) == (7.5, ())


def test_gpus_and_extended_resources_are_counted_by_their_names():
    one = node("a", **{"nvidia.com/gpu": "4", "rdma/hca": "1k", "hugepages-2Mi": "0", "ephemeral-storage": "95Gi"})
    total = capacity_of([one], [], OPTIONS).total
    assert total.gpus == 4
    assert dict(total.extended) == {"rdma/hca": 1000}


@pytest.mark.parametrize(("cpu", "cores"), [("8", 8), ("3920m", 3.92), ("1500000u", 1.5), ("250000000n", 0.25), (2, 2)])
def test_cores_as_kubernetes_writes_them(cpu, cores):
    assert capacity_of([node("a", cpu=cpu)], [], OPTIONS).total.cpu == cores


@pytest.mark.parametrize(
    ("memory", "size"),
    [("32Gi", 32 * GIB), ("16384Ki", 16 << 20), ("128974848000m", 128974848), ("1e3", 1000), ("1.2.3", 0), ("odd", 0)],
)
def test_memory_as_kubernetes_writes_it(memory, size):
    assert capacity_of([node("a", memory=memory)], [], OPTIONS).total.memory == size


def test_a_kubeconfig_that_is_not_there_is_the_operators_to_mend(tmp_path):
    with pytest.raises(Misconfigured, match="kubeconfig"):
        connect(str(tmp_path / "absent"))
    (tmp_path / "odd").write_text("clusters: 7\n")
    with pytest.raises(Misconfigured, match="kubeconfig"):
        connect(str(tmp_path / "odd"))


def test_the_setting_makes_the_engine_and_names_what_is_wrong_in_it(tmp_path):
    config = tmp_path / "config"
    config.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\n"
        "contexts: [{name: a, context: {cluster: a, user: a}}]\n"
        "clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]\nusers: [{name: a, user: {}}]\n"
    )
    setting = {"class": KUBERNETES, "options": {"kubeconfig": str(config), "tasks": {"image": "a"}}}
    assert engine_from("cluster", setting).name == "cluster"
    for tasks in ({"image": ""}, {"image": "a", "odd": 1}):
        with pytest.raises(Misconfigured, match=r"tasks\."):
            engine_from("cluster", {"class": KUBERNETES, "options": {"kubeconfig": str(config), "tasks": tasks}})
