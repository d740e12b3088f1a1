"""The portal's account on the fake API server: with the rights that deploy/kubernetes gives it, and no other."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from tests.contract.engine_harness import (
    ACCESS,
    BOUND,
    SMALL,
    KubernetesHarness,
    new_key,
    spec_of,
    wait_for,
    wait_until,
)
from tests.fakes.kubernetes_rights import shipped
from yardmaster.engines.kubernetes import KubernetesEngine
from yardmaster.engines.kubernetes.client.api import Api
from yardmaster.engines.kubernetes.client.connection import connect_to
from yardmaster.engines.kubernetes.render import names
from yardmaster.errors import EngineNamespaceMissing, Misconfigured, Unavailable
from yardmaster.ids import JobKey
from yardmaster.job.spec import Role, RoleSpec, Strategy, TrainingSpec
from yardmaster.job.volumes import VolumeKind
from yardmaster.lifecycle.phases import TaskPhase
from yardmaster.queueing.ledger import Quota

SOON = timedelta(seconds=1)
COORDINATED = {role: RoleSpec(1, SMALL) for role in (Role.CHIEF, Role.WORKER, Role.PS)}


@pytest.fixture
def harness() -> Iterator[KubernetesHarness]:
    made = KubernetesHarness(volume_class="shared", **BOUND)
    yield made
    made.close()


@pytest.fixture
def key() -> JobKey:
    return new_key()


def of(harness: KubernetesHarness, key: JobKey) -> str:
    """The cluster's namespace."""
    return names.namespace_name(key.namespace_id, harness.engine.options)


def run(harness: KubernetesHarness, key: JobKey, spec: TrainingSpec) -> None:
    harness.engine.submit(spec, key, ACCESS)
    harness.let_begin(key)


def test_the_rights_that_are_shipped_are_those_that_are_used_and_no_other(harness: KubernetesHarness, key: JobKey):
    with pytest.raises(Unavailable, match="just created"):
        harness.engine.shape(key.namespace_id, Quota(), ACCESS.portal_url)
    harness.engine.shape(key.namespace_id, Quota(), ACCESS.portal_url)
    change_what_the_rights_are_about(harness, key)
    harness.engine.shape(key.namespace_id, Quota(), ACCESS.portal_url)
    for size in (1, 2):
        harness.engine.keep_volumes(key.namespace_id, {VolumeKind.DATA: size})
    harness.engine.keep_volumes(key.namespace_id, {})
    harness.engine.check_volumes()
    live_through_everything(harness, key)
    leave_a_job(harness, key)
    harness.engine.remove(key.namespace_id)
    used = {(verb.replace("dry-run", "patch"), plural) for verb, plural in harness.api.requests}
    applied = {plural for verb, plural in used if verb == "patch"}
    assert granted() == used | {("create", plural) for plural in applied} | {("bind", "clusterroles")}


def granted() -> set[tuple[str, str]]:
    """(verb, resource) of every rule that is shipped; no wildcard anywhere, and nothing but reading and the making of
    namespaces bound everywhere."""
    rights = shipped()
    pairs = set().union(*rights.roles.values())
    assert not any("*" in word for pair in pairs for word in pair)
    more = {(verb, what) for verb, what in rights.everywhere if verb not in ("list", "watch")}
    assert more == {
        ("get", "namespaces"),
        ("get", "storageclasses"),
        ("create", "namespaces"),
        ("get", "rolebindings"),
        ("create", "rolebindings"),
        ("bind", "clusterroles"),
    }
    assert "secrets" not in {what for _, what in rights.everywhere}
    return pairs


def change_what_the_rights_are_about(harness: KubernetesHarness, key: JobKey) -> None:
    """The namespace is edited, and the binding in it."""
    name = of(harness, key)
    labels = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}}
    harness.api.store.merge(("namespaces", "", name), labels)
    harness.api.store.merge(("rolebindings", name, names.US), {"subjects": []})
    with pytest.raises(Unavailable, match="just created"):
        harness.engine.shape(key.namespace_id, Quota(), ACCESS.portal_url)


@pytest.mark.parametrize("gone", ["namespaces", "rolebindings"])
def test_without_its_rights_a_namespace_is_missing_and_made_anew(harness: KubernetesHarness, key: JobKey, gone: str):
    """They are bound in it, so that the server speaks of them where namespace or binding is gone."""
    harness.engine.submit(spec_of(), key, ACCESS)
    name, other = of(harness, key), JobKey(key.namespace_id, new_key().job_id, 1)
    harness.api.store.delete((gone, "", name) if gone == "namespaces" else (gone, name, names.US))
    with pytest.raises(EngineNamespaceMissing):
        KubernetesEngine.submit(harness.engine, spec_of(), other, ACCESS)
    harness.engine.submit(spec_of(), other, ACCESS)
    harness.let_begin(other)


def test_a_right_that_is_missing_in_a_namespace_that_is_there_is_the_operators_matter(
    harness: KubernetesHarness, key: JobKey
):
    harness.engine.submit(spec_of(), key, ACCESS)
    harness.api.rights.roles["yardmaster-tasks"].discard(("patch", "jobs"))
    with pytest.raises(Misconfigured, match=r"cannot patch resource \"jobs\""):
        harness.engine.submit(spec_of(), JobKey(key.namespace_id, new_key().job_id, 1), ACCESS)


def test_a_namespace_that_the_portal_may_not_make_is_asked_for_and_used_when_it_is_there(
    harness: KubernetesHarness, key: JobKey
):
    harness.api.rights.everywhere -= harness.api.rights.roles["yardmaster-namespaces"]
    engine = KubernetesEngine(tasks={"image": "tasks:1"}, api=Api(connect_to(harness.api.url)))
    with pytest.raises(Misconfigured, match="may not make it") as refused:
        engine.shape(key.namespace_id, Quota(), ACCESS.portal_url)
    name = of(harness, key)
    words = refused.value.remedy.partition(f"kubectl label namespace {name} ")[2]
    labels = dict(word.split("=") for word in words.split())
    harness.api.store.write(
        ("namespaces", "", name), {"kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    )
    binding = {"metadata": {"name": "by-hand"}, "roleRef": {"name": "yardmaster-tasks"}}
    harness.api.store.write(("rolebindings", name, "by-hand"), binding)
    assert len(engine.shape(key.namespace_id, Quota(), ACCESS.portal_url)) == 6
    engine.submit(spec_of(), key, ACCESS)
    harness.let_begin(key)


def test_a_namespace_whose_rights_went_first_is_still_removed(harness: KubernetesHarness, key: JobKey):
    """The cluster deletes what is in a namespace in its own order."""
    harness.engine.submit(spec_of(), key, ACCESS)
    leave_a_job(harness, key)
    looks = [harness.engine.remove(key.namespace_id) for _ in range(3)]  # its pods end first, where they are there yet
    assert not any(one.gone for one in looks)
    assert not harness.api.store.find("rolebindings")
    assert "example.org/held" in harness.engine.remove(key.namespace_id).left[0]
    harness.api.store.merge(("jobs", of(harness, key), "left"), {"metadata": {"finalizers": None}})
    assert harness.engine.remove(key.namespace_id).gone


def live_through_everything(harness: KubernetesHarness, key: JobKey) -> None:
    engine = harness.engine
    engine.submit(spec_of(), key, ACCESS)
    engine.observe([key])
    harness.let_begin(key)
    engine.capacity()
    engine.namespaces_there()
    engine.tail(key, Role.WORKER, 0, 10)
    changes = engine.changes()
    harness.let_end(key, Role.WORKER, 0, 0)
    assert next(changes) == key
    for kind in ("configmaps", "pods", "jobs", "statefulsets"):
        wait_for(lambda kind=kind: ("watch", kind) in harness.api.requests)
    harness.another_process().capacity()
    wait_for(lambda: ("watch", "nodes") in harness.api.requests)
    engine.release(key, [Role.PS])
    engine.stop(key, SOON)
    engine.clean_up(key)
    lose_a_chief(harness, JobKey(key.namespace_id, new_key().job_id, 1))


def leave_a_job(harness: KubernetesHarness, key: JobKey) -> None:
    """That would hold up the end of its namespace."""
    metadata = {"namespace": of(harness, key), "name": "left", "finalizers": ["example.org/held"]}
    left = {"kind": "Job", "metadata": metadata, "spec": {"completions": 0}}
    harness.api.store.write(("jobs", metadata["namespace"], "left"), left)


def lose_a_chief(harness: KubernetesHarness, key: JobKey) -> None:
    run(harness, key, spec_of(Strategy.PARAMETER_SERVER, roles=COORDINATED, retries=1))
    wait_until(harness.engine, key, lambda seen: all(task.phase is TaskPhase.RUNNING for task in seen.tasks))
    harness.let_end(key, Role.CHIEF, 0, 1)
    wait_until(harness.engine, key, lambda seen: seen.to_restart)
    assert harness.engine.restart(key)
    harness.engine.release(key, [Role.PS, Role.WORKER])
    harness.engine.clean_up(key)


def test_what_another_process_makes_meanwhile_is_looked_at_and_a_conflict_that_stays_is_told(
    harness: KubernetesHarness, key: JobKey
):
    harness.api.refuse("create", "namespaces", 409)
    with pytest.raises(Unavailable, match="just created"):
        harness.engine.shape(key.namespace_id, Quota(), ACCESS.portal_url)
    harness.api.refuse("create", "namespaces", 409, times=1000)
    with pytest.raises(Unavailable, match="409"):
        harness.engine.shape(new_key().namespace_id, Quota(), ACCESS.portal_url)
