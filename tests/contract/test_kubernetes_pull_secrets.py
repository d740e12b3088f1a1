"""Secrets to pull an image of the catalogue with: in the namespace of a run for as long as the run is there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.contract.engine_harness import ACCESS, KubernetesHarness, spec_of
from tests.real.scene import until
from yardmaster.engines.kubernetes.render.names import namespace_name
from yardmaster.errors import Misconfigured
from yardmaster.ids import JobKey, new_id
from yardmaster.job.spec import TrainingSpec
from yardmaster.job.spec_images import PinnedImage

PLANTS = PinnedImage("plants", "registry.example/plants@sha256:" + "a" * 64, "plants-login")
LOGIN = {".dockerconfigjson": "bG9naW4="}


@pytest.fixture
def harness() -> Iterator[KubernetesHarness]:
    made = KubernetesHarness(pull_secrets_from="operators")
    yield made
    made.close()


@pytest.fixture
def key() -> JobKey:
    return JobKey(new_id(), new_id(), 1)


def of_plants() -> TrainingSpec:
    return replace(spec_of(), image="plants", pinned_images=(PLANTS,))


def put(harness: KubernetesHarness, kind: str = "kubernetes.io/dockerconfigjson") -> None:
    secret = {"kind": "Secret", "metadata": {"namespace": "operators", "name": "plants-login"}}
    harness.api.store.write(("secrets", "operators", "plants-login"), {**secret, "type": kind, "data": LOGIN})


def secrets(harness: KubernetesHarness, key: JobKey) -> dict[str, dict]:
    found = harness.api.store.find("secrets", namespace_name(key.namespace_id, harness.engine.options))
    return {one["metadata"]["name"]: one for one in found}


def test_a_run_has_a_copy_that_goes_with_it(harness: KubernetesHarness, key: JobKey):
    put(harness)
    harness.engine.submit(of_plants(), key, ACCESS)
    copy = secrets(harness, key)[f"{key.name}-pull-0"]
    assert (copy["type"], copy["data"]) == ("kubernetes.io/dockerconfigjson", LOGIN)
    (belongs,) = copy["metadata"]["ownerReferences"]
    assert (belongs["kind"], belongs["name"]) == ("ConfigMap", key.name)
    harness.let_begin(key)
    harness.engine.clean_up(key)
    until(lambda: not secrets(harness, key), 10)


def test_a_run_that_needs_none_gets_none(harness: KubernetesHarness, key: JobKey):
    put(harness)
    harness.engine.submit(spec_of(), key, ACCESS)
    assert list(secrets(harness, key)) == [f"{key.name}-token"]


def test_a_login_that_changed_is_in_the_next_run(harness: KubernetesHarness, key: JobKey):
    put(harness)
    harness.engine.submit(of_plants(), key, ACCESS)
    harness.api.store.write(
        ("secrets", "operators", "plants-login"),
        {**harness.api.store.get(("secrets", "operators", "plants-login")), "data": {".dockerconfigjson": "bmV3"}},
    )
    again = replace(key, attempt=2)
    harness.engine.submit(of_plants(), again, ACCESS)
    assert secrets(harness, key)[f"{again.name}-pull-0"]["data"] == {".dockerconfigjson": "bmV3"}


def test_one_that_is_not_there_is_said_before_anything_is_made(harness: KubernetesHarness, key: JobKey):
    with pytest.raises(Misconfigured, match="no Secret plants-login in the cluster's namespace operators") as refused:
        harness.engine.submit(of_plants(), key, ACCESS)
    assert "the pull secret of the job's image" in refused.value.remedy
    assert not harness.engine.observe([key])[key].exists
    assert not secrets(harness, key)
    put(harness)
    harness.engine.submit(of_plants(), key, ACCESS)
    assert f"{key.name}-pull-0" in secrets(harness, key)


def test_nothing_but_a_login_to_registries_is_copied(harness: KubernetesHarness, key: JobKey):
    put(harness, "Opaque")
    with pytest.raises(Misconfigured, match="is of type 'Opaque'"):
        harness.engine.submit(of_plants(), key, ACCESS)
    assert not secrets(harness, key)


def test_one_that_the_portal_may_not_read_is_said_with_where_the_right_is_described(harness, key: JobKey):
    put(harness)
    harness.api.refuse("get", "secrets", 403)
    with pytest.raises(Misconfigured, match="forbids") as refused:
        harness.engine.submit(of_plants(), key, ACCESS)
    assert "the Secret plants-login there: docs/kubernetes.md" in refused.value.remedy
