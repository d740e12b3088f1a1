"""An engine of several nodes: a job starts where all its tasks have a place at once, and else waits and says so."""

from __future__ import annotations

import pytest

from apps.jobs.checking import NeverFits, accepted_or_refused
from apps.jobs.models import Reservation
from apps.namespaces.models import Namespace
from apps.workbench.services import tensorboard_start
from yardmaster.job.spec import Resources
from yardmaster.job.spec_json import spec_from_json
from yardmaster.queueing.packing import SERVICE
from yardmaster.queueing.placement import Bound, Node

TWO = Resources(2, 8 << 30)


def workers(count: int, cpu: float) -> dict:
    return {"strategy": "multi_worker_mirrored", "roles": {"worker": {"replicas": count, "cpu": cpu, "memory": "1Gi"}}}


@pytest.fixture
def nodes(world):
    world.engine.set_nodes(Node("a", TWO, TWO), Node("b", TWO, TWO))
    return world.engine


def test_what_is_promised_to_a_job_counts_before_its_pods_have_nodes(world, ada, nodes):
    first = world.look(world.launch(ada, **workers(2, 1.2)))
    second = world.look(world.launch(ada, **workers(2, 0.9)))
    assert first.phase == "RUNNING"
    assert [row.tasks for row in Reservation.objects.filter(job=first)] == [2]
    assert (second.phase, second.reason) == ("QUEUED", "WaitingForCapacity")
    lack = {"pool": "capacity", "resource": "cpu", "needs": 1.8, "unused": 1.6, "limit": 4.0, "short_by": 0.2}
    assert second.waiting["numbers"] == [lack]


def test_enough_in_sum_and_not_on_single_nodes_waits_with_the_number_of_tasks_that_have_a_place(world, ada, nodes):
    first = world.look(world.launch(ada, **workers(2, 1.2)))
    second = world.look(world.launch(ada, strategy="single", roles={"worker": {"cpu": 1.5, "memory": "1Gi"}}))
    assert (second.phase, second.reason) == ("QUEUED", "WaitingForCapacity")
    assert "0 of its 1 task" in second.message
    lack = {"pool": "nodes", "resource": "tasks", "needs": 1, "unused": 0, "limit": 1, "short_by": 1}
    assert second.waiting["numbers"] == [lack]
    assert [one["job"] for one in second.waiting["holders"]] == [str(first.pk)]
    world.engine.succeed(first)
    world.until_running(second)


def test_tasks_that_have_nodes_are_counted_there_and_not_twice(world, ada, nodes):
    first = world.look(world.launch(ada, **workers(2, 0.9)))
    on_a = (Bound(first.pk, "worker", Resources(0.9, 1 << 30)),) * 2
    nodes.set_nodes(Node("a", TWO, TWO, on_a), Node("b", TWO, TWO))
    assert world.look(world.launch(ada, **workers(2, 1))).phase == "RUNNING", "both on the other node"


def test_a_session_takes_nothing_of_the_nodes_that_are_for_training(world, ada, nodes):
    apart, training = (frozenset({(kind, False)}) for kind in (SERVICE, "worker"))
    nodes.set_nodes(Node("a", TWO, TWO, takes=apart), Node("b", TWO, TWO, takes=training))
    home, rest = Namespace.objects.get(owner=ada), {"idle_limit": None, "engine": None, "accept_never_fits": False}
    session, _ = tensorboard_start(user=ada, namespace=home, job_ids=[], size="medium", **rest)
    assert world.look(session.job).phase == "RUNNING"
    whole = {"strategy": "single", "roles": {"worker": {"cpu": 2, "memory": "1Gi"}}}
    assert world.look(world.launch(ada, **whole)).phase == "RUNNING"
    assert world.look(world.launch(ada, **whole)).phase == "QUEUED"


def test_a_job_that_no_packing_takes_is_refused_with_the_largest_that_one_does(world, ada, nodes):
    spec = spec_from_json(world.spec_json(ada, **workers(3, 1.2)))
    with pytest.raises(NeverFits) as refused:
        accepted_or_refused(spec, Namespace.objects.get(owner=ada), "staged", world.now, accept=False)
    assert refused.value.facts["reason"] == "ExceedsCapacity"
    assert refused.value.facts["largest_fit"] == {"worker": 2}
    assert "2 of its 3 tasks" in refused.value.detail
