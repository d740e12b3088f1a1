"""The contract suite, word for word, on a real cluster: tests that come to the suite come here, too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.engine_on_cluster import ClusterHarness
from tests.contract.test_engine_contract import *  # noqa: F403 - its tests, and the fixture `running`
from yardmaster.ids import JobKey

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


# A portal's engine watches. What asks each time makes the same calls: the contract with it is for `LONG=1`.
@pytest.fixture(params=[pytest.param("asks", marks=pytest.mark.long), "watches"])
def harness(request: pytest.FixtureRequest, on_cluster: ClusterHarness) -> Iterator[ClusterHarness]:
    on_cluster.engine = on_cluster.new_engine(watch=request.param == "watches")
    yield on_cluster
    on_cluster.engine.close()


@pytest.fixture
def key(harness: ClusterHarness) -> Iterator[JobKey]:
    made = harness.new_key()
    yield made
    harness.engine.clean_up(made)
