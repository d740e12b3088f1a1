"""The volumes of a namespace on the fake API server: made, enlarged and removed by asking for what is wanted."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from tests.contract.engine_harness import ACCESS, BOUND, KubernetesHarness, new_key
from yardmaster.engines.base import ClaimPhase, Volumes
from yardmaster.engines.kubernetes.render.names import namespace_name
from yardmaster.errors import EngineNamespaceMissing, Misconfigured, Unavailable
from yardmaster.job.volumes import VolumeKind
from yardmaster.queueing.ledger import Quota

DATA, LOG = VolumeKind.DATA, VolumeKind.LOG


@pytest.fixture
def harness() -> Iterator[KubernetesHarness]:
    """With the rights that are shipped, and no other."""
    made = KubernetesHarness(volume_class="shared", **BOUND)
    yield made
    made.close()


@pytest.fixture
def namespace_id(harness: KubernetesHarness) -> uuid.UUID:
    found = new_key().namespace_id
    with pytest.raises(Unavailable):  # the binding was made
        harness.engine.shape(found, Quota(), ACCESS.portal_url)
    harness.engine.shape(found, Quota(), ACCESS.portal_url)
    return found


def claims(harness: KubernetesHarness, namespace_id: uuid.UUID) -> dict[str, str]:
    found = harness.api.store.find("persistentvolumeclaims", namespace_name(namespace_id, harness.engine.options))
    return {one["metadata"]["name"]: one["spec"]["resources"]["requests"]["storage"] for one in found}


def test_an_engine_with_a_class_offers_volumes(harness: KubernetesHarness):
    assert isinstance(harness.engine, Volumes)
    assert harness.engine.offers_volumes()
    bare = KubernetesHarness()
    assert not bare.engine.offers_volumes()
    bare.close()


def test_what_is_wanted_is_made_once_enlarged_and_removed(harness: KubernetesHarness, namespace_id: uuid.UUID):
    keep = harness.engine.keep_volumes
    states = keep(namespace_id, {DATA: 100, LOG: 10})
    assert {kind: one.phase for kind, one in states.items()} == dict.fromkeys((DATA, LOG), ClaimPhase.PENDING)
    before = harness.api.count("patch", "delete")
    keep(namespace_id, {DATA: 100, LOG: 10})
    assert harness.api.count("patch", "delete") == before
    keep(namespace_id, {DATA: 200, LOG: 5})
    assert claims(harness, namespace_id) == {"data": "200", "log": "10"}
    assert keep(namespace_id, {LOG: 5})[DATA].phase is ClaimPhase.ABSENT
    assert claims(harness, namespace_id) == {"log": "10"}


def test_a_pending_claim_says_why(harness: KubernetesHarness, namespace_id: uuid.UUID):
    place = namespace_name(namespace_id, harness.engine.options)
    about = {"kind": "PersistentVolumeClaim", "name": "data", "namespace": place}
    event = {
        "kind": "Event", "metadata": {"name": "e1", "namespace": place}, "involvedObject": about, "type": "Warning",
        "reason": "ProvisioningFailed", "message": "the server is full",
    }  # fmt: skip
    harness.api.store.write(("events", place, "e1"), event)
    state = harness.engine.keep_volumes(namespace_id, {DATA: 100})[DATA]
    assert (state.phase, state.message) == (ClaimPhase.PENDING, "ProvisioningFailed: the server is full")


def test_a_bound_claim_is_ready(harness: KubernetesHarness, namespace_id: uuid.UUID):
    harness.engine.keep_volumes(namespace_id, {DATA: 100})
    place = ("persistentvolumeclaims", namespace_name(namespace_id, harness.engine.options), "data")
    harness.api.store.merge(place, {"status": {"phase": "Bound", "capacity": {"storage": "100"}}})
    assert harness.engine.keep_volumes(namespace_id, {DATA: 100})[DATA].phase is ClaimPhase.READY


def test_a_claim_that_was_made_again_is_another_volume(harness: KubernetesHarness, namespace_id: uuid.UUID):
    keep = harness.engine.keep_volumes
    first = keep(namespace_id, {DATA: 100})[DATA].identity
    assert first
    assert keep(namespace_id, {DATA: 100})[DATA].identity == first
    keep(namespace_id, {})
    assert keep(namespace_id, {DATA: 100})[DATA].identity not in ("", first)


def test_a_namespace_that_is_not_there_is_missing(harness: KubernetesHarness):
    with pytest.raises(EngineNamespaceMissing):
        harness.engine.keep_volumes(uuid.uuid4(), {DATA: 100})


def test_a_claim_that_the_cluster_refuses_is_the_operators_matter(harness: KubernetesHarness, namespace_id: uuid.UUID):
    harness.api.refuse("patch", "persistentvolumeclaims", 422)
    with pytest.raises(Misconfigured, match="data volume") as refused:
        harness.engine.keep_volumes(namespace_id, {DATA: 100})
    assert "volume_class" in refused.value.remedy


def test_a_class_that_exists_is_well_and_one_that_does_not_is_named_with_the_remedy(harness: KubernetesHarness):
    missing = harness.engine.check_volumes()
    assert missing.is_well is False
    assert "no StorageClass shared (volume_class)" in missing.message
    assert "kubectl get storageclasses" in missing.remedy
    harness.api.store.write(("storageclasses", "", "shared"), {"kind": "StorageClass", "metadata": {"name": "shared"}})
    assert harness.engine.check_volumes().is_well is True


def test_a_class_that_the_portal_may_not_read_cannot_be_checked(harness: KubernetesHarness):
    harness.api.rights.everywhere.discard(("get", "storageclasses"))
    found = harness.engine.check_volumes()
    assert found.is_well is None
    assert "cannot be checked: the portal may not read storage classes" in found.message
    assert "rights.yaml" in found.remedy
