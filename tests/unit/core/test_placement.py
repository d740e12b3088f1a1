"""Whole jobs on many nodes: what is packed really fits, and what is refused really does not."""

from __future__ import annotations

import uuid
from functools import cache
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.job.spec import NOTHING, Resources
from yardmaster.queueing.placement import Board, Bound, Node, Tasks
from yardmaster.queueing.resources import units_of

GI = 1 << 30
JOB = uuid.UUID(int=7)

_sizes = st.builds(
    Resources,
    cpu=st.sampled_from([0.5, 1, 1.2, 1.5, 2, 3]),
    memory=st.sampled_from([0, GI, 3 * GI]),
    gpus=st.sampled_from([0, 0, 1, 2]),
)
_machines = st.builds(
    Resources,
    cpu=st.sampled_from([0, 1, 2, 2.5, 4]),
    memory=st.sampled_from([GI, 4 * GI, 6 * GI]),
    gpus=st.sampled_from([0, 0, 1, 2, 4]),
)
_kinds = st.sampled_from(
    [
        None,
        None,
        None,
        frozenset({("worker", True), ("worker", False)}),
        frozenset({("ps", False), ("chief", False), ("chief", True)}),
    ]
)
_nodes = st.lists(st.tuples(_machines, _kinds), min_size=1, max_size=4).map(
    lambda found: tuple(Node(f"n{at}", one, one, takes=kinds) for at, (one, kinds) in enumerate(found))
)
_jobs = st.lists(
    st.builds(Tasks, role=st.sampled_from(["worker", "ps", "chief"]), size=_sizes, count=st.integers(1, 3)),
    min_size=1,
    max_size=3,
    unique_by=lambda one: one.role,
).map(tuple)


def node(cpu: float, memory: int = 64 * GI, gpus: int = 0, name: str = "n") -> Node:
    amount = Resources(cpu, memory, gpus)
    return Node(name, amount, amount)


def tasks(count: int, cpu: float, gpus: int = 0, role: str = "worker") -> tuple[Tasks, ...]:
    return (Tasks(role, Resources(cpu, GI, gpus), count),)


def brute_force(nodes: tuple[Node, ...], wanted: tuple[Tasks, ...]) -> bool:
    """Every task on every node, one after another."""
    each = [(one.kind, tuple(sorted(units_of(one.size).items()))) for one in wanted for _ in range(one.count)]
    takes = [one.takes for one in nodes]

    @cache
    def can(at: int, left: tuple[tuple[tuple[str, int], ...], ...]) -> bool:
        if at == len(each):
            return True
        kind, size = each[at]
        for number, has in enumerate(left):
            if takes[number] is not None and kind not in takes[number]:
                continue
            amounts = dict(has)
            if all(amounts.get(name, 0) >= need for name, need in size):
                rest = {name: amount - dict(size).get(name, 0) for name, amount in amounts.items()}
                if can(at + 1, (*left[:number], tuple(sorted(rest.items())), *left[number + 1 :])):
                    return True
        return False

    return can(0, tuple(tuple(sorted(units_of(one.free).items())) for one in nodes))


@settings(max_examples=400, deadline=None)
@given(_nodes, _jobs)
def test_a_job_fits_exactly_where_a_brute_force_packer_finds_a_packing(
    nodes: tuple[Node, ...], wanted: tuple[Tasks, ...]
) -> None:
    assert Board.idle(nodes).fits(wanted) == brute_force(nodes, wanted)


@settings(max_examples=200, deadline=None)
@given(_nodes, st.lists(_jobs, max_size=5))
def test_what_is_promised_to_several_jobs_has_a_place_for_all_of_them(
    nodes: tuple[Node, ...], jobs: list[tuple[Tasks, ...]]
) -> None:
    board, taken = Board.idle(nodes), list[Tasks]()
    for one in jobs:
        if board.fits(one):
            board.take(one)
            taken += one
    assert brute_force(nodes, tuple(taken))


@settings(max_examples=100, deadline=None)
@given(_nodes, _jobs)
def test_as_many_fit_as_are_said_to_and_all_only_where_the_job_fits(
    nodes: tuple[Node, ...], wanted: tuple[Tasks, ...]
) -> None:
    board = Board.idle(nodes)
    most, asked = board.most(wanted), sum(one.count for one in wanted)
    assert (most == asked) == board.fits(wanted)
    fitting = [
        sum(counts)
        for counts in product(*(range(one.count + 1) for one in wanted))
        if brute_force(nodes, tuple(Tasks(one.role, one.size, n) for one, n in zip(wanted, counts, strict=True)))
    ]
    assert most <= max(fitting)


def test_a_sum_that_is_enough_is_no_packing() -> None:
    nodes = (node(2), node(2))
    assert not Board.idle(nodes).fits(tasks(3, 1.2))
    assert Board.idle(nodes).most(tasks(3, 1.2)) == 2
    assert Board.idle(nodes).fits(tasks(2, 1.2))


def test_the_search_finds_what_the_greedy_packing_misses() -> None:
    nodes = (node(6, name="a"), node(6, name="b"))
    wanted = (*tasks(2, 3, role="chief"), *tasks(3, 2))
    assert Board.idle(nodes).fits(wanted)


def test_tasks_that_run_and_tasks_that_were_promised_a_place_are_both_counted() -> None:
    amount = Resources(4, 64 * GI)
    running = Node("n", amount, amount, (Bound(JOB, "worker", Resources(2, GI)),))
    promised = tasks(1, 1)
    assert not Board.now([running], frozenset({JOB}), promised).fits(tasks(2, 1))
    assert Board.now([running], frozenset({JOB}), ()).fits(tasks(2, 1))
    assert Board.now([running], frozenset(), promised).fits(tasks(3, 1))


def test_what_was_promised_and_has_no_place_leaves_the_rest_as_it_is() -> None:
    assert Board.now([node(2)], frozenset(), tasks(1, 3)).fits(tasks(2, 1))


def test_tasks_without_gpus_are_put_where_none_are() -> None:
    board = Board.idle([node(2, gpus=2, name="a"), node(2, name="b")])
    board.take(tasks(1, 2))
    assert board.fits(tasks(2, 1, gpus=1))


def test_a_task_that_asks_for_nothing_fits_anywhere_but_not_nowhere() -> None:
    assert Board.idle([node(1)]).fits((Tasks("ps", NOTHING, 3),))
    assert not Board.idle([]).fits((Tasks("ps", NOTHING, 1),))


def test_a_large_job_on_a_thousand_oddly_filled_nodes_is_decided_within_its_steps() -> None:
    nodes = [node(1 + at % 7, (1 + at % 5) * GI, at % 3, f"n{at}") for at in range(1000)]
    wanted = (*tasks(150, 2, 1), *tasks(49, 3, role="ps"), *tasks(1, 6, role="chief"))
    board = Board.idle(nodes)
    assert board.fits(wanted)
    board.take(wanted)
    assert not board.fits((*tasks(300, 3, 1), *tasks(300, 4, role="ps")))
