"""The home of a user's notebooks on the fake API server: made before the first session's pod, and kept."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.contract.engine_harness import ACCESS, BOUND, KubernetesHarness, new_key, spec_of, wait_for
from yardmaster.engines.base import Address, KeepsHomes
from yardmaster.engines.kubernetes.render.names import namespace_name
from yardmaster.errors import Unavailable
from yardmaster.ids import JobKey, new_id
from yardmaster.job.spec import Resources, Role, RoleSpec, Strategy, TrainingSpec

CLAIMS = "persistentvolumeclaims"
OWNER = new_id()


@pytest.fixture
def harness() -> Iterator[KubernetesHarness]:
    """With the rights that are shipped, and no other."""
    made = KubernetesHarness(home_size="1Gi", **BOUND)
    yield made
    made.close()


def notebook(owner: uuid.UUID = OWNER) -> TrainingSpec:
    return spec_of(
        Strategy.SERVICE, roles={Role.WORKER: RoleSpec(1, Resources(0.1, 64 << 20))}, program="jupyter",
        options={"session": str(new_id()), "owner": str(owner)}, code_version=None, entry_point="",
    )  # fmt: skip


def homes(harness: KubernetesHarness, key: JobKey) -> list[dict]:
    return harness.api.store.find(CLAIMS, namespace_name(key.namespace_id, harness.engine.options))


def ends(harness: KubernetesHarness, key: JobKey) -> None:
    harness.engine.clean_up(key)
    wait_for(lambda: not harness.engine.observe([key])[key].exists)


def test_a_home_outlives_the_session_and_is_there_for_the_next(harness: KubernetesHarness):
    key = new_key()
    harness.engine.submit(notebook(), key, ACCESS)
    harness.let_begin(key)
    (made,) = homes(harness, key)
    assert made["spec"]["resources"]["requests"]["storage"] == str(1 << 30)
    ends(harness, key)
    (kept,) = homes(harness, key)
    later = replace(key, job_id=new_id())
    harness.engine.submit(notebook(), later, ACCESS)
    assert [one["metadata"]["uid"] for one in homes(harness, key)] == [kept["metadata"]["uid"]]
    harness.engine.submit(notebook(new_id()), replace(key, job_id=new_id()), ACCESS)
    assert len(homes(harness, key)) == 2


def test_another_size_is_for_new_homes(harness: KubernetesHarness):
    key = new_key()
    harness.engine.submit(notebook(), key, ACCESS)
    harness.tasks["home_size"] = "2Gi"
    larger = harness.another_process(watch=False)
    for owner in (OWNER, new_id()):
        larger.submit(notebook(owner), replace(key, job_id=new_id()), ACCESS)
    sizes = sorted(one["spec"]["resources"]["requests"]["storage"] for one in homes(harness, key))
    assert sizes == [str(1 << 30), str(2 << 30)]


def test_a_home_that_is_being_removed_is_waited_for(harness: KubernetesHarness):
    key = new_key()
    harness.engine.submit(notebook(), key, ACCESS)
    (made,) = homes(harness, key)
    place = (CLAIMS, made["metadata"]["namespace"], made["metadata"]["name"])
    harness.api.store.merge(place, {"metadata": {"deletionTimestamp": "2026-11-20T12:00:00Z"}})
    with pytest.raises(Unavailable, match="is being removed"):
        harness.engine.submit(notebook(), replace(key, job_id=new_id()), ACCESS)


def test_the_portal_connects_to_the_pod_of_a_session(harness: KubernetesHarness):
    key, spec = new_key(), notebook()
    harness.engine.submit(spec, key, ACCESS)
    harness.let_begin(key)
    assert isinstance(harness.engine.address(spec, key, Role.WORKER, 0), Address)


def test_a_home_takes_what_its_claim_asks_for(harness: KubernetesHarness):
    key = new_key()
    assert isinstance(harness.engine, KeepsHomes)
    assert harness.engine.home_size() == 1 << 30
    assert harness.engine.home_use(key.namespace_id, OWNER).size == 0
    harness.engine.submit(notebook(), key, ACCESS)
    harness.tasks["home_size"] = "2Gi"
    larger = harness.another_process(watch=False)
    assert (larger.home_size(), larger.home_use(key.namespace_id, OWNER).size) == (2 << 30, 1 << 30)
    harness.tasks["home_size"] = ""
    assert harness.another_process(watch=False).home_size() is None


def test_a_home_is_removed_alone_and_again(harness: KubernetesHarness):
    key, other = new_key(), new_id()
    for owner in (OWNER, other):
        harness.engine.submit(notebook(owner), replace(key, job_id=new_id()), ACCESS)
    assert harness.engine.remove_home(key.namespace_id, OWNER)
    (left,) = homes(harness, key)
    assert left["metadata"]["labels"]["yardmaster/user"] == str(other)
    assert harness.engine.remove_home(key.namespace_id, OWNER)


def test_a_home_that_a_pod_uses_is_waited_for(harness: KubernetesHarness):
    key = new_key()
    harness.engine.submit(notebook(), key, ACCESS)
    (made,) = homes(harness, key)
    place = (CLAIMS, made["metadata"]["namespace"], made["metadata"]["name"])
    harness.api.store.merge(place, {"metadata": {"deletionTimestamp": "2026-11-20T12:00:00Z"}})
    before = harness.api.count("delete")
    assert not harness.engine.remove_home(key.namespace_id, OWNER)
    assert harness.api.count("delete") == before


def test_homes_of_a_namespace_that_is_not_there_are_gone(harness: KubernetesHarness):
    assert harness.engine.remove_home(new_id(), OWNER)


def test_the_class_of_homes_is_checked_where_one_is_named(harness: KubernetesHarness):
    assert harness.engine.check_homes() is None, "the cluster's default"
    harness.tasks["home_class"] = "fast"
    engine = harness.another_process(watch=False)
    missing = engine.check_homes()
    assert missing is not None
    assert missing.is_well is False
    assert "no StorageClass fast (home_class)" in missing.message
    assert "set home_class" in missing.remedy
    harness.api.store.write(("storageclasses", "", "fast"), {"kind": "StorageClass", "metadata": {"name": "fast"}})
    assert engine.check_homes().is_well is True
    harness.api.rights.everywhere.discard(("get", "storageclasses"))
    assert engine.check_homes().is_well is None
    harness.tasks["home_size"] = ""
    assert harness.another_process(watch=False).check_homes() is None, "no homes are kept"
