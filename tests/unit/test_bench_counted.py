"""How the benchmarks on a cluster name the requests that they count."""

from __future__ import annotations

import pytest

from tests.bench.cluster.counted import Request

PODS = "https://server:6443/api/v1/namespaces/ns/pods"


@pytest.mark.parametrize(
    ("method", "url", "verb", "resource"),
    [
        ("GET", PODS + "?labelSelector=a", "list", "pods"),
        ("GET", "https://server/api/v1/pods?watch=true&labelSelector=a", "watch", "pods"),
        ("GET", PODS + "/one", "get", "pods"),
        ("GET", PODS + "/one/log?tailLines=3", "get", "pods"),
        ("GET", "https://server/api/v1/namespaces", "list", "namespaces"),
        ("GET", "https://server/api/v1/namespaces/pods", "get", "namespaces"),
        ("POST", PODS, "create", "pods"),
        ("PATCH", PODS + "/one", "patch", "pods"),
        ("DELETE", PODS + "/one", "delete", "pods"),
        ("DELETE", PODS + "?labelSelector=a", "deletecollection", "pods"),
        ("PATCH", "https://server/apis/batch/v1/namespaces/ns/jobs/j-worker", "patch", "jobs"),
    ],
)
def test_a_request_is_named_by_its_verb_and_resource(method: str, url: str, verb: str, resource: str):
    found = Request.of(method, url)
    assert (found.verb, found.resource) == (verb, resource)


def test_a_dry_run_counts_as_a_write():
    found = Request.of("PATCH", PODS + "/one?dryRun=All")
    assert found.is_dry_run
    assert found.is_write
    assert not Request.of("GET", PODS).is_write
