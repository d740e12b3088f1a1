"""Which machine gets which task."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.contract.engine_harness import spec_of
from yardmaster.engines.hosts.placing import placed
from yardmaster.job.spec import Resources, Role, RoleSpec
from yardmaster.queueing.placement import Board, Node, tasks_of
from yardmaster.queueing.resources import units_of

GI = 1 << 30


def machine(cpu: float, memory: int = 64, gpus: int = 0) -> Resources:
    return Resources(cpu, memory * GI, gpus)


def roles(workers: int, servers: int, worker: Resources, server: Resources) -> dict[Role, RoleSpec]:
    return {Role.WORKER: RoleSpec(workers, worker), Role.PS: RoleSpec(servers, server)}


def test_a_job_that_fits_on_one_machine_is_on_the_one_with_the_least_left():
    spec = spec_of(roles=roles(2, 1, machine(1, 1), machine(1, 1)))
    free = {"large": machine(16), "small": machine(3), "tiny": machine(2)}
    assert placed(spec, free) == {"small": spec.tasks()}


def test_machines_with_gpus_are_left_to_jobs_that_need_them():
    spec = spec_of(roles=roles(1, 1, machine(1, 1), machine(1, 1)))
    assert placed(spec, {"gpu": machine(2, 64, 4), "cpu": machine(8)}) == {"cpu": spec.tasks()}
    wanted = spec_of(roles=roles(1, 1, machine(1, 1, gpus=1), machine(1, 1)))
    assert placed(wanted, {"gpu": machine(2, 64, 4), "cpu": machine(8)}) == {"gpu": wanted.tasks()}


def test_a_large_job_is_on_several_and_its_indices_are_in_order():
    spec = spec_of(roles=roles(4, 1, machine(1, 1), machine(0.5, 1)))
    found = placed(spec, {"a": machine(2), "b": machine(2), "c": machine(1)})
    assert found is not None
    assert sorted(task for some in found.values() for task in some) == sorted(spec.tasks())
    for some in found.values():
        indices = [index for role, index in some if role is Role.WORKER]
        assert indices == list(range(indices[0], indices[0] + len(indices))) if indices else True


def test_what_has_no_place_at_once_has_none():
    spec = spec_of(roles=roles(3, 0, machine(1.2, 1), machine(1, 1)) | {Role.PS: RoleSpec(1, machine(0.1, 1))})
    assert placed(spec, {"a": machine(2), "b": machine(2)}) is None
    assert placed(spec, {}) is None


def test_only_some_of_the_tasks_may_be_placed():
    spec = spec_of(roles=roles(3, 1, machine(1, 1), machine(1, 1)))
    some = [(Role.WORKER, 2), (Role.PS, 0)]
    assert placed(spec, {"a": machine(2)}, some) == {"a": some}


amounts = st.sampled_from([0.5, 1.0, 1.5, 2.0])
frees = st.lists(
    st.tuples(st.sampled_from([0.5, 1.0, 2.0, 3.0, 4.0]), st.integers(1, 8), st.integers(0, 2)), max_size=6
)


@given(frees, st.integers(1, 6), st.integers(1, 3), amounts, amounts, st.integers(0, 1))
def test_no_machine_gets_more_than_it_has_and_what_is_admitted_has_a_place(sizes, workers, servers, cpu, other, gpus):
    asked = roles(workers, servers, Resources(cpu, GI, gpus), Resources(other, GI))
    spec = spec_of(roles=asked)
    free = {f"m{at}": machine(*size) for at, size in enumerate(sizes)}
    found = placed(spec, free)
    nodes = [Node(name, one, one) for name, one in free.items()]
    board = Board.now(nodes, frozenset(), [])
    if found is None:
        assert not board.fits(tasks_of(spec, {role: one.replicas for role, one in asked.items()}))
        return
    assert Counter(task for some in found.values() for task in some) == Counter(spec.tasks())
    for name, some in found.items():
        left = Counter(units_of(free[name]))
        for role, _ in some:
            left.subtract(units_of(asked[role].resources))
        assert min(left.values()) >= 0


@pytest.mark.parametrize("count", [200])
def test_two_hundred_tasks_are_placed(count: int):
    spec = spec_of(roles=roles(count - 4, 4, machine(1, 1), machine(2, 2)))
    found = placed(spec, {f"m{at}": machine(26, 64) for at in range(8)})
    assert found is not None
    assert sum(len(some) for some in found.values()) == count
