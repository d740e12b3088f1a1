"""Whether the cluster enforces policies, as the portal finds out by itself. A cluster that does not is had by a policy
that allows what no other does: policies add up."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator

import pytest

from tests.cluster.engine_on_cluster import ClusterHarness
from tests.cluster.reach import Cluster, Refused, wait_for
from tests.contract.engine_harness import ACCESS
from yardmaster.engines.base import Finding, Probe
from yardmaster.engines.kubernetes.probes.pod import is_probe_id
from yardmaster.engines.kubernetes.render import names

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]


def probe(on_cluster: ClusterHarness) -> Finding:
    return on_cluster.engine.probe(Probe.NETWORK, ACCESS.portal_url)


def places_of_probes(cluster: Cluster, prefix: str) -> list[str]:
    found = json.loads(cluster.kubectl("get", "namespaces", "--selector", names.ours(), "-o", "json"))["items"]
    return [
        one["metadata"]["name"]
        for one in found
        if one["metadata"]["name"].startswith(prefix)
        and is_probe_id(one["metadata"]["labels"].get(names.NAMESPACE_ID, ""))
    ]


@contextlib.contextmanager
def allowed_besides(cluster: Cluster, on_cluster: ClusterHarness, *directions: str) -> Iterator[list[str]]:
    """In the namespaces of probes all of it is allowed in these directions, as soon as they are there. Which they
    were."""
    prefix = on_cluster.engine.options.namespace_prefix
    opened: list[str] = []
    over = threading.Event()

    def open_all() -> None:
        while not over.wait(0.2):
            for place in set(places_of_probes(cluster, prefix)) - set(opened):
                spec = {"podSelector": {}, "policyTypes": [one.capitalize() for one in directions]}
                spec |= {one: [{}] for one in directions}
                meta = {"name": "all-is-allowed", "namespace": place}
                policy = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": meta, "spec": spec}
                with contextlib.suppress(Refused):  # it ends already, or has only begun
                    cluster.apply(policy)
                    opened.append(place)

    thread = threading.Thread(target=open_all)
    thread.start()
    try:
        yield opened
    finally:
        over.set()
        thread.join()
        wait_for("the end of the probe's namespace", lambda: not places_of_probes(cluster, prefix), 90)


def test_a_network_that_enforces_is_known(cluster: Cluster, on_cluster: ClusterHarness):
    found = probe(on_cluster)
    if found.is_well is False and not cluster.is_developed:
        pytest.skip("this cluster's network enforces no NetworkPolicy")
    assert found == Finding(True, "The cluster enforces network policies.")


@pytest.mark.parametrize(
    ("directions", "said"),
    [
        (("egress",), "connections out of pods get through"),
        (("ingress",), "connections into pods get through"),
    ],
)
def test_one_that_does_not_is_known_by_the_end_at_which_nothing_holds(
    cluster: Cluster, on_cluster: ClusterHarness, directions: tuple[str, ...], said: str
):
    with allowed_besides(cluster, on_cluster, *directions) as opened:
        found = probe(on_cluster)
    assert opened
    assert found.is_well is False
    assert said in found.message
    assert "Calico or Cilium" in found.remedy
