"""What a job's tasks reach on a real cluster: each other, names and the portal, and nothing else. All is tried."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.policies import OWN_RUN, PORTAL, WITHIN, Surroundings, surroundings
from tests.cluster.reach import Cluster

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def around(cluster: Cluster, own_address: str) -> Iterator[Surroundings]:
    with surroundings(cluster) as made:
        yield made


@pytest.fixture(scope="module")
def from_a_run(cluster: Cluster, around: Surroundings):
    tried = around.tries(around.mine)
    # Where the network enforces nothing, all of it gets through; the development cluster's does.
    if not cluster.is_developed and all(one.through for one in tried.values()):
        pytest.skip("this cluster's network enforces no NetworkPolicy")
    return tried


def test_a_task_reaches_its_run_names_and_the_portal_and_nothing_else(from_a_run):
    assert {name for name, one in from_a_run.items() if one.through} == WITHIN


def test_another_run_of_the_namespace_is_held_in_its_own_bounds(around: Surroundings, from_a_run):
    through = {name for name, one in around.tries(around.beside).items() if one.through}
    assert through == WITHIN - {OWN_RUN} | {"another run of the namespace"}  # as seen from the first


def test_all_of_it_answers_where_no_policy_holds(cluster: Cluster, around: Surroundings, from_a_run):
    """Else what is held would be held by chance. Pods of runs stay closed: policies hold at both ends."""
    held = {name for name, one in around.tries(None).items() if not one.through}
    assert PORTAL not in held
    closed = {OWN_RUN, "another run of the namespace", "another namespace"}
    assert held == closed | (set() if cluster.is_developed else held & {"a cloud's metadata"})
