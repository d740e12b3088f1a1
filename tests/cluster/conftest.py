"""A cluster for the whole run, and a namespace for each test."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator

import pytest

from tests.cluster.reach import NEEDED, Cluster, find_cluster


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """Where there is none: skipped on a person's machine, a failure in CI."""
    found = find_cluster()
    if found is None:
        if os.environ.get("CI"):
            pytest.fail(NEEDED)
        pytest.skip(NEEDED)
    return found


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """Empty and `restricted`, as the portal's are; gone afterwards with all it holds."""
    name = f"yardmaster-test-{secrets.token_hex(4)}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    # A pod that comes before the account it runs as is refused.
    cluster.kubectl("wait", "--for=create", "serviceaccount/default", "--namespace", name, "--timeout=30s")
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")
