"""Runs that a real scheduler has no place for, nodes that are closed and emptied, and what operators delete."""

from __future__ import annotations

import base64
import contextlib
import json
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from tests.cluster.account import Account, may, shaped
from tests.cluster.engine_on_cluster import ClusterHarness
from tests.cluster.reach import Cluster, wait_for
from tests.contract.engine_harness import ACCESS, spec_of, task_in, wait_until
from yardmaster.engines.kubernetes import KubernetesEngine
from yardmaster.engines.kubernetes.render import names
from yardmaster.engines.kubernetes.render.names import namespace_name
from yardmaster.errors import EngineNamespaceMissing
from yardmaster.ids import JobKey
from yardmaster.job.spec import Resources, Role, RoleSpec, Strategy, TrainingSpec
from yardmaster.lifecycle.phases import ABSENT, Observation, Phase, TaskPhase, Wanted
from yardmaster.lifecycle.plan import Move, Remembered, Step, TakeBack, Timing, Wait, plan
from yardmaster.queueing.ledger import Quota

pytestmark = pytest.mark.cluster

TINY = Resources(cpu=0.05, memory=128 << 20)
PATIENCE = 60.0
SECONDS = Timing(refusal_patience=timedelta(seconds=3))


def small(**changes) -> TrainingSpec:
    return spec_of(roles={Role.WORKER: RoleSpec(1, TINY), Role.PS: RoleSpec(1, TINY)}, retries=2, **changes)


def step_for(spec: TrainingSpec, phase: Phase, seen: Observation) -> Step:
    """What becomes of a job that was admitted ten seconds ago."""
    now = datetime.now(UTC)
    then = now - timedelta(seconds=10)
    known = Remembered(spec, phase, Wanted.RUN, then, then, then, submitted_at=then)
    return plan(known, seen, now, SECONDS)


@contextlib.contextmanager
def cordoned(cluster: Cluster) -> Iterator[None]:
    nodes = cluster.names("nodes")
    try:
        for node in nodes:
            cluster.kubectl("cordon", node)
        yield
    finally:
        for node in nodes:
            cluster.kubectl("uncordon", node)


@pytest.mark.alone  # takes more than half of the node
def test_half_a_gang_goes_back_to_the_queue_and_leaves_the_node(cluster: Cluster, on_cluster: ClusterHarness, key):
    """Two tasks that fit in sum on no node together, as where others took the room after it was counted."""
    engine = on_cluster.engine
    most = engine.capacity().largest_task
    two = {Role.WORKER: RoleSpec(2, Resources(cpu=round(most.cpu * 0.6, 2), memory=128 << 20))}
    spec = spec_of(Strategy.MULTI_WORKER_MIRRORED, roles=two)
    engine.submit(spec, key, ACCESS)
    seen = wait_until(
        engine,
        key,
        lambda seen: {one.phase for one in seen.tasks} == {TaskPhase.RUNNING, TaskPhase.PENDING} and seen.refused,
        PATIENCE,
    )
    assert "Insufficient cpu" in seen.refused.message
    begun = datetime.now(UTC)
    while isinstance(step := step_for(spec, Phase.STARTING, engine.observe([key])[key]), Wait):
        assert datetime.now(UTC) - begun < timedelta(seconds=30)
    assert isinstance(step, TakeBack)
    assert "Insufficient cpu" in step.why.message
    engine.clean_up(key)
    wait_for("the node is free", lambda: not pods_of(cluster, key), 30)
    assert engine.observe([key])[key] == ABSENT


@pytest.mark.alone  # closes the node for all others
def test_a_cordoned_node_is_said_and_a_drain_moves_a_task_that_says_so(cluster: Cluster, on_cluster: ClusterHarness):
    engine, key = on_cluster.new_engine(watch=True), on_cluster.new_key()
    try:
        with cordoned(cluster):
            engine.submit(small(), key, ACCESS)
            seen = wait_until(engine, key, lambda seen: seen.refused is not None, 20)
            assert "unschedulable" in seen.refused.message
            assert "cordoned or being drained" in seen.refused.message
        on_cluster.let_begin(key)
        with cordoned(cluster):
            on_cluster.make_stubborn(key, Role.WORKER, 0)
            worker = next(name for name in pods_of(cluster, key) if "-worker-" in name)
            evict(cluster, namespace_name(key.namespace_id, engine.options), worker)
            waits = wait_until(
                engine, key, lambda seen: task_in(seen, Role.WORKER, 0).reason == "Unschedulable", PATIENCE
            )
            assert task_in(waits, Role.WORKER, 0).restarts == 1
            assert waits.refused is None, "a job that had begun would lose its place"
        wait_until(engine, key, lambda seen: task_in(seen, Role.WORKER, 0).phase is TaskPhase.RUNNING, PATIENCE)
    finally:
        engine.clean_up(key)
        engine.close()


@pytest.mark.parametrize("what", ["secret", "statefulset", "job", "configmap"])
def test_what_an_operator_deletes_is_not_the_scripts_fault(
    cluster: Cluster, on_cluster: ClusterHarness, key: JobKey, what: str
):
    engine, spec = on_cluster.engine, small()
    engine.submit(spec, key, ACCESS)
    on_cluster.let_begin(key)
    name = {
        "secret": names.token_name(key),
        "statefulset": names.workload_name(key, Role.PS),
        "job": names.workload_name(key, Role.WORKER),
        "configmap": key.name,
    }[what]
    namespace = namespace_name(key.namespace_id, engine.options)
    cluster.kubectl("delete", what, name, "--namespace", namespace, "--wait=false")
    verdicts = []

    def is_over() -> bool:
        seen = engine.observe([key])[key]
        seen = seen if seen.exists or seen.message else Observation(False, message=engine.missing(key))
        step = step_for(spec, Phase.RUNNING, seen)
        verdicts.extend([step.verdict] if isinstance(step, Move) else [])
        return bool(verdicts)

    wait_for("a verdict", is_over, 30)
    assert verdicts[0].reason == "StoppedOutside"


def test_an_account_that_was_deleted_is_made_when_a_submission_meets_it(
    cluster: Cluster, on_cluster: ClusterHarness, key: JobKey
):
    engine = on_cluster.engine
    shaped(engine, key.namespace_id, Quota(), ACCESS.portal_url)
    namespace = namespace_name(key.namespace_id, engine.options)
    cluster.kubectl("delete", "serviceaccount", names.ACCOUNT, "--namespace", namespace)
    with pytest.raises(EngineNamespaceMissing, match="ServiceAccount tasks"):
        KubernetesEngine.submit(engine, small(), key, ACCESS)
    engine.submit(small(), key, ACCESS)
    on_cluster.let_begin(key)


def test_an_account_that_goes_after_the_submission_is_said(cluster: Cluster, on_cluster: ClusterHarness, key: JobKey):
    engine = on_cluster.engine
    engine.submit(small(), key, ACCESS)
    on_cluster.let_begin(key)
    namespace = namespace_name(key.namespace_id, engine.options)
    cluster.kubectl("delete", "serviceaccount", names.ACCOUNT, "--namespace", namespace)
    server = next(name for name in pods_of(cluster, key) if "-ps-" in name)
    cluster.kubectl("delete", "pod", server, "--namespace", namespace, "--grace-period=1")
    seen = wait_until(engine, key, lambda seen: task_in(seen, Role.PS, 0).reason == "NamespaceIncomplete", PATIENCE)
    assert "service account" in task_in(seen, Role.PS, 0).message
    shaped(engine, key.namespace_id, Quota(), ACCESS.portal_url)
    wait_until(engine, key, lambda seen: task_in(seen, Role.PS, 0).phase is TaskPhase.RUNNING, PATIENCE)


def let_read(cluster: Cluster, namespace: str, account: Account) -> None:
    """The right that docs/kubernetes.md names for secrets to pull images with."""
    home, _, name = account.options["bound_account"].partition("/")
    group, rule = "rbac.authorization.k8s.io", {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
    metadata = {"name": "pull-secrets", "namespace": namespace}
    role = {"kind": "Role", "metadata": metadata, "rules": [{**rule, "resourceNames": ["registry"]}]}
    binding = {
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": group, "kind": "Role", "name": metadata["name"]},
        "subjects": [{"kind": "ServiceAccount", "namespace": home, "name": name}],
    }
    for one in (role, binding):
        cluster.apply({"apiVersion": f"{group}/v1", **one})
    wait_for("the right to read", lambda: may(account, "get", "secrets/registry", namespace), 20)


def test_secrets_to_pull_with_are_copied_and_an_image_that_is_none_fails_at_once(
    cluster: Cluster, account: Account, on_cluster: ClusterHarness, namespace: str, key: JobKey
):
    put_secret(cluster, namespace, secrets.token_hex(4))
    let_read(cluster, namespace, account)
    more = {"image": "No Image", "image_pull_secrets": ["registry"], "pull_secrets_from": namespace}
    engine = on_cluster.new_engine(**more)
    shaped(engine, key.namespace_id, Quota(), ACCESS.portal_url)
    mine = namespace_name(key.namespace_id, engine.options)
    assert data_of(cluster, mine) == data_of(cluster, namespace)
    put_secret(cluster, namespace, "another")
    assert engine.shape(key.namespace_id, Quota(), ACCESS.portal_url) == ("ServiceAccount/tasks",)
    assert data_of(cluster, mine) == data_of(cluster, namespace)
    engine.submit(small(), key, ACCESS)
    seen = wait_until(engine, key, lambda seen: task_in(seen, Role.WORKER, 0).phase is TaskPhase.FAILED, PATIENCE)
    assert task_in(seen, Role.WORKER, 0).reason == "ImageInvalid"


def put_secret(cluster: Cluster, namespace: str, password: str) -> None:
    auths = {"auths": {"registry.example": {"username": "u", "password": password}}}
    data = {".dockerconfigjson": base64.b64encode(json.dumps(auths).encode()).decode()}
    secret = {"metadata": {"name": "registry", "namespace": namespace}, "type": "kubernetes.io/dockerconfigjson"}
    cluster.apply({"apiVersion": "v1", "kind": "Secret", **secret, "data": data})


def data_of(cluster: Cluster, namespace: str):
    return cluster.get("secret", "registry", namespace)["data"]


def pods_of(cluster: Cluster, key: JobKey) -> list[str]:
    found = cluster.kubectl("get", "pods", "--all-namespaces", "-l", f"{names.RUN}={key.name}", "-o", "name")
    return [one.removeprefix("pod/") for one in found.split()]


def evict(cluster: Cluster, namespace: str, pod: str) -> None:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": namespace}}
    path = f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction"
    cluster.kubectl("create", "--raw", path, "-f", "-", given=body)
