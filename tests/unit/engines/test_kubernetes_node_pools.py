"""Pools of nodes: which tasks go where, and devices by the names that people choose."""

from __future__ import annotations

import pytest

from tests.fakes.kubernetes_cluster import node
from tests.unit.core.generators import make_spec
from tests.unit.engines.kubernetes_objects import KEY, capacity_of
from yardmaster.engines.kubernetes.render.options import TaskOptions
from yardmaster.engines.kubernetes.render.pods import pod_template
from yardmaster.errors import Misconfigured
from yardmaster.job.spec import Resources, Role
from yardmaster.queueing.placement import Board, Tasks

GI = 1 << 30
A100 = {
    "name": "a100-40gb",
    "label": "A100 40GB",
    "device": True,
    "node_selector": {"gpu": "a100"},
    "tolerations": [{"key": "gpu", "operator": "Exists"}],
    "priority_class": "dear",
    "image": "tasks:cuda",
}
T4 = {"name": "t4", "label": "T4", "device": True, "node_selector": {"gpu": "t4"}}
SERVERS = {"name": "servers", "roles": ["ps"], "node_selector": {"kind": "memory"}}
OPTIONS = TaskOptions.from_table({"image": "tasks:1", "priority_class": "usual", "pools": [A100, T4, SERVERS]})
TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


def labelled(name, labels, taints=(), **amounts):
    found = node(name, **amounts)
    found["metadata"]["labels"] = labels
    found["spec"]["taints"] = list(taints)
    return found


NODES = [
    labelled("large", {"gpu": "a100"}, [TAINT], **{"nvidia.com/gpu": "8"}),
    labelled("small", {"gpu": "t4"}, **{"nvidia.com/gpu": "2"}),
    labelled("plain", {}),
    labelled("memory", {"kind": "memory"}),
]


def pod_of(role, extended=None, gpus=0, options=OPTIONS):
    spec = make_spec(shape={Role.WORKER: 1, Role.PS: 1}, resources=Resources(1, GI, gpus, extended or {}))
    return pod_template(spec, KEY, role, "http://portal", options, {}, "{}")["spec"]


def test_a_device_is_asked_for_by_its_name_and_reaches_the_cluster_as_the_cluster_calls_it():
    pod = pod_of(Role.WORKER, {"device/a100-40gb": 2})
    assert pod["nodeSelector"] == {"gpu": "a100"}
    assert pod["tolerations"] == A100["tolerations"]
    assert pod["priorityClassName"] == "dear"
    assert pod["containers"][0]["image"] == "tasks:cuda"
    asked = pod["containers"][0]["resources"]["limits"]
    assert asked["nvidia.com/gpu"] == "2"
    assert not any(name.startswith("device/") for name in asked)
    assert "CUDA_VISIBLE_DEVICES" not in {one["name"] for one in pod["containers"][0]["env"]}


def test_parameter_servers_have_nodes_of_their_own_and_everything_else_is_as_without_pools():
    assert pod_of(Role.PS)["nodeSelector"] == {"kind": "memory"}
    plain = pod_of(Role.WORKER)
    assert "nodeSelector" not in plain
    assert (plain["priorityClassName"], plain["containers"][0]["image"]) == ("usual", "tasks:1")


def test_devices_are_counted_by_their_names_and_not_as_gpus():
    found = capacity_of(NODES, [], OPTIONS)
    assert found.total.gpus == 0
    assert dict(found.total.extended) == {"device/a100-40gb": 8, "device/t4": 2}


def test_what_others_hold_of_a_device_is_not_free():
    pod = {
        "metadata": {"labels": {}},
        "spec": {"nodeName": "large", "containers": [{"resources": {"requests": {"nvidia.com/gpu": "3"}}}]},
        "status": {"phase": "Running"},
    }
    assert dict(capacity_of(NODES, [pod], OPTIONS).free.extended) == {"device/a100-40gb": 5, "device/t4": 2}


@pytest.mark.parametrize(
    ("role", "extended", "fits"),
    [
        ("worker", {}, 3),  # nodes without the taint: 8 cores each, one of them with two T4
        ("ps", {}, 1),
        ("worker", {"device/a100-40gb": 4}, 2),
        ("worker", {"device/t4": 1}, 2),
        ("worker", {"device/none": 1}, 0),
    ],
)
def test_tasks_are_placed_on_the_nodes_of_their_pool_alone(role, extended, fits):
    board = Board.idle(capacity_of(NODES, [], OPTIONS).nodes)
    cpu = 3 if extended else 8
    tasks = (Tasks(role, Resources(cpu, GI, 0, extended), 9),)
    assert board.most(tasks) == fits


def test_gpus_without_a_name_go_to_the_pool_for_them():
    options = TaskOptions.from_table(
        {"image": "tasks:1", "pools": [{"name": "gpu", "accelerators": True, "node_selector": {"gpu": "t4"}}]}
    )
    assert pod_of(Role.WORKER, gpus=1, options=options)["nodeSelector"] == {"gpu": "t4"}
    assert "nodeSelector" not in pod_of(Role.WORKER, options=options)
    found = capacity_of(NODES, [], options)
    assert found.total.gpus == 2, "eight are behind a taint that no task tolerates"
    assert Board.idle(found.nodes).most((Tasks("worker", Resources(1, GI, 1), 9),)) == 2


def test_a_device_of_no_pool_may_not_be_asked_for():
    assert OPTIONS.allows("device/t4")
    assert not OPTIONS.allows("device/none")
    assert not TaskOptions.from_table({"image": "tasks:1", "extended_resources": ["*/*"]}).allows("device/t4")


@pytest.mark.parametrize(
    ("pools", "said"),
    [
        ({"name": "a"}, "pools is"),
        (["a"], "each is a table"),
        ([{"name": "A 100"}], "'A 100'"),
        ([{"name": "a", "colour": "red"}], r"pools\.a\.colour is no option"),
        ([{"name": "a"}], r"pools\.a\.device, accelerators or roles"),
        ([{"name": "a", "roles": ["boss"]}], "'boss'"),
        ([{"name": "a", "device": 1}], r"pools\.a\.device is 1"),
        ([{"name": "a", "device": True, "resource": "gpu"}], r"pools\.a\.resource is 'gpu'"),
        ([{"name": "a", "roles": ["ps"], "node_selector": ["x"]}], r"pools\.a\.node_selector"),
        ([{"name": "a", "roles": ["ps"], "tolerations": ["x"]}], r"pools\.a\.tolerations"),
        ([{"name": "a", "device": True, "label": "x" * 61}], r"pools\.a\.label"),
        ([{"name": "a", "roles": ["ps"]}, {"name": "a", "device": True}], "'a' twice"),
    ],
)
def test_a_pool_that_is_wrong_is_named(pools, said):
    with pytest.raises(Misconfigured, match=said):
        TaskOptions.from_table({"image": "tasks:1", "pools": pools})
