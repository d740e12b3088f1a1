"""A cluster for the whole run; on it a namespace for each test, an engine whose tasks obey, or a whole portal."""

from __future__ import annotations

import json
import os
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster.account import Account, portal_account
from tests.cluster.engine_on_cluster import ClusterHarness, cluster_harness
from tests.cluster.reach import NEEDED, Cluster, find_cluster
from tests.real.portal import WHOLE, RealPortal, real_portal
from yardmaster.ids import JobKey
from yardmaster_client import Yardmaster


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """Where there is none: skipped on a person's machine, a failure in CI."""
    found = find_cluster()
    if found is None:
        if os.environ.get("CI"):
            pytest.fail(NEEDED)
        pytest.skip(NEEDED)
    return found


@pytest.fixture(scope="session")
def own_address(cluster: Cluster) -> str:
    """Where pods reach this machine."""
    if not cluster.own_address:
        pytest.skip("nothing says at which address pods reach this machine: set YARDMASTER_TEST_OWN_ADDRESS")
    return cluster.own_address


@pytest.fixture(scope="session")
def account(cluster: Cluster) -> Iterator[Account]:
    """The portal's, as deploy/kubernetes gives it. Engines and portals of the tests have it, so that a right that it
    lacks is seen. Prefixes of their namespaces begin with its own."""
    with portal_account(cluster, f"yt-{secrets.token_hex(2)}-") as made:
        yield made


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """Empty and `restricted`, as the portal's are; gone afterwards with all it holds."""
    name = f"yardmaster-test-{secrets.token_hex(4)}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    # A pod that comes before the account it runs as is refused.
    cluster.kubectl("wait", "--for=create", "serviceaccount/default", "--namespace", name, "--timeout=30s")
    yield name
    cluster.remove_namespace(name)


@pytest.fixture(scope="module")
def on_cluster(cluster: Cluster, account: Account, own_address: str) -> Iterator[ClusterHarness]:
    """The engine, and a hand in its tasks. The runs of a module share a namespace, which is removed at the end."""
    with cluster_harness(cluster, account) as harness:
        yield harness


@pytest.fixture
def key(on_cluster: ClusterHarness) -> Iterator[JobKey]:
    """Of a run that is removed, whatever its tasks were told to do."""
    made = on_cluster.new_key()
    yield made
    on_cluster.engine.clean_up(made)
    on_cluster.order_stand_in()


@pytest.fixture(scope="module")
def portal(cluster: Cluster, account: Account, own_address: str) -> Iterator[RealPortal]:
    """A whole portal that listens where pods reach it."""
    with portal_on(cluster, account, own_address) as running:
        yield running


@contextmanager
def portal_on(
    cluster: Cluster,
    account: Account,
    own_address: str,
    more: Mapping[str, str] | None = None,
    host: str = "",
    **tasks: object,
) -> Iterator[RealPortal]:
    """The same, with more settings and options of tasks; it listens at `host`, if one is named. A prefix of its own for
    its namespaces, which are removed at the end."""
    prefix = f"{account.prefix}p{secrets.token_hex(2)}-"
    settings = {
        "YARDMASTER_KUBECONFIG": account.cluster.kubeconfig,
        "YARDMASTER_KUBERNETES_IMAGE": cluster.task_image,
        "YARDMASTER_KUBERNETES_TASKS": json.dumps({**account.options, "namespace_prefix": prefix, **tasks}),
        "YARDMASTER_DEFAULT_ENGINE": "kubernetes",
        "YARDMASTER_ALLOWED_HOSTS": f"127.0.0.1,localhost,{own_address}",
        **(more or {}),
    }
    with tempfile.TemporaryDirectory(prefix="yardmaster-cluster-") as folder:
        with real_portal(Path(folder), WHOLE, settings, host or own_address, own_address) as running:
            yield running
        cluster.remove_namespaces(prefix)


@pytest.fixture(scope="module")
def ada(portal: RealPortal) -> Iterator[Yardmaster]:
    with Yardmaster(portal.url, portal.token_of("ada")) as client:
        yield client


@pytest.fixture(scope="module")
def bob(portal: RealPortal) -> Iterator[Yardmaster]:
    with Yardmaster(portal.url, portal.token_of("bob")) as client:
        yield client
