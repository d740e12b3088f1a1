"""What the Kubernetes engine tries with pods: in a namespace that is shaped as all are, bounded, and gone again."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from tests.contract.engine_harness import ACCESS, KubernetesHarness
from yardmaster.engines.base import Probe, Probes
from yardmaster.engines.kubernetes.client.api import Api
from yardmaster.engines.kubernetes.client.connection import connect_to
from yardmaster.engines.kubernetes.probes import Prober, network, processes, reach
from yardmaster.engines.kubernetes.probes.network import LISTENER, ONLY_IN, ONLY_OUT, OPEN, TRIER
from yardmaster.engines.kubernetes.probes.pod import new_probe_id
from yardmaster.engines.kubernetes.probes.prober import LEFT_AFTER
from yardmaster.engines.kubernetes.render import names
from yardmaster.errors import Misconfigured, Unavailable
from yardmaster.ids import new_id
from yardmaster.queueing.ledger import Quota

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
    """Makes of each Job of a probe a pod that has ended with this message, or that runs where there is none for it.
    Remembers what stood around it."""

    def __init__(self, harness: KubernetesHarness, message: str, code: int = 0, stays: str = "") -> None:
        self.store, self.message, self.code, self.stays = harness.api.store, message, code, stays
        self.egress: list[dict] = []
        self.policies: dict[str, dict] = {}
        self.commands: dict[str, list[str]] = {}
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
        space, name = job["metadata"]["namespace"], job["metadata"]["name"]
        self.policies = {one["metadata"]["name"]: one["spec"] for one in self.store.find("networkpolicies", space)}
        self.egress = [rule for one in self.policies.values() for rule in one.get("egress") or ()]
        template = job["spec"]["template"]
        (container,) = template["spec"]["containers"]
        self.commands[name] = container["command"]
        state = {"terminated": {"exitCode": self.code, "message": self.message}}
        ended = {"phase": "Succeeded", "containerStatuses": [{"name": container["name"], "state": state}]}
        pod = {
            "apiVersion": "v1", "kind": "Pod", "spec": template["spec"],
            "metadata": {"name": f"{name}-x", "namespace": space, "labels": template["metadata"]["labels"]},
            "status": {"phase": "Running", "podIP": "10.9.8.7"} if name == self.stays else ended,
        }  # fmt: skip
        self.store.write(("pods", space, f"{name}-x"), pod)


def test_the_engine_says_that_it_can_try(harness: KubernetesHarness):
    assert isinstance(harness.engine, Probes)


def test_it_is_tried_under_the_policies_of_tasks_and_leaves_nothing(harness: KubernetesHarness):
    with Kubelet(harness, json.dumps(ANSWERED)) as kubelet:
        found = harness.engine.probe(Probe.REACH, URL)
    assert found.is_well is True
    assert any("ipBlock" in to for rule in kubelet.egress for to in rule.get("to") or ())
    assert harness.api.store.find("namespaces") == []
    assert harness.api.store.find("jobs") == []


def test_every_candidate_is_in_the_policy_and_has_its_answer(harness: KubernetesHarness):
    options = reach.for_candidates(harness.engine.options, ["10.0.0.1/32", "10.0.0.2/32"], 8080)
    one = Prober(Api(connect_to(harness.api.url)), options)
    urls = ["http://10.0.0.1:8080", "http://10.0.0.2:8080"]
    with Kubelet(harness, json.dumps({"0": {"error": "timed out"}, "1": ANSWERED["0"]})) as kubelet:
        found = reach.try_all(one, urls, 10)
    assert [reach.is_the_portal(found.seen[url]) for url in urls] == [False, True]
    blocks = [to["ipBlock"]["cidr"] for rule in kubelet.egress for to in rule.get("to") or () if "ipBlock" in to]
    assert blocks == ["10.0.0.1/32", "10.0.0.2/32"]


def test_a_pod_that_never_ends_is_not_waited_for_and_nothing_is_known(harness: KubernetesHarness, prober: Prober):
    begun = time.monotonic()
    found = reach.find(prober, URL, 1)
    assert time.monotonic() - begun < 10
    assert found.is_well is None
    assert URL in found.message
    assert harness.api.store.find("namespaces") == []


def test_a_cluster_that_is_away_tells_nothing(harness: KubernetesHarness, prober: Prober):
    harness.api.refuse("", "", 503, 1000)
    with pytest.raises(Unavailable):
        reach.find(prober, URL, 0.5)


def test_a_right_that_is_missing_is_the_operator_s_to_give(harness: KubernetesHarness, prober: Prober):
    harness.api.refuse("patch", "jobs", 403)
    with pytest.raises(Misconfigured, match="forbids"):
        reach.find(prober, URL, 5)
    assert harness.api.store.find("namespaces") == []


def test_what_a_killed_probe_left_goes_with_the_next_and_no_other_namespace(harness: KubernetesHarness, prober: Prober):
    mine, left, fresh = new_id(), new_probe_id(), new_probe_id()
    for one in (mine, left, fresh):
        harness.engine.shape(one, Quota(), URL)
    long_ago = datetime.now(UTC) - LEFT_AFTER - timedelta(minutes=1)
    for one in (mine, left):
        place = ("namespaces", "", names.namespace_name(one, harness.engine.options))
        harness.api.store.objects[place]["metadata"]["creationTimestamp"] = long_ago.strftime("%Y-%m-%dT%H:%M:%SZ")
    reach.find(prober, URL, 0.2)
    assert set(harness.engine.namespaces_there()) == {mine, fresh}


def test_places_are_those_that_this_portal_signed(harness: KubernetesHarness):
    mine, anothers = new_id(), new_id()
    harness.engine.shape(mine, Quota(), URL)
    other = harness.another_process(watch=False)
    object.__setattr__(other.options, "installation", "elsewhere")
    other.shape(anothers, Quota(), URL)
    assert set(harness.engine.namespaces_there()) == {mine}


def told(way: str, out: str, into: str) -> str:
    return json.dumps({str(OPEN): way, str(ONLY_IN): out, str(ONLY_OUT): into})


@pytest.mark.parametrize(
    ("message", "is_well"), [(told("", "timed out", "timed out"), True), (told("", "", "timed out"), False)]
)
def test_the_network_is_tried_by_two_pods_that_leave_nothing(harness: KubernetesHarness, message: str, is_well: bool):
    with Kubelet(harness, message, stays=LISTENER) as kubelet:
        found = harness.engine.probe(Probe.NETWORK, URL)
    assert found.is_well is is_well
    assert "10.9.8.7" in kubelet.commands[TRIER]
    assert harness.api.store.find("namespaces") == []
    assert harness.api.store.find("jobs") == []


def test_its_policies_open_one_way_at_both_ends_and_each_other_at_one(harness: KubernetesHarness):
    with Kubelet(harness, told("", "", ""), stays=LISTENER) as kubelet:
        harness.engine.probe(Probe.NETWORK, URL)
    (into,), (out,) = kubelet.policies[LISTENER]["ingress"], kubelet.policies[TRIER]["egress"]
    assert [one["port"] for one in into["ports"]] == [OPEN, ONLY_IN]
    assert [one["port"] for one in out["ports"]] == [OPEN, ONLY_OUT]
    assert kubelet.policies["default-deny"]["policyTypes"] == ["Ingress", "Egress"]


def test_a_listener_that_cannot_begin_leaves_the_network_unknown(harness: KubernetesHarness, prober: Prober):
    found = network.find(prober, URL, 0.5)
    assert found.is_well is None
    assert "no pod" in found.message
    assert harness.api.store.find("namespaces") == []


def test_processes_are_tried_in_a_pod_with_room_for_them(harness: KubernetesHarness):
    with Kubelet(harness, "2041") as kubelet:
        found = harness.engine.probe(Probe.PROCESSES, URL)
    assert found.is_well is True
    assert kubelet.commands["processes"][-1] == processes.PROGRAM
    assert harness.api.store.find("namespaces") == []
