"""The portal's namespaces on a real cluster: what its quota refuses, what admission says, and that they go.

Not here: whether its NetworkPolicies hold (`test_reach_of_pods`).
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator

import pytest

from tests.cluster.account import Account, shaped
from tests.cluster.pods import pod
from tests.cluster.reach import Cluster, Refused, wait_for
from tests.contract.engine_harness import ACCESS, spec_of, wait_until
from yardmaster.engines.kubernetes import KubernetesEngine
from yardmaster.engines.kubernetes.render.names import namespace_name
from yardmaster.errors import Misconfigured, Unavailable
from yardmaster.ids import JobKey, new_id
from yardmaster.job.spec import Resources, Role, RoleSpec, Strategy
from yardmaster.lifecycle.phases import TaskPhase
from yardmaster.queueing.ledger import Quota

pytestmark = pytest.mark.cluster

URL = ACCESS.portal_url
TINY = Resources(cpu=0.05, memory=64 << 20)
QUOTA = Quota(cpu=0.5, memory=256 << 20, gpus=0)


@pytest.fixture
def engine(account: Account) -> KubernetesEngine:
    # The runner's own image for the init container as well, so that what that one asks for counts too.
    return account.engine(runner_image=account.cluster.probe_image, runner_path="/opt/yardmaster")


@pytest.fixture
def make(cluster: Cluster, engine: KubernetesEngine) -> Iterator:
    """Namespaces of the portal, shaped; gone afterwards."""
    made: list[uuid.UUID] = []

    def one(quota: Quota = QUOTA) -> tuple[uuid.UUID, str]:
        made.append(new_id())
        shaped(engine, made[-1], quota, URL)
        return made[-1], namespace_name(made[-1], engine.options)

    yield one
    for namespace_id in made:
        name = namespace_name(namespace_id, engine.options)
        cluster.remove_namespace(name)


def hard(cluster: Cluster, name: str) -> dict[str, str]:
    return cluster.get("resourcequota", "yardmaster", name)["spec"]["hard"]


def test_a_second_look_writes_nothing(cluster: Cluster, engine, make):
    """What a real server adds and rewrites (defaults, amounts) must not look like an edit."""
    for quota in (QUOTA, Quota(), Quota(cpu=1.5, memory=1_000_000_000, gpus=3), Quota(cpu=0, memory=0)):
        namespace_id, _ = make(quota)
        assert list(engine.shape(namespace_id, quota, URL)) == []


def test_what_somebody_changed_is_mended_and_a_lifted_limit_is_lifted(cluster: Cluster, engine, make):
    namespace_id, name = make()
    cluster.kubectl("delete", "networkpolicy", "default-deny", "--namespace", name)
    patch = json.dumps({"spec": {"hard": {"limits.cpu": "400"}}})
    cluster.kubectl("patch", "resourcequota", "yardmaster", "--namespace", name, "--type=merge", "-p", patch)
    for way in ("ingress", "egress"):
        open_to_all = json.dumps({"spec": {way: [{}]}})
        cluster.kubectl("patch", "networkpolicy", "tasks", "--namespace", name, "--type=merge", "-p", open_to_all)
    changed = engine.shape(namespace_id, QUOTA, URL)
    assert sorted(changed) == ["NetworkPolicy/default-deny", "NetworkPolicy/tasks", "ResourceQuota/yardmaster"]
    assert hard(cluster, name)["limits.cpu"] == "500m"
    assert not cluster.get("networkpolicy", "tasks", name)["spec"].get("ingress")
    assert list(engine.shape(namespace_id, Quota(memory=QUOTA.memory), URL)) == [
        "ResourceQuota/yardmaster",
        "LimitRange/yardmaster",
    ]
    assert "limits.cpu" not in hard(cluster, name)
    assert list(engine.shape(namespace_id, Quota(memory=QUOTA.memory), URL)) == []


def test_the_quota_refuses_what_is_beyond_it(cluster: Cluster, make):
    _, name = make()
    with pytest.raises(Refused, match="maximum memory usage per Container"):
        cluster.apply(pod(cluster, name, "large", "pass", memory="512Mi"), "--dry-run=server")
    for number in range(2):
        manifest = pod(cluster, name, f"half-{number}", "import time; time.sleep(60)", memory="100Mi")
        manifest["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "100m"
        cluster.apply(manifest)
    manifest["metadata"]["name"] = "too-much"
    with pytest.raises(Refused, match=r"exceeded quota: yardmaster.*memory"):
        cluster.apply(manifest)


def test_a_job_that_takes_all_of_the_quota_fits(engine, make):
    """The ledger admits up to the quota, so the cluster must take that much: init containers included."""
    namespace_id, _ = make(Quota(cpu=0.15, memory=192 << 20))
    key = JobKey(namespace_id, new_id(), 1)
    engine.submit(spec_of(roles={Role.WORKER: RoleSpec(2, TINY), Role.PS: RoleSpec(1, TINY)}), key, ACCESS)
    try:
        wait_until(engine, key, lambda seen: all(one.phase is TaskPhase.RUNNING for one in seen.tasks), 60)
    finally:
        engine.clean_up(key)


def test_a_container_that_says_nothing_gets_the_usual_and_no_gpu(cluster: Cluster, make):
    _, name = make(Quota(cpu=4, memory=8 << 30, gpus=2))
    manifest = pod(cluster, name, "silent", "pass")
    del manifest["spec"]["containers"][0]["resources"]
    given = cluster.apply(manifest, "--dry-run=server")["spec"]["containers"][0]["resources"]
    usual = (
        {"cpu": "1", "memory": str(1 << 30), "ephemeral-storage": str(20 << 30)},
        {"cpu": "100m", "memory": str(128 << 20), "ephemeral-storage": str(1 << 30)},
    )
    assert (given["limits"], given["requests"]) == usual


@pytest.mark.parametrize(
    "wish", [{"allowPrivilegeEscalation": True}, {"runAsUser": 0}, {"capabilities": {"add": ["NET_ADMIN"]}}]
)
def test_pods_that_are_not_restricted_are_refused(cluster: Cluster, make, wish):
    _, name = make()
    manifest = small(cluster, name, "bold", "pass")
    manifest["spec"]["containers"][0]["securityContext"] |= wish
    with pytest.raises(Refused, match="restricted"):
        cluster.apply(manifest, "--dry-run=server")


def test_every_strategy_passes_admission_in_a_shaped_namespace(cluster: Cluster, engine, make):
    namespace_id, name = make(Quota(cpu=4, memory=4 << 30, gpus=1))
    roles = {Role.CHIEF: RoleSpec(1, TINY), Role.WORKER: RoleSpec(2, TINY), Role.PS: RoleSpec(1, TINY)}
    spec = spec_of(Strategy.PARAMETER_SERVER, roles=roles)
    key = JobKey(namespace_id, new_id(), 1)
    for one in engine.preview(spec, key):
        if "template" in one.get("spec", {}):
            template = one["spec"]["template"]
            metadata = {"name": "shown", "namespace": name, "labels": template["metadata"]["labels"]}
            shown = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
            made = cluster.apply(shown, "--dry-run=server")
            assert made["spec"]["serviceAccountName"] == "tasks"
            assert not [volume for volume in made["spec"]["volumes"] if volume["name"].startswith("kube-api-access")]


def test_pods_are_let_through_to_nobody_until_their_run_has_a_policy(cluster: Cluster, make):
    """Who then reaches whom is tried in `test_reach_of_pods`."""
    _, name = make()
    for policy in ("default-deny", "tasks"):
        spec = cluster.get("networkpolicy", policy, name)["spec"]
        assert (spec["podSelector"], spec["policyTypes"]) == ({}, ["Ingress", "Egress"])
        assert not spec.get("ingress")
    assert not cluster.get("networkpolicy", "default-deny", name)["spec"].get("egress")


def small(cluster: Cluster, name: str, what: str, script: str, **environment: str):
    manifest = pod(cluster, name, what, script, environment=environment)
    manifest["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "100m"
    return manifest


@pytest.fixture
def staging(account: Account) -> KubernetesEngine:
    """Another portal on a copy of the database: the same ids, the same names."""
    return account.engine(installation="copy")


@pytest.fixture
def by_hand(cluster: Cluster, engine: KubernetesEngine) -> Iterator[tuple[uuid.UUID, str]]:
    """A namespace of a name that the portal will want, made by others."""
    namespace_id = new_id()
    name = namespace_name(namespace_id, engine.options)
    cluster.kubectl("create", "namespace", name)
    yield namespace_id, name
    cluster.remove_namespace(name)


def everything_in(cluster: Cluster, name: str) -> list[tuple[str, ...]]:
    """Of the namespace, and of all in it that a portal makes: what identifies it and what it says."""
    kinds = "configmaps,secrets,services,jobs,statefulsets,serviceaccounts,resourcequotas,limitranges,networkpolicies"
    inside = json.loads(cluster.kubectl("get", kinds, "--namespace", name, "-o", "json"))["items"]
    found = [json.loads(cluster.kubectl("get", "namespace", name, "-o", "json")), *inside]
    said = [(one["metadata"]["uid"], one["metadata"].get("labels"), one.get("spec"), one.get("data")) for one in found]
    return sorted(tuple(str(part) for part in one) for one in said)


class TestNamespacesOfOthers:
    def test_another_portal_on_a_copied_database_leaves_ours_as_it_is(self, cluster: Cluster, engine, staging, make):
        namespace_id, name = make()
        labels = {"yardmaster/installation": "the-first", "app.kubernetes.io/managed-by": "yardmaster"}
        cluster.kubectl("label", "namespace", name, "--overwrite", *(f"{k}={v}" for k, v in labels.items()))
        wait_for("what the cluster adds", lambda: "kube-root-ca.crt" in cluster.kubectl("get", "cm", "-n", name))
        before = everything_in(cluster, name)
        with pytest.raises(Misconfigured, match=name):
            staging.shape(namespace_id, Quota(cpu=1), URL)
        with pytest.raises(Misconfigured, match=name):
            staging.submit(spec_of(), JobKey(namespace_id, new_id(), 1), ACCESS)
        remains = staging.remove(namespace_id)
        assert not remains.gone
        assert "the-first" in remains.left[0]
        assert everything_in(cluster, name) == before

    def test_one_that_somebody_made_by_hand_is_taken_when_they_say_so(self, cluster: Cluster, staging, by_hand):
        namespace_id, name = by_hand
        with pytest.raises(Misconfigured, match="lacks this portal's labels") as refused:
            staging.shape(namespace_id, QUOTA, URL)
        command = refused.value.remedy[refused.value.remedy.index("kubectl label") :].split()
        cluster.kubectl(*command[1:])
        assert f"Namespace/{name}" in shaped(staging, namespace_id, QUOTA, URL)
        assert list(staging.shape(namespace_id, QUOTA, URL)) == []


class TestRemoval:
    def test_it_goes_with_its_pods_and_is_seen_to_be_gone(self, cluster: Cluster, engine, make):
        namespace_id, name = make()
        cluster.apply(small(cluster, name, "sleeper", "import time; time.sleep(600)"))
        assert not engine.remove(namespace_id).gone
        wait_for("the end of the namespace", lambda: engine.remove(namespace_id).gone, 90)
        with pytest.raises(Refused, match="not found"):
            cluster.kubectl("get", "namespace", name)
        shaped(engine, namespace_id, QUOTA, URL)

    def test_it_goes_with_a_job_that_would_make_its_pod_again(self, engine, make):
        """A namespace that ends takes its pods first, and a Job keeps its failed pod until it has made the next one."""
        namespace_id, _ = make()
        key = JobKey(namespace_id, new_id(), 1)
        one = RoleSpec(1, TINY)
        engine.submit(spec_of(Strategy.SINGLE, roles={Role.WORKER: one}, retries=2), key, ACCESS)
        wait_until(engine, key, lambda seen: seen.tasks[0].phase is TaskPhase.RUNNING, patience=60)
        wait_for("the end of the namespace", lambda: engine.remove(namespace_id).gone, 90)

    def test_kubeflow_4496_a_stuck_finalizer_is_named(self, cluster: Cluster, engine, make):
        namespace_id, name = make()
        metadata = {"name": "stubborn", "namespace": name, "finalizers": ["example.org/never"]}
        cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        wait_for("its name", lambda: any("example.org/never" in one for one in engine.remove(namespace_id).left), 60)
        with pytest.raises(Unavailable, match="being removed"):
            engine.shape(namespace_id, QUOTA, URL)
        free = json.dumps({"metadata": {"finalizers": None}})
        cluster.kubectl("patch", "configmap", "stubborn", "--namespace", name, "--type=merge", "-p", free)
        wait_for("the end of the namespace", lambda: engine.remove(namespace_id).gone, 90)
