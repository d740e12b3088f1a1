"""The Kubernetes engine's namespaces: made once, mended by comparing, removed for good, and no one else's touched."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from tests.contract.engine_harness import ACCESS, KubernetesHarness, spec_of
from yardmaster.engines.base import Namespaces
from yardmaster.engines.kubernetes import KubernetesEngine
from yardmaster.engines.kubernetes.render.names import namespace_name
from yardmaster.errors import EngineNamespaceMissing, Misconfigured, Unavailable
from yardmaster.ids import JobKey, new_id
from yardmaster.queueing.ledger import Quota

URL = ACCESS.portal_url
QUOTA = Quota(cpu=4, memory=8 << 30, gpus=1)
EVERYTHING = [
    "Namespace/{name}",
    "ServiceAccount/tasks",
    "Service/tasks",
    "NetworkPolicy/default-deny",
    "NetworkPolicy/tasks",
    "ResourceQuota/yardmaster",
    "LimitRange/yardmaster",
]


@pytest.fixture
def harness() -> Iterator[KubernetesHarness]:
    made = KubernetesHarness()
    yield made
    made.close()


@pytest.fixture
def namespace_id() -> uuid.UUID:
    return new_id()


@pytest.fixture
def name(harness: KubernetesHarness, namespace_id: uuid.UUID) -> str:
    return namespace_name(namespace_id, harness.engine.options)


@pytest.fixture
def shaped(harness: KubernetesHarness, namespace_id: uuid.UUID) -> KubernetesHarness:
    harness.engine.shape(namespace_id, QUOTA, URL)
    del harness.api.requests[:]
    return harness


def writes(harness: KubernetesHarness) -> int:
    return harness.api.count("patch", "delete", "deletecollection")


def test_the_engine_says_that_it_keeps_namespaces(harness: KubernetesHarness):
    assert isinstance(harness.engine, Namespaces)


def test_everything_is_made_once_and_then_only_read(harness: KubernetesHarness, namespace_id, name):
    made = harness.engine.shape(namespace_id, QUOTA, URL)
    assert list(made) == [one.format(name=name) for one in EVERYTHING]
    before = writes(harness)
    assert list(harness.engine.shape(namespace_id, QUOTA, URL)) == []
    assert writes(harness) == before


def test_another_quota_changes_the_quota_and_nothing_else(shaped: KubernetesHarness, namespace_id, name):
    changed = shaped.engine.shape(namespace_id, Quota(cpu=2), URL)
    assert list(changed) == ["ResourceQuota/yardmaster", "LimitRange/yardmaster"]
    hard = shaped.api.store.get(("resourcequotas", name, "yardmaster"))["spec"]["hard"]
    assert (hard["limits.cpu"], "limits.memory" in hard, "requests.nvidia.com/gpu" in hard) == ("2", False, False)


@pytest.mark.parametrize(
    ("plural", "object_name"),
    [
        ("resourcequotas", "yardmaster"),
        ("limitranges", "yardmaster"),
        ("networkpolicies", "default-deny"),
        ("networkpolicies", "tasks"),
        ("serviceaccounts", "tasks"),
        ("services", "tasks"),
    ],
)
def test_what_somebody_deleted_comes_back_and_nothing_else_is_written(shaped, namespace_id, name, plural, object_name):
    place = (plural, name, object_name)
    before = shaped.api.store.get(place)
    shaped.api.store.delete(place)
    assert len(shaped.engine.shape(namespace_id, QUOTA, URL)) == writes(shaped) == 1
    assert {**shaped.api.store.get(place), "metadata": 0} == {**before, "metadata": 0}


def test_what_somebody_edited_is_put_right(shaped: KubernetesHarness, namespace_id, name):
    place = ("resourcequotas", name, "yardmaster")
    shaped.api.store.merge(place, {"spec": {"hard": {"limits.cpu": "4000"}}})
    shaped.api.store.merge(("networkpolicies", name, "default-deny"), {"spec": {"policyTypes": ["Ingress"]}})
    assert len(shaped.engine.shape(namespace_id, QUOTA, URL)) == 2
    assert shaped.api.store.get(place)["spec"]["hard"]["limits.cpu"] == "4"


def test_a_job_of_a_shaped_namespace_writes_nothing_of_it(shaped: KubernetesHarness, namespace_id):
    shaped.engine.submit(spec_of(), JobKey(namespace_id, new_id(), 1), ACCESS)
    written = {plural for verb, plural in shaped.api.requests if verb in ("patch", "create")}
    assert written == {"configmaps", "networkpolicies", "secrets", "jobs", "statefulsets"}


def test_runs_of_an_earlier_version_speak_on_when_the_namespace_is_closed(
    shaped: KubernetesHarness, namespace_id, name
):
    """Until then all pods of a namespace reached each other, and no run had a policy of its own."""
    key = JobKey(namespace_id, new_id(), 1)
    shaped.engine.submit(spec_of(), key, ACCESS)
    place = ("networkpolicies", name, key.name)
    policy = shaped.api.store.get(place)
    shaped.api.store.delete(place)
    as_before = {"spec": {"ingress": [{"from": [{"podSelector": {}}]}]}}
    shaped.api.store.merge(("networkpolicies", name, "tasks"), as_before)
    assert list(shaped.engine.shape(namespace_id, QUOTA, URL)) == ["NetworkPolicy/tasks"]
    assert not shaped.api.store.get(("networkpolicies", name, "tasks"))["spec"].get("ingress")
    mended = shaped.api.store.get(place)
    assert (mended["spec"], mended["metadata"]["ownerReferences"]) == (
        policy["spec"],
        policy["metadata"]["ownerReferences"],
    )


def test_rights_come_before_what_they_are_needed_for(namespace_id):
    harness = KubernetesHarness(bound_role="yardmaster-tasks", bound_account="yardmaster/portal")
    try:
        with pytest.raises(Unavailable, match="just created"):
            harness.engine.shape(namespace_id, QUOTA, URL)
        assert {place[0] for place in harness.api.store.objects} == {"nodes", "namespaces", "rolebindings"}
        assert len(harness.engine.shape(namespace_id, QUOTA, URL)) == 6
    finally:
        harness.close()


@pytest.mark.parametrize("mood", [429, 500, "no answer", "half an answer"])
def test_a_shaping_that_was_cut_off_goes_on(harness: KubernetesHarness, namespace_id, mood):
    harness.api.refuse("patch", "networkpolicies", mood)
    with pytest.raises(Unavailable):
        harness.engine.shape(namespace_id, QUOTA, URL)
    harness.engine.shape(namespace_id, QUOTA, URL)
    assert list(harness.engine.shape(namespace_id, QUOTA, URL)) == []


def test_what_the_cluster_refuses_of_a_namespace_is_the_operators(harness: KubernetesHarness, namespace_id):
    harness.api.refuse("patch", "limitranges", 422)
    with pytest.raises(Misconfigured, match="LimitRange"):
        harness.engine.shape(namespace_id, QUOTA, URL)


def somebodys(harness: KubernetesHarness, name: str, **labels: str) -> dict:
    """A namespace of that name which the engine did not make."""
    place = ("namespaces", "", name)
    harness.api.store.write(place, {"kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    return harness.api.store.get(place)


def with_our_labels(namespace_id: uuid.UUID, **signed: str) -> dict[str, str]:
    ours = {"app.kubernetes.io/managed-by": "yardmaster", "yardmaster/namespace": str(namespace_id)}
    return ours | ({"yardmaster/installation": signed["by"]} if signed else {})


class TestNamespacesOfOthers:
    """What has our name on the cluster need not be ours."""

    @pytest.fixture
    def harness(self) -> Iterator[KubernetesHarness]:
        made = KubernetesHarness(installation="this-one")
        yield made
        made.close()

    @pytest.fixture(params=["without our labels", "for another id", "of another portal"])
    def theirs(self, request: pytest.FixtureRequest, harness: KubernetesHarness, namespace_id, name) -> dict:
        labels = {
            "without our labels": {"team": "payroll"},
            "for another id": with_our_labels(new_id()),
            "of another portal": with_our_labels(namespace_id, by="staging"),
        }
        return somebodys(harness, name, **labels[request.param])

    def test_no_verb_changes_anything_in_them(self, harness: KubernetesHarness, namespace_id, name, theirs):
        for verb in (
            lambda: harness.engine.shape(namespace_id, QUOTA, URL),
            lambda: harness.engine.submit(spec_of(), JobKey(namespace_id, new_id(), 1), ACCESS),
        ):
            with pytest.raises(Misconfigured, match=name) as refused:
                verb()
            assert "namespace_prefix" in refused.value.remedy
        remains = harness.engine.remove(namespace_id)
        assert (remains.gone, writes(harness)) == (False, 0)
        assert name in remains.left[0]
        assert "left alone" in remains.left[0]
        assert harness.api.store.get(("namespaces", "", name)) == theirs

    def test_the_remedys_command_takes_one_over(self, harness: KubernetesHarness, namespace_id, name, theirs):
        with pytest.raises(Misconfigured) as refused:
            harness.engine.shape(namespace_id, QUOTA, URL)
        command = refused.value.remedy.partition("kubectl label --overwrite namespace ")[2].split()
        assert command[0] == name
        labels = dict(word.split("=") for word in command[1:])
        harness.api.store.merge(("namespaces", "", name), {"metadata": {"labels": labels}})
        assert list(harness.engine.shape(namespace_id, QUOTA, URL)) == [one.format(name=name) for one in EVERYTHING]

    def test_one_from_before_portals_signed_is_adopted_and_signed(self, harness: KubernetesHarness, namespace_id, name):
        somebodys(harness, name, **with_our_labels(namespace_id))
        harness.engine.submit(spec_of(), JobKey(namespace_id, new_id(), 1), ACCESS)
        harness.engine.shape(namespace_id, QUOTA, URL)
        labels = harness.api.store.get(("namespaces", "", name))["metadata"]["labels"]
        assert labels["yardmaster/installation"] == "this-one"

    def test_a_portal_with_another_key_says_which_installation_to_set(self, harness, namespace_id, name):
        somebodys(harness, name, **with_our_labels(namespace_id, by="former"))
        with pytest.raises(Misconfigured) as refused:
            harness.engine.shape(namespace_id, QUOTA, URL)
        assert '"installation": "former"' in refused.value.remedy

    def test_one_that_somebody_made_where_ours_was_is_left_alone(self, harness: KubernetesHarness, namespace_id, name):
        harness.engine.shape(namespace_id, QUOTA, URL)
        harness.engine.submit(spec_of(), JobKey(namespace_id, new_id(), 1), ACCESS)
        harness.api.store.delete(("namespaces", "", name))
        somebodys(harness, name)
        with pytest.raises(Misconfigured, match="left alone"):
            harness.engine.submit(spec_of(), JobKey(namespace_id, new_id(), 1), ACCESS)


class TestWhatASubmissionMisses:
    @pytest.mark.parametrize("one", EVERYTHING)
    def test_what_is_missing_is_said_before_anything_of_the_run_is_made(self, shaped, namespace_id, name, one: str):
        kind, _, called = one.format(name=name).partition("/")
        plural = "networkpolicies" if kind == "NetworkPolicy" else f"{kind.lower()}s"
        shaped.api.store.delete((plural, "" if kind == "Namespace" else name, called))
        key = JobKey(namespace_id, new_id(), 1)
        with pytest.raises(EngineNamespaceMissing, match=f"{kind} {called}"):
            KubernetesEngine.submit(shaped.engine, spec_of(), key, ACCESS)
        assert not shaped.api.store.find("configmaps", name)
        assert one.format(name=name) in shaped.engine.shape(namespace_id, QUOTA, URL)
        KubernetesEngine.submit(shaped.engine, spec_of(), key, ACCESS)
        shaped.let_begin(key)

    def test_nothing_is_written_where_nothing_is_missing(self, shaped: KubernetesHarness, namespace_id):
        key = JobKey(namespace_id, new_id(), 1)
        shaped.engine.submit(spec_of(), key, ACCESS)
        assert writes(shaped) <= 8
        del shaped.api.requests[:]
        shaped.engine.submit(spec_of(), key, ACCESS)
        assert ("get", "serviceaccounts") not in shaped.api.requests


class TestPullSecrets:
    SOURCE = ("secrets", "operators", "registry")

    @pytest.fixture
    def harness(self) -> Iterator[KubernetesHarness]:
        made = KubernetesHarness(image_pull_secrets=["registry"], pull_secrets_from="operators")
        yield made
        made.close()

    def put(self, harness: KubernetesHarness, word: str, kind: str = "kubernetes.io/dockerconfigjson") -> None:
        secret = {"kind": "Secret", "metadata": {"namespace": "operators", "name": "registry"}}
        harness.api.store.write(self.SOURCE, {**secret, "type": kind, "data": {".dockerconfigjson": word}})

    def test_they_are_copied_and_follow_and_come_back(self, harness: KubernetesHarness, namespace_id, name):
        self.put(harness, "one")
        assert "ServiceAccount/tasks" in harness.engine.shape(namespace_id, QUOTA, URL)
        assert self.copy(harness, name)["data"] == {".dockerconfigjson": "one"}
        assert harness.engine.shape(namespace_id, QUOTA, URL) == ()
        self.put(harness, "two")
        assert harness.engine.shape(namespace_id, QUOTA, URL) == ("ServiceAccount/tasks",)
        assert self.copy(harness, name)["data"] == {".dockerconfigjson": "two"}
        harness.api.store.delete(("secrets", name, "registry"))
        harness.engine.shape(namespace_id, QUOTA, URL)
        assert self.copy(harness, name)["type"] == "kubernetes.io/dockerconfigjson"

    def test_only_access_to_registries_is_copied(self, harness: KubernetesHarness, namespace_id, name):
        self.put(harness, "the portal's own key", "Opaque")
        with pytest.raises(Misconfigured, match="is of type 'Opaque'"):
            harness.engine.shape(namespace_id, QUOTA, URL)
        assert writes(harness) == 0

    def test_one_that_is_not_there_is_said_with_its_name_and_the_setting(self, harness, namespace_id):
        with pytest.raises(Misconfigured, match="no Secret registry in the cluster's namespace operators") as refused:
            harness.engine.shape(namespace_id, QUOTA, URL)
        assert "image_pull_secrets" in refused.value.remedy

    def test_one_that_the_portal_may_not_read_is_said_with_where_the_right_is_described(self, harness, namespace_id):
        self.put(harness, "one")
        harness.api.refuse("get", "secrets", 403)
        with pytest.raises(Misconfigured, match="forbids") as refused:
            harness.engine.shape(namespace_id, QUOTA, URL)
        assert "the Secret registry there: docs/kubernetes.md, Secrets to pull images with" in refused.value.remedy
        assert writes(harness) == 0

    def test_the_portal_reads_them_only_where_they_come_from(self, harness: KubernetesHarness, namespace_id, name):
        self.put(harness, "one")
        for _ in range(2):
            harness.engine.shape(namespace_id, QUOTA, URL)
        assert harness.api.requests.count(("get", "secrets")) == 2
        assert ("list", "secrets") not in harness.api.requests

    def copy(self, harness: KubernetesHarness, name: str):
        return harness.api.store.get(("secrets", name, "registry"))


class TestRemoval:
    def test_it_goes_with_all_that_is_in_it(self, shaped: KubernetesHarness, namespace_id, name):
        shaped.engine.submit(spec_of(), JobKey(namespace_id, new_id(), 1), ACCESS)
        looks = [shaped.engine.remove(namespace_id) for _ in range(3)]  # its pods end first, where they are there yet
        assert looks[-1].gone
        assert [place for place in shaped.api.store.objects if name in place] == []

    def test_what_was_never_there_is_gone(self, harness: KubernetesHarness, namespace_id):
        assert harness.engine.remove(namespace_id).gone
        assert writes(harness) == 0

    def test_kubeflow_4496_a_stuck_one_says_what_holds_it_and_is_told_once(self, shaped, namespace_id, name):
        place = ("configmaps", name, "stubborn")
        shaped.api.store.write(place, {"kind": "ConfigMap", "metadata": {"finalizers": ["example.org/never"]}})
        for _ in range(3):
            remains = shaped.engine.remove(namespace_id)
            assert not remains.gone
            assert "example.org/never" in remains.left[0]
        assert writes(shaped) == 1
        shaped.api.store.merge(place, {"metadata": {"finalizers": None}})
        assert shaped.engine.remove(namespace_id).gone

    def test_one_that_is_going_is_not_made_anew_meanwhile(self, shaped, namespace_id, name):
        place = ("configmaps", name, "stubborn")
        shaped.api.store.write(place, {"kind": "ConfigMap", "metadata": {"finalizers": ["example.org/never"]}})
        shaped.engine.remove(namespace_id)
        with pytest.raises(Unavailable, match="being removed"):
            shaped.engine.shape(namespace_id, QUOTA, URL)
