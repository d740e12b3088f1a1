"""The Kubernetes engine's try whether pods reach the portal: shaped as all namespaces are, bounded, and gone again."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from tests.contract.engine_harness import ACCESS, KubernetesHarness
from yardmaster.engines.base import TriesReach
from yardmaster.engines.kubernetes import names, probe_pod
from yardmaster.engines.kubernetes.api import Api
from yardmaster.engines.kubernetes.connection import connect_to
from yardmaster.engines.kubernetes.probing import LEFT_AFTER, Prober, for_candidates
from yardmaster.errors import Misconfigured
from yardmaster.ids import new_id
from yardmaster.ledger import Quota

URL = ACCESS.portal_url
ANSWERED = {"0": {"status": 401, "type": "application/problem+json", "text": ""}}


@pytest.fixture
def harness() -> Iterator[KubernetesHarness]:
    made = KubernetesHarness(lives=False, installation="here")
    yield made
    made.close()


@pytest.fixture
def prober(harness: KubernetesHarness) -> Prober:
    return Prober(Api(connect_to(harness.api.url)), harness.engine.options)


class Kubelet:
    """Makes of each Job of a probe a pod that has ended with this message. Remembers what stood around it."""

    def __init__(self, harness: KubernetesHarness, message: str) -> None:
        self.store, self.message = harness.api.store, message
        self.egress: list[dict] = []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def __enter__(self) -> Kubelet:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()

    def _run(self) -> None:
        done: set[str] = set()
        while not self.over.wait(0.02):
            for job in self.store.find("jobs"):
                if job["metadata"]["uid"] not in done:
                    done.add(job["metadata"]["uid"])
                    self._end(job)

    def _end(self, job: dict) -> None:
        space = job["metadata"]["namespace"]
        policies = self.store.find("networkpolicies", space)
        self.egress = [rule for one in policies for rule in one["spec"].get("egress") or ()]
        template = job["spec"]["template"]
        state = {"terminated": {"exitCode": 0, "message": self.message}}
        pod = {
            "apiVersion": "v1", "kind": "Pod", "spec": template["spec"],
            "metadata": {"name": "probe-x", "namespace": space, "labels": template["metadata"]["labels"]},
            "status": {"phase": "Succeeded", "containerStatuses": [{"name": "probe", "state": state}]},
        }  # fmt: skip
        self.store.write(("pods", space, "probe-x"), pod)


def test_the_engine_says_that_it_can_try(harness: KubernetesHarness):
    assert isinstance(harness.engine, TriesReach)


def test_it_is_tried_under_the_policies_of_tasks_and_leaves_nothing(harness: KubernetesHarness, prober: Prober):
    with Kubelet(harness, json.dumps(ANSWERED)) as kubelet:
        reach = prober.reach(URL, 10)
    assert reach.reached is True
    assert any("ipBlock" in to for rule in kubelet.egress for to in rule.get("to") or ())
    assert harness.api.store.find("namespaces") == []
    assert harness.api.store.find("jobs") == []


def test_every_candidate_is_in_the_policy_and_has_its_answer(harness: KubernetesHarness):
    options = for_candidates(harness.engine.options, ["10.0.0.1/32", "10.0.0.2/32"], 8080)
    one = Prober(Api(connect_to(harness.api.url)), options)
    urls = ["http://10.0.0.1:8080", "http://10.0.0.2:8080"]
    with Kubelet(harness, json.dumps({"0": {"error": "timed out"}, "1": ANSWERED["0"]})) as kubelet:
        found = one.try_all(urls, 10)
    assert [probe_pod.is_the_portal(found.seen[url]) for url in urls] == [False, True]
    blocks = [to["ipBlock"]["cidr"] for rule in kubelet.egress for to in rule.get("to") or () if "ipBlock" in to]
    assert blocks == ["10.0.0.1/32", "10.0.0.2/32"]


def test_a_pod_that_never_ends_is_not_waited_for_and_nothing_is_known(harness: KubernetesHarness, prober: Prober):
    begun = time.monotonic()
    reach = prober.reach(URL, 1)
    assert time.monotonic() - begun < 10
    assert reach.reached is None
    assert URL in reach.message
    assert harness.api.store.find("namespaces") == []


def test_a_cluster_that_is_away_says_nothing_against_the_portal(harness: KubernetesHarness, prober: Prober):
    harness.api.refuse("", "", 503, 1000)
    assert prober.reach(URL, 0.5).reached is None


def test_a_right_that_is_missing_is_the_operator_s_to_give(harness: KubernetesHarness, prober: Prober):
    harness.api.refuse("patch", "jobs", 403)
    with pytest.raises(Misconfigured, match="forbids"):
        prober.reach(URL, 5)
    assert harness.api.store.find("namespaces") == []


def test_what_a_killed_probe_left_goes_with_the_next_and_no_other_namespace(harness: KubernetesHarness, prober: Prober):
    mine, left, fresh = new_id(), probe_pod.new_probe_id(), probe_pod.new_probe_id()
    for one in (mine, left, fresh):
        harness.engine.shape(one, Quota(), URL)
    long_ago = datetime.now(UTC) - LEFT_AFTER - timedelta(minutes=1)
    for one in (mine, left):
        place = ("namespaces", "", names.namespace_name(one, harness.engine.options))
        harness.api.store.objects[place]["metadata"]["creationTimestamp"] = long_ago.strftime("%Y-%m-%dT%H:%M:%SZ")
    prober.reach(URL, 0.2)
    assert set(harness.engine.places_there()) == {mine, fresh}


def test_places_are_those_that_this_portal_signed(harness: KubernetesHarness):
    mine, anothers = new_id(), new_id()
    harness.engine.shape(mine, Quota(), URL)
    other = harness.another_process(watch=False)
    object.__setattr__(other.options, "installation", "elsewhere")
    other.shape(anothers, Quota(), URL)
    assert set(harness.engine.places_there()) == {mine}
