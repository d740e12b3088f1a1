"""The namespace on the cluster: what lies around its pods, and when what is there no longer says so."""

from __future__ import annotations

import copy
import uuid

import pytest

from tests.unit.core.generators import make_spec
from yardmaster.engines.base import TaskAccess
from yardmaster.engines.kubernetes.namespaces import manifests as namespaces
from yardmaster.engines.kubernetes.namespaces.shaper import is_kept
from yardmaster.engines.kubernetes.render import manifests, names
from yardmaster.engines.kubernetes.render.node_pools import pools_from
from yardmaster.engines.kubernetes.render.options import TaskOptions
from yardmaster.errors import Misconfigured
from yardmaster.ids import JobKey
from yardmaster.job.spec import Resources
from yardmaster.queueing.ledger import Quota

ID = uuid.UUID(int=1 << 100)
NAME = names.namespace_name(ID, TaskOptions(image="tasks:1"))
OPTIONS = TaskOptions(image="tasks:1")
URL = "http://10.1.2.3:8080"
LABELS = {"app.kubernetes.io/managed-by": "yardmaster", "yardmaster/namespace": str(ID)}
FULL = Quota(cpu=4, memory=8 << 30, gpus=2, running_jobs=3)


def made(quota: Quota = FULL, url: str = URL, **options):
    chosen = TaskOptions(image="tasks:1", **options)
    objects = [*namespaces.base(ID, url, chosen), *namespaces.bounds(ID, quota, chosen)]
    return {f"{one['kind']}/{one['metadata']['name']}": one for one in objects}


def egress(url: str = URL, **options):
    return made(url=url, **options)["NetworkPolicy/tasks"]["spec"]["egress"]


def test_the_namespace_refuses_whatever_is_not_restricted():
    assert made()[f"Namespace/{NAME}"] == {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": NAME,
            "labels": {
                **LABELS,
                "pod-security.kubernetes.io/enforce": "restricted",
                "pod-security.kubernetes.io/audit": "restricted",
                "pod-security.kubernetes.io/warn": "restricted",
            },
        },
    }


def test_the_namespace_and_nothing_else_says_which_portal_made_it():
    signed = made(installation="main")
    labels = signed.pop(f"Namespace/{NAME}")["metadata"]["labels"]
    assert labels["yardmaster/installation"] == "main"
    assert not [one for one in signed.values() if "yardmaster/installation" in one["metadata"]["labels"]]


def test_pods_run_as_an_account_without_a_token():
    assert made()["ServiceAccount/tasks"] == {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "tasks", "namespace": NAME, "labels": LABELS},
        "automountServiceAccountToken": False,
    }
    key = JobKey(ID, uuid.UUID(int=2 << 100), 1)
    for one in manifests.Run.of(make_spec(), key, TaskAccess(URL, "t"), OPTIONS).workloads:
        pod = one["spec"]["template"]["spec"]
        assert (pod["serviceAccountName"], pod["automountServiceAccountToken"]) == ("tasks", False)


def test_the_clusters_quota_says_what_the_portals_does_and_bounds_the_number_of_objects():
    found = made()["ResourceQuota/yardmaster"]
    assert found["spec"]["hard"] == {
        "requests.cpu": "4",
        "limits.cpu": "4",
        "requests.memory": "8589934592",
        "limits.memory": "8589934592",
        "requests.nvidia.com/gpu": "2",
        "requests.ephemeral-storage": str(2000 * (20 << 30)),
        "limits.ephemeral-storage": str(2000 * (20 << 30)),
        "pods": "2000",
        "count/configmaps": "2000",
        "count/secrets": "2000",
        "count/services": "2000",
        "count/jobs.batch": "2000",
        "count/statefulsets.apps": "2000",
        "services.loadbalancers": "0",
        "services.nodeports": "0",
        "persistentvolumeclaims": "2000",
    }
    assert found["metadata"]["annotations"] == {"yardmaster/hard": ",".join(sorted(found["spec"]["hard"]))}


def test_unlimited_is_no_limit_on_the_cluster_either():
    hard = made(Quota())["ResourceQuota/yardmaster"]["spec"]["hard"]
    assert not [name for name in hard if "cpu" in name or "memory" in name or "gpu" in name]
    assert "max" not in made(Quota())["LimitRange/yardmaster"]["spec"]["limits"][0]


def test_another_gpu_is_counted_by_its_own_name():
    assert "requests.amd.com/gpu" in made(gpu_resource="amd.com/gpu")["ResourceQuota/yardmaster"]["spec"]["hard"]


def test_every_resource_with_a_limit_is_counted_by_its_own_name():
    hard = made(Quota(extended={"amd.com/gpu": 4, "rdma/hca": 2}))["ResourceQuota/yardmaster"]["spec"]["hard"]
    assert (hard["requests.amd.com/gpu"], hard["requests.rdma/hca"]) == ("4", "2")
    assert "requests.nvidia.com/gpu" not in hard


def test_without_gpus_there_is_no_other_accelerator_that_jobs_may_ask_for():
    may = ["amd.com/gpu", "nvidia.com/mig-1g.5gb", "rdma/hca", "vendor.example/*", "nvidia.com/gpu"]
    hard = made(Quota(gpus=0), extended_resources=may)["ResourceQuota/yardmaster"]["spec"]["hard"]
    of_devices = {name: hard[name] for name in hard if "/" in name and not name.startswith("count/")}
    names = ("amd.com/gpu", "nvidia.com/mig-1g.5gb", "nvidia.com/gpu")
    assert of_devices == {f"requests.{name}": "0" for name in names}


DEVICES = [{"name": name, "device": True, "node_selector": {"type": name}} for name in ("a100", "t4")]


@pytest.mark.parametrize(
    ("quota", "hard"),
    [
        (Quota(), None),
        (Quota(gpus=2), "2"),
        (Quota(gpus=2, extended={"device/a100": 4}), "6"),
        (Quota(gpus=0, extended={"device/a100": 4, "device/t4": 1}), "5"),
        (Quota(extended={"device/a100": 4}), None),
    ],
)
def test_devices_that_are_one_resource_of_the_cluster_are_bounded_together(quota, hard):
    found = made(quota, pools=pools_from(DEVICES))["ResourceQuota/yardmaster"]["spec"]["hard"]
    assert found.get("requests.nvidia.com/gpu") == hard
    assert "device" not in "".join(found)


def test_what_all_tasks_of_a_namespace_write_may_be_bounded_and_no_bound_of_one_is_none_of_all():
    hard = made(scratch_in_namespace="100Gi")["ResourceQuota/yardmaster"]["spec"]["hard"]
    assert hard["requests.ephemeral-storage"] == hard["limits.ephemeral-storage"] == str(100 << 30)
    assert "ephemeral-storage" not in str(made(scratch=""))


def test_a_container_that_says_nothing_gets_little_and_no_gpu():
    (limit,) = made()["LimitRange/yardmaster"]["spec"]["limits"]
    assert limit == {
        "type": "Container",
        "default": {"cpu": "1", "memory": "1073741824", "ephemeral-storage": str(20 << 30)},
        "defaultRequest": {"cpu": "0.1", "memory": "134217728", "ephemeral-storage": str(1 << 30)},
        "max": {"cpu": "4", "memory": "8589934592"},
    }


@pytest.mark.parametrize("quota", [Quota(cpu=0.05, memory=1 << 20), Quota(cpu=0, memory=0)])
def test_a_small_quota_has_no_default_that_is_larger(quota):
    (limit,) = made(quota)["LimitRange/yardmaster"]["spec"]["limits"]
    for resource in ("cpu", "memory"):
        amounts = [float(limit[one][resource]) for one in ("defaultRequest", "default", "max")]
        assert amounts == sorted(amounts)


def test_the_pod_that_copies_the_runner_asks_for_no_more_than_the_ledger_counts():
    """The ledger counts tasks; a pod counts as much as its largest init container."""
    options = TaskOptions(image="tasks:1", runner_image="runner:1", runner_path="/opt")
    tiny = make_spec(resources=Resources(cpu=0.01, memory=64 << 20))
    key = JobKey(ID, uuid.UUID(int=2 << 100), 1)
    for one in manifests.Run.of(tiny, key, TaskAccess(URL, "t"), options).workloads:
        first = one["spec"]["template"]["spec"]["initContainers"][0]["resources"]
        task = one["spec"]["template"]["spec"]["containers"][0]["resources"]
        for bound in ("requests", "limits"):
            assert first[bound] == {
                "cpu": "0.01",
                "memory": str(64 << 20),
                "ephemeral-storage": task[bound]["ephemeral-storage"],
            }


def test_nothing_comes_in_or_goes_out_but_what_is_named():
    assert made()["NetworkPolicy/default-deny"]["spec"] == {
        "podSelector": {},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [],
        "egress": [],
    }
    both = [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]
    dns = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}
    assert made()["NetworkPolicy/tasks"]["spec"] == {
        "podSelector": {},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [],
        "egress": [
            {"to": [dns], "ports": both},
            {"to": [{"ipBlock": {"cidr": "10.1.2.3/32"}}], "ports": [{"protocol": "TCP", "port": 8080}]},
        ],
    }


@pytest.mark.parametrize(
    ("url", "cidr", "port"),
    [
        ("http://10.1.2.3", "10.1.2.3/32", 80),
        ("https://10.1.2.3/yard", "10.1.2.3/32", 443),
        ("http://[fd00::1]:8080", "fd00::1/128", 8080),
    ],
)
def test_the_portal_is_reached_at_the_address_in_its_url(url, cidr, port):
    assert egress(url)[1] == {"to": [{"ipBlock": {"cidr": cidr}}], "ports": [{"protocol": "TCP", "port": port}]}


def test_a_portal_that_has_a_name_needs_an_address_from_the_operator():
    with pytest.raises(Misconfigured) as error:
        made(url="http://portal.example:8080")
    assert "portal_cidrs" in error.value.remedy
    cidrs = {"portal_cidrs": ("10.9.0.0/24",), "portal_port": 8443}
    assert egress("http://portal.example:8080", **cidrs)[1] == {
        "to": [{"ipBlock": {"cidr": "10.9.0.0/24"}}],
        "ports": [{"protocol": "TCP", "port": 8443}],
    }
    inside = egress("http://web.portal:80", portal_namespace="portal", portal_port=8080)[1]
    assert inside == {
        "to": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "portal"}}}],
        "ports": [{"protocol": "TCP", "port": 8080}],
    }


def test_what_the_operator_allows_besides_is_added_and_nothing_else():
    assert len(egress()) == 2
    assert egress(store_url="http://192.0.2.7:9000")[2] == {
        "to": [{"ipBlock": {"cidr": "192.0.2.7/32"}}],
        "ports": [{"protocol": "TCP", "port": 9000}],
    }
    named = egress(store_url="https://store.test", store_cidrs=("192.0.2.0/24",))[2]
    assert named == {"to": [{"ipBlock": {"cidr": "192.0.2.0/24"}}], "ports": [{"protocol": "TCP", "port": 443}]}
    with pytest.raises(Misconfigured, match=r"object store as https://store\.test"):
        egress(store_url="https://store.test")
    assert egress(allow_egress=("192.0.2.0/24",))[2] == {"to": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]}
    assert egress(dns_namespace="openshift-dns")[0]["to"][0]["namespaceSelector"]["matchLabels"] == {
        "kubernetes.io/metadata.name": "openshift-dns"
    }


@pytest.mark.parametrize(
    "wrong",
    [
        {"allow_egress": ["10.0.0.1/8"]},
        {"spark_cidrs": ["10.0.0.1/8"]},
        {"spark_namespace": "Spark"},
        {"portal_cidrs": ["portal.example"]},
        {"portal_namespace": "Not A Name"},
        {"dns_namespace": ""},
        {"portal_port": 70_000},
        {"most_pods": 0},
        {"installation": "of / us"},
        {"installation": "x" * 64},
    ],
)
def test_an_option_that_will_not_do_is_named(wrong):
    with pytest.raises(Misconfigured, match=next(iter(wrong))):
        TaskOptions.from_table({"image": "tasks:1", **wrong})


# --- comparing -------------------------------------------------------------------------------------------------------


def as_served(wanted):
    """As a server gives it back: with what is its own, amounts in its own words, and without what is empty."""
    live = copy.deepcopy(wanted)
    live["metadata"] |= {"uid": "u", "resourceVersion": "7", "managedFields": [{}], "creationTimestamp": "now"}
    live["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = NAME
    if live["kind"] == "ResourceQuota":
        live["spec"]["hard"] |= {"limits.cpu": "4000m", "limits.memory": "8Gi"}
        live["status"] = {"used": {}}
    if live["kind"] == "NetworkPolicy":
        live["spec"] = {name: value for name, value in live["spec"].items() if value != []}
    return live


def test_what_a_server_adds_is_no_difference():
    for one in made().values():
        assert is_kept(one, as_served(one)), one["kind"]


def deny_selects_less(live):
    live["spec"]["podSelector"] = {"matchLabels": {"app": "x"}}


def one_more_peer(live):
    live["spec"]["egress"].append({})


def wider_peer(live):
    live["spec"]["egress"][0]["to"][0]["namespaceSelector"] = {}


def all_speak(live):
    live["spec"]["ingress"] = [{"from": [{"podSelector": {}}]}]


def half_a_policy(live):
    live["spec"]["policyTypes"] = ["Ingress"]


def more_cpu(live):
    live["spec"]["hard"]["limits.cpu"] = "400"


def no_memory(live):
    del live["spec"]["hard"]["limits.memory"]


def a_limit_of_before(live):
    live["metadata"]["annotations"]["yardmaster/hard"] += ",requests.more"


def a_token(live):
    live["automountServiceAccountToken"] = True


def less_security(live):
    live["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "baseline"


def larger_container(live):
    live["spec"]["limits"][0]["max"]["cpu"] = "64"


def fewer_names(live):
    live["spec"]["selector"]["app"] = "mine"


@pytest.mark.parametrize(
    ("what", "edit"),
    [
        ("Service/tasks", fewer_names),
        ("NetworkPolicy/default-deny", deny_selects_less),
        ("NetworkPolicy/default-deny", all_speak),
        ("NetworkPolicy/tasks", all_speak),
        ("NetworkPolicy/tasks", one_more_peer),
        ("NetworkPolicy/tasks", wider_peer),
        ("NetworkPolicy/tasks", half_a_policy),
        ("ResourceQuota/yardmaster", more_cpu),
        ("ResourceQuota/yardmaster", no_memory),
        ("ResourceQuota/yardmaster", a_limit_of_before),
        ("ServiceAccount/tasks", a_token),
        (f"Namespace/{NAME}", less_security),
        ("LimitRange/yardmaster", larger_container),
    ],
)
def test_every_edit_that_loosens_a_bound_is_seen(what, edit):
    wanted = made()[what]
    live = as_served(wanted)
    edit(live)
    assert not is_kept(wanted, live)


def test_a_stricter_bound_of_the_clusters_administrators_stays():
    wanted = made()["ResourceQuota/yardmaster"]
    live = as_served(wanted)
    live["spec"]["hard"]["requests.storage"] = "1Gi"
    assert is_kept(wanted, live)


def test_kubeflow_4496_what_holds_a_namespace_up_is_named():
    live = {
        "metadata": {"deletionTimestamp": "now", "finalizers": ["example.org/keep"]},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {
            "conditions": [
                {"type": "NamespaceDeletionContentFailure", "status": "False", "message": "All content deleted"},
                {"type": "NamespaceFinalizersRemaining", "status": "True", "message": "x.example/y in 1 instances"},
            ]
        },
    }
    assert namespaces.what_holds_up(live) == (
        "Finalizers of the namespace itself: example.org/keep",
        "x.example/y in 1 instances",
    )
