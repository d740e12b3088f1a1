"""Who is next by shares, who comes first by a guarantee, and that one job alone is told what the whole queue is."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.core.generators import NOW, one_task
from tests.unit.core.test_queue_decision import NAMESPACES, PATIENCE, ledgers, queues, with_started
from yardmaster.job.spec import NOTHING, Resources
from yardmaster.queueing.admission import Candidate, Code, EngineCapacity, Fit, Holder, Ledger, Quota, admit
from yardmaster.queueing.order import Order
from yardmaster.queueing.pools import Pools
from yardmaster.queueing.queue_decision import decide_queue
from yardmaster.queueing.resources import units_of
from yardmaster.queueing.shares import Member, Shares, Standing

GI = 1 << 30
RED, BLUE = (uuid.UUID(int=n) for n in (51, 52))
A, B, C = NAMESPACES[:3]


def job(number: int, namespace: uuid.UUID, cpu: float = 1, age: int = 0, priority: int = 0) -> Candidate:
    size = Resources(cpu, GI)
    return Candidate(uuid.UUID(int=number), namespace, NOW - timedelta(seconds=age), priority, size, one_task(size))


def books(tree: dict[uuid.UUID, Member], cpu: float = 8, **held: float) -> Ledger:
    """An engine of so many cores, of which namespaces hold some: `a=2`."""
    names = {"a": A, "b": B, "c": C}
    engine = Resources(cpu, 640 * GI)
    holders = tuple(
        Holder(uuid.UUID(int=900 + n), names[name], Resources(amount, 0))
        for n, (name, amount) in enumerate(held.items())
    )
    reserved = sum((one.resources for one in holders), NOTHING)
    shares = Shares(tree, {one.namespace_id: units_of(one.resources) for one in holders})
    return Ledger(EngineCapacity(engine, engine, engine, reserved), holders=holders, shares=shares)


def started(queue: Sequence[Candidate], ledger: Ledger) -> list[int]:
    found = decide_queue(queue, ledger, NOW, PATIENCE).decisions
    return [key.int for key, one in found.items() if one.fit is Fit.FITS_NOW]


def asked(queue: Sequence[Candidate], ledger: Ledger) -> list[int]:
    return [key.int for key in decide_queue(queue, ledger, NOW, PATIENCE).decisions]


def test_who_holds_the_least_is_next_and_equal_ones_take_turns() -> None:
    tree = {A: Member(), B: Member()}
    queue = [job(n, A, age=90 - n) for n in range(1, 5)] + [job(n, B, age=9) for n in range(5, 9)]
    assert asked(queue, books(tree)) == [1, 5, 2, 6, 3, 7, 4, 8]
    assert asked(queue, books(tree, a=2)) == [5, 6, 1, 7, 2, 8, 3, 4]


def test_a_weight_of_three_starts_three_of_four() -> None:
    tree = {A: Member(weight=3), B: Member()}
    queue = [job(n, B, age=900 - n) for n in range(1, 20)] + [job(n, A, age=9) for n in range(20, 40)]
    mine = [n for n in started(queue, books(tree)) if n >= 20]
    assert len(mine) == 6


def test_the_share_of_a_group_counts_before_those_of_its_namespaces() -> None:
    tree = {RED: Member(name="red"), BLUE: Member(name="blue"), A: Member(RED), B: Member(RED), C: Member(BLUE)}
    queue = [job(n, (A, B, C)[n % 3], age=90 - n) for n in range(1, 25)]
    first = started(queue, books(tree))
    assert len([n for n in first if n % 3 == 2]) == 4, "C alone has half"


def test_weight_nought_gets_what_others_leave() -> None:
    tree = {A: Member(weight=0), B: Member()}
    queue = [job(1, A, age=900), *(job(n, B, 2) for n in range(2, 5))]
    assert started(queue, books(tree)) == [2, 3, 4, 1]
    assert started([*queue, job(5, B, 2)], books(tree)) == [2, 3, 4, 5]


def test_the_dominant_resource_decides() -> None:
    """A holds a quarter of the cores and half of the memory; B three eighths of the cores."""
    tree = {A: Member(), B: Member()}
    ledger = books(tree, a=2, b=3)
    shares = Shares(tree, {A: {"cpu": 2000, "memory": 320 * GI}, B: {"cpu": 3000, "memory": GI}})
    assert asked([job(1, A, age=90), job(2, B)], replace(ledger, shares=shares)) == [2, 1]


def test_a_priority_up_to_its_ceiling_comes_before_shares() -> None:
    tree = {A: Member(), B: Member()}
    ledger = replace(books(tree, a=6), quotas={A: Quota(priority_ceiling=5)})
    queue = [job(1, B, age=90), job(2, A, priority=5), job(3, A, priority=1000), job(4, B, priority=1000)]
    assert asked(queue, ledger) == [3, 2, 4, 1]


def test_namespaces_in_no_group_are_served_as_they_come_and_count_as_one() -> None:
    tree = {C: Member()}
    queue = [job(1, A, age=90), job(2, A, age=80), job(3, B, age=70), job(4, C), job(5, C)]
    assert asked(queue, books(tree)) == [1, 4, 2, 5, 3]


def test_who_waits_is_told_of_the_share() -> None:
    tree = {A: Member(), B: Member(weight=3)}
    ledger = books(tree, a=4, b=4)
    queue = [job(1, A, age=90), job(2, B), job(3, B)]
    said = decide_queue(queue, ledger, NOW, PATIENCE).decisions[queue[0].job_id]
    assert said.code is Code.WAITING_FOR_CAPACITY
    assert said.share is not None
    assert (said.share.used, said.share.fair) == (0.5, 0.25)
    assert said.message.endswith(
        "Your namespace uses 50% of the engine, its share is 25%: 2 jobs of others are before it."
    )
    other = decide_queue(queue, ledger, NOW, PATIENCE).decisions[queue[1].job_id]
    assert other.share is None


def test_what_is_guaranteed_comes_first_and_borrowers_get_nothing_of_it() -> None:
    """B borrows all but one core. A's job of two cores has just come: no core goes to B before it starts."""
    tree = {A: Member(guaranteed={"cpu": 4000}), B: Member()}
    queue = [job(1, B, 1, age=5, priority=0), job(2, A, 2, age=1)]
    ledger = books(tree, b=7)
    found = decide_queue(queue, ledger, NOW, PATIENCE).decisions
    assert [key.int for key in found] == [2, 1]
    assert found[queue[0].job_id].code is Code.WAITING_FOR_TURN
    assert started(queue, books({**tree, A: Member()}, b=7)) == [1], "without a guarantee it may pass for a while"
    assert started(queue[:1], ledger) == [1], "while the lender wants nothing it is lent"


def test_beyond_its_guarantee_a_namespace_is_one_among_others() -> None:
    tree = {A: Member(guaranteed={"cpu": 2000}), B: Member()}
    queue = [job(n, A, age=90) for n in (1, 2, 3, 4)] + [job(n, B) for n in (5, 6, 7, 8)]
    assert asked(queue, books(tree))[:2] == [1, 2]
    assert asked(queue, books(tree))[2:] == [5, 6, 3, 7, 4, 8]


def test_a_guarantee_of_cores_guarantees_no_gpu() -> None:
    tree = {A: Member(guaranteed={"cpu": 8000}), B: Member()}
    ledger = books(tree, a=1)
    gpu = replace(job(1, A, age=1), total=Resources(1, GI, 1))
    order = Order([gpu, job(2, B, age=0)], ledger, Pools(ledger))
    assert [place.borrows for place in order] == [True, True]


def test_a_circle_of_groups_ends() -> None:
    standing = Standing(Shares({RED: Member(BLUE), BLUE: Member(RED), A: Member(RED)}), {"cpu": 1})
    assert len(standing.path(A)) <= 8


_weights = st.sampled_from([0, 1, 1, 1, 2, 5])
_guarantees = st.sampled_from([{}, {}, {}, {"cpu": 2000}, {"cpu": 4000, "gpus": 1}, {"memory": 3 * GI}])


@st.composite
def trees(draw: st.DrawFn) -> dict[uuid.UUID, Member]:
    tree = {
        RED: Member(None, draw(_weights), draw(_guarantees), "red"),
        BLUE: Member(draw(st.sampled_from([None, RED])), draw(_weights), draw(_guarantees), "blue"),
    }
    for one in NAMESPACES:
        if draw(st.integers(0, 3)):
            tree[one] = Member(draw(st.sampled_from([None, RED, BLUE])), draw(_weights), draw(_guarantees))
    return tree


def shared(ledger: Ledger, tree: dict[uuid.UUID, Member]) -> Ledger:
    held: dict[uuid.UUID, Resources] = {}
    for one in ledger.holders:
        if one.on_engine:
            held[one.namespace_id] = held.get(one.namespace_id, NOTHING) + one.resources
    return replace(ledger, shares=Shares(tree, {key: units_of(one) for key, one in held.items()}))


@settings(max_examples=150, deadline=None)
@given(queues(), ledgers(), trees())
def test_what_the_queue_is_told_is_what_each_job_is_told_alone(
    queue: list[Candidate], ledger: Ledger, tree: dict[uuid.UUID, Member]
) -> None:
    """Pass after pass, until nothing more starts; what then waits is told the same in both ways."""
    for _ in range(len(queue) + 1):
        ledger = shared(ledger, tree)
        found = decide_queue(reversed(queue), ledger, NOW, PATIENCE)
        here = [one for one in queue if found.decisions[one.job_id].fit is Fit.FITS_NOW]
        if not here:
            break
        assert admit(first_of(found.decisions, here), queue, ledger, NOW, PATIENCE).fit is Fit.FITS_NOW
        for one in here:
            ledger = with_started(ledger, one)
        queue = [replace(one, turn_at=found.turns.get(one.job_id, one.turn_at)) for one in queue if one not in here]
    assert {one.job_id for one in queue} == set(found.decisions)
    for one in queue:
        assert admit(one, queue, ledger, NOW, PATIENCE) == found.decisions[one.job_id]


def first_of(order: object, some: Sequence[Candidate]) -> Candidate:
    places = {key: at for at, key in enumerate(order)}  # type: ignore[call-overload, var-annotated]
    return min(some, key=lambda one: places[one.job_id])


@settings(max_examples=100, deadline=None)
@given(queues(), ledgers(), trees())
def test_no_pool_is_ever_overdrawn_whatever_the_shares(
    queue: list[Candidate], ledger: Ledger, tree: dict[uuid.UUID, Member]
) -> None:
    ledger = shared(ledger, tree)
    found = decide_queue(queue, ledger, NOW, PATIENCE).decisions
    pools = Pools(ledger)
    for key, decision in found.items():
        one = next(each for each in queue if each.job_id == key)
        needs = pools.needs(one)
        if decision.fit is Fit.FITS_NOW:
            assert not pools.lacking(needs)
            pools.take(needs)


@settings(max_examples=100, deadline=None)
@given(queues(), ledgers())
def test_without_groups_the_order_is_that_of_before_answer_by_answer(queue: list[Candidate], ledger: Ledger) -> None:
    """All namespaces in the one node of those that are in no group."""
    plain = decide_queue(queue, ledger, NOW, PATIENCE)
    found = decide_queue(queue, shared(ledger, {}), NOW, PATIENCE)
    assert list(found.decisions.items()) == list(plain.decisions.items())
    assert found.turns == plain.turns


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from([0.5, 1.0, 2.0]),
    st.integers(1, 6),
    st.lists(st.integers(1, 6), min_size=2, max_size=4),
    st.integers(4, 24),
)
def test_more_weight_never_gets_less(size: float, more: int, weights: list[int], cores: int) -> None:
    """Namespaces with more jobs than the engine holds, all of one size."""

    def cores_of_first(weight: int) -> float:
        tree = {key: Member(weight=one) for key, one in zip(NAMESPACES, [weight, *weights], strict=False)}
        queue = [
            job(1000 * at + n, key, size, age=n) for at, key in enumerate(tree, 1) for n in range(int(cores / size) + 1)
        ]
        found = decide_queue(queue, books(tree, cores), NOW, PATIENCE).decisions
        return sum(size for one in queue if one.namespace_id == A and found[one.job_id].fit is Fit.FITS_NOW)

    assert cores_of_first(weights[0] + more) >= cores_of_first(weights[0])


def test_who_may_start_nothing_makes_no_share_of_others_smaller() -> None:
    tree = {A: Member(), B: Member(), C: Member()}
    queue = [job(1, A, cpu=8, age=9), job(2, B, cpu=8, age=8), job(3, C, cpu=8, age=7)]
    ledger = books(tree, a=2)

    def fair(ledger: Ledger) -> float | None:
        found = Order(queue, ledger, Pools(ledger)).share_of(A)
        return found and round(found.fair, 2)

    assert fair(ledger) == 0.33
    assert fair(replace(ledger, held_jobs=frozenset([queue[1].job_id]))) == 0.5
    assert fair(replace(ledger, closed={B: Code.SUSPENDED, C: Code.HELD})) == 1.0
