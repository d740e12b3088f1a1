"""Jobs on fifty nodes of two shapes, which the real scheduler fills: what admission lets in gets its room, whole."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from tests.cluster.fake_nodes import FAKE, NEEDED, fake_nodes, on_fake_nodes, set_failing
from tests.cluster.pods import pod
from tests.cluster.reach import Cluster, wait_for
from tests.contract.engine_harness import ACCESS, InItsPlace, new_key, spec_of, wait_until
from yardmaster.engines.base import Capacity
from yardmaster.engines.kubernetes import KubernetesEngine
from yardmaster.ids import JobKey, new_id
from yardmaster.job.spec import NOTHING, Resources, Role, RoleSpec, TrainingSpec
from yardmaster.lifecycle.phases import Observation, TaskPhase
from yardmaster.queueing.admission import Candidate, Decision, EngineCapacity, Fit, Holder, Ledger, admit

# The first builds kwok, once per machine.
pytestmark = [pytest.mark.cluster, pytest.mark.alone, pytest.mark.timeout(700)]

GI = 1 << 30
SMALL, LARGE = 40, 10
SHAPES = (
    f"{SMALL} name=small cpu=8 memory=32Gi",
    f"{LARGE} name=large cpu=16 memory=64Gi nvidia.com/gpu=4 label=yardmaster-test/gpu=yes",
)
PATIENCE = 120.0
ALL = (SMALL * 8 + LARGE * 16, SMALL * 32 + LARGE * 64, LARGE * 4)
"""Cores, GiB, GPUs."""
NOW = datetime(2026, 1, 1, tzinfo=UTC)
HEARD = 10.0
"""Seconds until a process that watches knows of a change of a node."""


@pytest.fixture(scope="module")
def many(cluster: Cluster) -> Iterator[Cluster]:
    if not cluster.is_developed:
        pytest.skip(NEEDED)
    with fake_nodes(cluster, *SHAPES):
        yield cluster


@pytest.fixture(scope="module")
def prefix(many: Cluster) -> Iterator[str]:
    """Of the namespaces of this module; they are gone, with their pods, before the nodes are."""
    made = f"yardmaster-n{secrets.token_hex(2)}-"
    yield made
    many.remove_namespaces(made)
    wait_for("the end of the namespaces", lambda: not many.namespaces(made), 120)


def engine_on(cluster: Cluster, prefix: str, *, watch: bool = False, **labels: str) -> KubernetesEngine:
    tasks = {"image": cluster.probe_image, "namespace_prefix": prefix, **on_fake_nodes(**labels)}
    return InItsPlace(kubeconfig=cluster.kubeconfig, tasks=tasks, watch=watch)


@pytest.fixture
def engine(many: Cluster, prefix: str) -> Iterator[KubernetesEngine]:
    made = engine_on(many, prefix)
    yield made
    made.close()


@pytest.fixture
def watching(many: Cluster, prefix: str) -> Iterator[KubernetesEngine]:
    """An engine that hears of changes, as the portal's does."""
    made = engine_on(many, prefix, watch=True)
    made.capacity()
    wait_for("the watches of nodes", made._watching.knows_capacity)
    yield made
    made.close()


@pytest.fixture
def key(engine: KubernetesEngine) -> Iterator[JobKey]:
    made = new_key()
    yield made
    engine.clean_up(made)


def _free(capacity: Capacity) -> tuple[float, int, int]:
    return capacity.free.cpu, capacity.free.memory // GI, capacity.free.gpus


def _all_run(seen: Observation) -> bool:
    return bool(seen.tasks) and all(task.phase is TaskPhase.RUNNING for task in seen.tasks)


def _workers(count: int, **each: float) -> TrainingSpec:
    """A job of that many workers and a small parameter server."""
    size = Resources(**{"cpu": 1, "memory": GI, **each})
    return spec_of(roles={Role.WORKER: RoleSpec(count, size), Role.PS: RoleSpec(1, Resources(0.1, GI // 8))})


def _decide(spec: TrainingSpec, capacity: Capacity, *held: tuple[JobKey, TrainingSpec]) -> Decision:
    """What admission says of it beside the jobs that run."""
    candidate = Candidate.of(spec, job_id=new_id(), namespace_id=new_id(), queued_at=NOW)
    reserved = sum((one.total() for _, one in held), NOTHING)
    room = EngineCapacity(capacity.total, capacity.free, capacity.largest_task, reserved, capacity.nodes)
    holders = tuple(Holder(key.job_id, key.namespace_id, one.total()) for key, one in held)
    return admit(candidate, [], Ledger(room, holders=holders), NOW)


def _nodes(seen: Observation, *roles: Role) -> Counter[str]:
    return Counter(task.node for task in seen.tasks if task.role in (roles or (Role.WORKER,)))


def test_room_is_that_of_all_nodes_and_of_the_largest(engine: KubernetesEngine):
    found = engine.capacity()
    assert _free(found) == ALL
    assert (found.largest_task.cpu, found.largest_task.memory, found.largest_task.gpus) == (16, 64 * GI, 4)


def test_what_does_not_ask_for_them_stays_off_them(many: Cluster, namespace: str):
    many.apply(pod(many, namespace, "ordinary", "print('here')"))
    node = wait_for("a node", lambda: many.get("pod", "ordinary", namespace)["spec"].get("nodeName"))
    assert node not in many.names("nodes", "-l", FAKE)


def test_a_job_over_all_nodes_is_let_in_and_runs_where_the_scheduler_puts_it(engine: KubernetesEngine, key: JobKey):
    """Five cores a task: one fits on a small node, three on a large one."""
    spec = _workers(SMALL + 3 * LARGE, cpu=5)
    assert _decide(spec, engine.capacity()).fit is Fit.FITS_NOW
    engine.submit(spec, key, ACCESS)
    found = _nodes(wait_until(engine, key, _all_run, PATIENCE))
    assert Counter(found.values()) == {1: SMALL, 3: LARGE}


def test_enough_in_sum_and_not_on_single_nodes_is_never_let_in(engine: KubernetesEngine):
    """One task more than have a place, though the sum has room for 96 of them."""
    assert ALL[0] // 5 > SMALL + 3 * LARGE
    found = _decide(_workers(SMALL + 3 * LARGE + 1, cpu=5), engine.capacity())
    assert found.fit is Fit.NEVER_FITS
    assert f"take {SMALL + 3 * LARGE + 1} of its {SMALL + 3 * LARGE + 2} tasks" in found.message


def test_what_runs_holds_its_places_on_the_nodes_that_the_scheduler_chose(engine: KubernetesEngine, key: JobKey):
    spec = _workers(SMALL, cpu=5)
    engine.submit(spec, key, ACCESS)
    seen = wait_until(engine, key, _all_run, PATIENCE)
    capacity = engine.capacity()
    assert {node.name: len(node.bound) for node in capacity.nodes if node.bound} == _nodes(seen, *Role)
    held = (key, spec)
    assert _decide(_workers(3 * LARGE, cpu=5), capacity, held).fit is Fit.FITS_NOW
    assert _decide(_workers(3 * LARGE + 1, cpu=5), capacity, held).fit is Fit.WAITS


def test_accelerators_are_where_the_scheduler_finds_them(engine: KubernetesEngine, key: JobKey):
    spec = _workers(2 * LARGE, gpus=2)
    assert _decide(spec, engine.capacity()).fit is Fit.FITS_NOW
    engine.submit(spec, key, ACCESS)
    found = _nodes(wait_until(engine, key, _all_run, PATIENCE))
    assert found == {f"fake-large-{index}": 2 for index in range(LARGE)}


def test_a_cordoned_node_leaves_the_room_and_comes_back(many: Cluster, watching: KubernetesEngine):
    many.kubectl("cordon", "fake-large-0")
    try:
        wait_for("less room", lambda: _free(watching.capacity()) == (ALL[0] - 16, ALL[1] - 64, ALL[2] - 4), HEARD)
        assert _decide(_workers(LARGE, gpus=4), watching.capacity()).fit is Fit.WAITS
    finally:
        many.kubectl("uncordon", "fake-large-0")
    wait_for("all the room", lambda: _free(watching.capacity()) == ALL, HEARD)
    assert _decide(_workers(LARGE, gpus=4), watching.capacity()).fit is Fit.FITS_NOW


@pytest.mark.long
def test_a_node_that_is_not_ready_leaves_the_room_and_comes_back(many: Cluster, watching: KubernetesEngine):
    set_failing(many, "fake-small-3", True)
    try:
        wait_for("less room", lambda: _free(watching.capacity()) == (ALL[0] - 8, ALL[1] - 32, ALL[2]), HEARD)
    finally:
        set_failing(many, "fake-small-3", False)
    wait_for("all the room", lambda: _free(watching.capacity()) == ALL, HEARD)


def test_a_drained_node_is_left_by_its_tasks_which_go_on_elsewhere(many: Cluster, watching: KubernetesEngine):
    key = new_key()
    watching.submit(_workers(LARGE, gpus=2), key, ACCESS)
    try:
        node = next(iter(_nodes(wait_until(watching, key, _all_run, PATIENCE))))
        _drain(many, node)
        seen = wait_until(watching, key, lambda now: _all_run(now) and node not in _nodes(now, *Role), PATIENCE)
        assert {task.restarts for task in seen.tasks if task.role is Role.WORKER} == {0, 1}
        assert _free(watching.capacity())[2] == ALL[2] - 4
    finally:
        many.kubectl("uncordon", node)
        watching.clean_up(key)


@pytest.mark.long
def test_tasks_of_a_drained_node_that_fit_nowhere_else_say_so(many: Cluster, watching: KubernetesEngine):
    """Within seconds, and the rest of the job holds its places."""
    key = new_key()
    watching.submit(_workers(LARGE, gpus=4), key, ACCESS)
    try:
        seen = wait_until(watching, key, _all_run, PATIENCE)
        node = next(iter(_nodes(seen)))
        _drain(many, node)
        waits = wait_until(watching, key, lambda now: _reasons(now)["Unschedulable"] == 1, HEARD)
        assert len(_nodes(waits) - Counter([""])) >= LARGE - 1
        many.kubectl("uncordon", node)
        wait_until(watching, key, _all_run, PATIENCE)
    finally:
        many.kubectl("uncordon", node)
        watching.clean_up(key)


def _drain(cluster: Cluster, node: str) -> None:
    """As an operator does. Returns when the pods that were there have ended."""
    cluster.kubectl("drain", node, "--force", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=50s")


def _reasons(seen: Observation) -> Counter[str]:
    return Counter(task.reason for task in seen.tasks)
