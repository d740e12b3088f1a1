"""The contract suite, word for word, on a real cluster: tests that come to the suite come here, too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.engine_on_cluster import ClusterHarness, cluster_harness
from tests.cluster.reach import Cluster
from tests.contract.test_engine_contract import *  # noqa: F403 - its tests, and the fixture `running`
from yardmaster.ids import JobKey

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


@pytest.fixture(scope="module")
def on_cluster(cluster: Cluster) -> Iterator[ClusterHarness]:
    if not cluster.own_address:
        pytest.skip("where pods reach this machine is not known: set YARDMASTER_TEST_OWN_ADDRESS")
    with cluster_harness(cluster) as harness:
        yield harness


@pytest.fixture(params=["asks", "watches"])
def harness(request: pytest.FixtureRequest, on_cluster: ClusterHarness) -> Iterator[ClusterHarness]:
    on_cluster.engine = on_cluster.new_engine(watch=request.param == "watches")
    yield on_cluster
    on_cluster.engine.close()


@pytest.fixture
def key(harness: ClusterHarness) -> Iterator[JobKey]:
    made = harness.new_key()
    yield made
    harness.engine.tidy(made)
