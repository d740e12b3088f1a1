"""A whole queue decided in one walk gets the answers that `admit` gives to one job after the other."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.core.generators import NOW, one_task
from yardmaster.job.spec import NOTHING, Resources
from yardmaster.queueing.admission import (
    MOST_SHOWN,
    Candidate,
    Code,
    Decision,
    EngineCapacity,
    Fit,
    Holder,
    Ledger,
    Quota,
    Usage,
    admit,
)
from yardmaster.queueing.placement import Board, Node, Tasks
from yardmaster.queueing.pools import Pools
from yardmaster.queueing.queue_decision import decide_queue
from yardmaster.queueing.turns import in_order
from yardmaster.queueing.wording import closed_nodes

GI = 1 << 30
NAMESPACES = tuple(uuid.UUID(int=n) for n in range(1, 7))
PATIENCE = timedelta(minutes=10)
RARE = "vendor.example/fpga"

_amounts = st.builds(
    Resources,
    cpu=st.sampled_from([0, 0.25, 0.5, 1, 1.5, 2, 4]),
    memory=st.sampled_from([0, GI, 2 * GI, 5 * GI]),
    gpus=st.sampled_from([0, 0, 0, 1, 2]),
    extended=st.sampled_from([{}, {}, {}, {RARE: 1}, {"rdma/hca": 1}, {"no-machine/has": 1}]),
)
_engines = st.builds(
    Resources,
    cpu=st.integers(0, 16),
    memory=st.integers(0, 24).map(lambda n: n * GI),
    gpus=st.integers(0, 4),
    extended=st.sampled_from([{}, {RARE: 2}, {RARE: 1, "rdma/hca": 3}]),
)
_quotas = st.builds(
    Quota,
    cpu=st.none() | st.integers(0, 8),
    memory=st.none() | st.integers(0, 12).map(lambda n: n * GI),
    gpus=st.none() | st.integers(0, 3),
    running_jobs=st.none() | st.integers(0, 5),
    priority_ceiling=st.sampled_from([0, 0, 1, 5]),
)
_priorities = st.sampled_from([0, 0, 0, -3, 1, 2, 5, 1000])


@st.composite
def queues(draw: st.DrawFn, most: int = 45) -> list[Candidate]:
    """Jobs of several namespaces, each queued at a time of its own; some for longer than the patience."""
    ages = draw(st.lists(st.integers(1, 1500), unique=True, max_size=most))
    found = []
    for number, age in enumerate(ages):
        total = draw(_amounts)
        sizes = draw(st.sampled_from([(total,), (total, NOTHING), (Resources(0.25, 0),)]))
        namespace = draw(st.sampled_from(NAMESPACES))
        queued_at = NOW - timedelta(seconds=age)
        turn_at = draw(st.none() | st.just(queued_at - timedelta(seconds=2000, milliseconds=1)))
        found.append(
            Candidate(
                uuid.UUID(int=100 + number), namespace, queued_at, draw(_priorities), total, one_task(*sizes), turn_at
            )
        )
    return found


@st.composite
def ledgers(draw: st.DrawFn) -> Ledger:
    total = draw(_engines)
    held = [
        Holder(uuid.UUID(int=9000 + n), draw(st.sampled_from(NAMESPACES)), draw(_amounts), draw(st.booleans()))
        for n in range(draw(st.integers(0, 6)))
    ]
    reserved = sum((one.resources for one in held if one.on_engine), NOTHING)
    usage = {
        key: Usage(sum((one.resources for one in mine), NOTHING), len(mine))
        for key in NAMESPACES
        if (mine := [one for one in held if one.namespace_id == key])
    }
    free, largest = draw(st.sampled_from([total, total, Resources(2, 4 * GI)])), draw(st.just(total) | _engines)
    return Ledger(
        capacity=EngineCapacity(total, free, largest, reserved),
        quotas={key: draw(_quotas) for key in NAMESPACES if draw(st.booleans())},
        usage=usage,
        holders=tuple(held),
        closed={NAMESPACES[0]: Code.SUSPENDED} if draw(st.integers(0, 5)) == 0 else {},
        engine_closed=draw(st.sampled_from([None] * 8 + [Code.MISCONFIGURED])),
        held_jobs=frozenset(uuid.UUID(int=n) for n in draw(st.sets(st.integers(0, 8), max_size=2))),
    )


def with_started(ledger: Ledger, one: Candidate) -> Ledger:
    """The ledger after the job was admitted."""
    used = ledger.usage.get(one.namespace_id, Usage())
    return replace(
        ledger,
        capacity=replace(ledger.capacity, reserved=ledger.capacity.reserved + one.total),
        usage={**ledger.usage, one.namespace_id: Usage(used.resources + one.total, used.running_jobs + 1)},
        holders=(*ledger.holders, Holder(one.job_id, one.namespace_id, one.total)),
    )


def turn_of(one: Candidate) -> datetime:
    return one.turn_at or one.queued_at


def one_by_one(
    queue: Sequence[Candidate], ledger: Ledger
) -> tuple[dict[uuid.UUID, Decision], dict[uuid.UUID, datetime]]:
    """The rule: ask `admit` for one job after the other, and write down what starts before the next is asked. What
    starts with another's turn leaves it its own."""
    waiting = {one.job_id: one for one in queue}
    decisions: dict[uuid.UUID, Decision] = {}
    while left := [
        turn for turn in in_order(waiting.values(), ledger, Pools(ledger)) if turn[0].job_id not in decisions
    ]:
        one, brought_by = left[0]
        decision = decisions[one.job_id] = admit(one, list(waiting.values()), ledger, NOW, PATIENCE)
        if decision.fit is Fit.FITS_NOW:
            ledger = with_started(ledger, one)
            waiting[brought_by] = replace(waiting[brought_by], turn_at=turn_of(one))
            del waiting[one.job_id]
    return decisions, {one.job_id: turn_of(one) for one in waiting.values()}


@settings(max_examples=400, deadline=None)
@given(queues(), ledgers())
def test_every_job_gets_the_answer_that_it_would_get_alone(queue: list[Candidate], ledger: Ledger) -> None:
    decisions, turns = one_by_one(queue, ledger)
    found = decide_queue(reversed(queue), ledger, NOW, PATIENCE)
    assert found.is_whole
    assert list(found.decisions) == list(decisions), "asked in another order"
    assert found.decisions == decisions
    assert {key: found.turns.get(key, turn_of(one)) for key, one in by_id(queue).items() if key in turns} == turns


@settings(max_examples=100, deadline=None)
@given(queues(), ledgers(), st.integers(1, 4))
def test_as_many_as_are_allowed_at_once_start_and_the_next_pass_goes_on_from_there(
    queue: list[Candidate], ledger: Ledger, most: int
) -> None:
    whole = decide_queue(queue, ledger, NOW, PATIENCE)
    started: list[uuid.UUID] = []
    for _ in range(len(queue) + 1):
        found = decide_queue(queue, ledger, NOW, PATIENCE, most_admitted=most)
        here = [key for key, decision in found.decisions.items() if decision.fit is Fit.FITS_NOW]
        assert len(here) <= most
        started += here
        for key in here:
            ledger = with_started(ledger, by_id(queue)[key])
        queue = [replace(one, turn_at=found.turns.get(one.job_id, one.turn_at)) for one in queue]
        queue = [one for one in queue if one.job_id not in here]
        if found.is_whole:
            break
    assert started == [key for key, decision in whole.decisions.items() if decision.fit is Fit.FITS_NOW]


def by_id(queue: Sequence[Candidate]) -> dict[uuid.UUID, Candidate]:
    return {one.job_id: one for one in queue}


def test_only_the_first_few_ahead_are_named_and_all_are_counted() -> None:
    size = Resources(1, GI)
    queue = [
        Candidate(uuid.UUID(int=n), NAMESPACES[n % 6], NOW - timedelta(seconds=900 - n), 0, size, one_task(size))
        for n in range(1, 100)
    ]
    full = Ledger(
        EngineCapacity(Resources(4, 8 * GI), Resources(4, 8 * GI), Resources(4, 8 * GI), Resources(4, 8 * GI))
    )
    found = decide_queue(queue, full, NOW, PATIENCE).decisions[queue[-1].job_id]
    assert found.fit is Fit.WAITS
    assert (found.position, found.ahead_count, len(found.ahead)) == (98, 98, MOST_SHOWN)
    assert found.message.endswith("98 jobs ahead are waiting for the same resources.")


def test_what_a_long_waiting_job_comes_to_lack_while_others_start_is_kept_for_it_as_well() -> None:
    """It lacked a core and not memory; the next job takes so much memory that it lacks that, too."""

    def job(number: int, cpu: float, memory: int, age: int) -> Candidate:
        size = Resources(cpu, memory * GI)
        return Candidate(
            uuid.UUID(int=number),
            NAMESPACES[number],
            NOW - timedelta(seconds=age),
            0,
            size,
            one_task(size),
        )

    engine = Resources(4, 10 * GI)
    ledger = Ledger(EngineCapacity(engine, engine, engine, Resources(3, 0)))
    queue = [job(1, 2, 6, age=900), job(2, 0, 5, age=20), job(3, 0, 1, age=10)]
    answers = list(decide_queue(queue, ledger, NOW, PATIENCE).decisions.values())
    assert answers[1].fit is Fit.FITS_NOW
    assert answers[2].fit is Fit.WAITS
    assert answers[2].code is Code.WAITING_FOR_TURN
    assert answers == list(one_by_one(queue, ledger)[0].values())


def test_a_job_that_can_never_start_is_ahead_of_no_other() -> None:
    engine, huge, small = (Resources(cpu, 8 * GI) for cpu in (4, 64, 2))
    queue = [
        Candidate(uuid.UUID(int=1), NAMESPACES[0], NOW - timedelta(seconds=900), 0, huge, one_task(huge)),
        Candidate(uuid.UUID(int=2), NAMESPACES[0], NOW - timedelta(seconds=9), 0, small, one_task(small)),
    ]
    full = Ledger(EngineCapacity(engine, engine, engine, engine))
    never, waits = decide_queue(queue, full, NOW, PATIENCE).decisions.values()
    assert never.fit is Fit.NEVER_FITS
    assert waits.fit is Fit.WAITS
    assert (waits.position, waits.ahead) == (0, ())
    assert one_by_one(queue, full)[0] == {one.job_id: found for one, found in zip(queue, (never, waits), strict=True)}


def test_a_job_that_waits_for_its_own_quota_keeps_the_engine_from_no_other_namespace() -> None:
    """A namespace that may hold the whole engine runs one small job for weeks, and queues one of the whole engine."""
    engine, small = Resources(16, 64 * GI), Resources(1, GI)
    running = Holder(uuid.UUID(int=9), NAMESPACES[0], small)
    ledger = Ledger(
        EngineCapacity(engine, engine, engine, small),
        {NAMESPACES[0]: Quota(cpu=16)},
        {NAMESPACES[0]: Usage(small, 1)},
        (running,),
    )

    def job(number: int, namespace: uuid.UUID, cpu: float, age: int) -> Candidate:
        size = Resources(cpu, GI)
        return Candidate(uuid.UUID(int=number), namespace, NOW - timedelta(seconds=age), 0, size, one_task(size))

    queue = [job(1, NAMESPACES[0], 16, 9000), job(2, NAMESPACES[1], 4, 60), job(3, NAMESPACES[0], 1, 30)]
    large, other, own = decide_queue(queue, ledger, NOW, PATIENCE).decisions.values()
    assert large.fit is Fit.WAITS
    assert large.code is Code.WAITING_FOR_QUOTA
    assert other.fit is Fit.FITS_NOW
    assert own.fit is Fit.WAITS, "of its own namespace's quota it keeps what it lacks"
    assert own.code is Code.WAITING_FOR_TURN
    assert admit(queue[1], queue, ledger, NOW, PATIENCE).fit is Fit.FITS_NOW
    assert one_by_one(queue, ledger)[0] == decide_queue(queue, ledger, NOW, PATIENCE).decisions


SHORT = uuid.UUID(int=50)


@settings(max_examples=200, deadline=None)
@given(queues(20), ledgers(), _amounts, st.integers(601, 3000))
def test_a_job_that_is_short_of_its_quota_changes_whether_no_job_of_another_namespace_starts(
    queue: list[Candidate], ledger: Ledger, total: Resources, age: int
) -> None:
    short = Candidate(
        uuid.UUID(int=50), SHORT, NOW - timedelta(seconds=age, milliseconds=7), 0, total, one_task(Resources(0.25, 0))
    )
    ledger = replace(
        ledger,
        quotas={**ledger.quotas, SHORT: Quota(running_jobs=1)},
        usage={**ledger.usage, SHORT: Usage(NOTHING, 1)},
    )

    def started(some: Sequence[Candidate]) -> set[uuid.UUID]:
        found = decide_queue(some, ledger, NOW, PATIENCE).decisions
        return {key for key, decision in found.items() if decision.fit is Fit.FITS_NOW}

    assert started([*queue, short]) == started(queue)


@st.composite
def scattered(draw: st.DrawFn) -> Ledger:
    """An idle engine of a few nodes."""
    nodes = tuple(Node(f"n{at}", one, one) for at, one in enumerate(draw(st.lists(_engines, min_size=1, max_size=4))))
    total = sum((one.total for one in nodes), NOTHING)
    return Ledger(EngineCapacity(total, total, total, nodes=nodes))


@st.composite
def jobs_of_tasks(draw: st.DrawFn) -> list[Candidate]:
    found = []
    for number in range(draw(st.integers(1, 12))):
        tasks = tuple(
            Tasks(role, draw(_amounts), draw(st.integers(1, 3)))
            for role in draw(st.sampled_from([["worker"], ["ps", "worker"]]))
        )
        total = sum((one.size * one.count for one in tasks), NOTHING)
        queued_at = NOW - timedelta(seconds=900 - number)
        found.append(Candidate(uuid.UUID(int=100 + number), NAMESPACES[number % 3], queued_at, 0, total, tasks))
    return found


@settings(max_examples=200, deadline=None)
@given(jobs_of_tasks(), scattered())
def test_what_starts_has_a_place_on_the_nodes_all_together(queue: list[Candidate], ledger: Ledger) -> None:
    found = decide_queue(queue, ledger, NOW, PATIENCE).decisions
    started = [one for one in queue if found[one.job_id].fit is Fit.FITS_NOW]
    board = Board.idle(ledger.capacity.nodes)
    for one in started:
        assert board.fits(one.tasks)
        board.take(one.tasks)
    alone = {one.job_id for one in queue if Board.idle(ledger.capacity.nodes).fits(one.tasks)}
    never = {key for key, one in found.items() if one.fit is Fit.NEVER_FITS}
    assert never == {one.job_id for one in queue} - alone, "what fits when nothing runs waits, and no other does"
    if alone and not started:
        raise AssertionError("nothing runs, and nothing starts")


def test_two_jobs_that_each_take_more_than_half_start_one_after_the_other() -> None:
    nodes = (
        Node("a", Resources(2, 8 * GI), Resources(2, 8 * GI)),
        Node("b", Resources(2, 8 * GI), Resources(2, 8 * GI)),
    )
    total = nodes[0].total * 2
    size = Resources(1.2, GI)
    jobs = [
        Candidate(
            uuid.UUID(int=n), NAMESPACES[0], NOW - timedelta(seconds=9 - n), 0, size * 2, (Tasks("worker", size, 2),)
        )
        for n in (1, 2)
    ]
    first, second = decide_queue(
        jobs, Ledger(EngineCapacity(total, total, total, nodes=nodes)), NOW, PATIENCE
    ).decisions.values()
    assert first.fit is Fit.FITS_NOW
    assert second.fit is Fit.WAITS
    three = replace(jobs[0], total=size * 3, tasks=(Tasks("worker", size, 3),))
    never = admit(three, (), Ledger(EngineCapacity(total, total, total, nodes=nodes)), NOW)
    assert never.fit is Fit.NEVER_FITS
    assert never.code is Code.EXCEEDS_CAPACITY
    assert "2 of its 3 tasks" in never.message


def test_what_is_scattered_is_kept_for_a_job_that_has_waited_long_enough() -> None:
    """Else smaller jobs would pass it for ever: 2 cores are free, one on each node."""
    nodes = tuple(Node(name, Resources(2, 8 * GI), Resources(1, 8 * GI)) for name in "ab")
    total, free = Resources(4, 16 * GI), Resources(2, 16 * GI)
    books = Ledger(EngineCapacity(total, free, total, nodes=nodes))

    def job(number: int, cpu: float, age: int) -> Candidate:
        size = Resources(cpu, GI)
        return Candidate(uuid.UUID(int=number), NAMESPACES[0], NOW - timedelta(seconds=age), 0, size, one_task(size))

    for age, expected in ((9000, Fit.WAITS), (60, Fit.FITS_NOW)):
        queue = [job(1, 2, age), job(2, 1, 30)]
        large, small = decide_queue(queue, books, NOW, PATIENCE).decisions.values()
        assert large.fit is Fit.WAITS
        assert large.code is Code.WAITING_FOR_CAPACITY
        assert "0 of its 1 task" in large.message
        assert small.fit is expected
        assert admit(queue[1], queue, books, NOW, PATIENCE) == small


def test_a_job_that_waits_for_machines_is_told_which_take_none() -> None:
    size = Resources(2, 8 * GI)
    nodes = (
        Node("a", size, NOTHING),
        Node("b", size, NOTHING, closed="away"),
        Node("c", size, NOTHING, closed="drained"),
    )
    books = Ledger(EngineCapacity(size * 3, NOTHING, size, nodes=nodes))
    one = Candidate(uuid.UUID(int=1), NAMESPACES[0], NOW, 0, size, one_task(size))
    (found,) = decide_queue([one], books, NOW, PATIENCE).decisions.values()
    assert found == admit(one, (), books, NOW, PATIENCE)
    assert found.message.endswith(" Machines that take no tasks now: b (away), c (drained).")
    full = replace(books, capacity=replace(books.capacity, nodes=nodes[:1]))
    assert "Machines" not in admit(one, (), full, NOW, PATIENCE).message


def test_of_many_closed_machines_the_first_are_named() -> None:
    nodes = [Node(f"m{at}", NOTHING, NOTHING, closed="away") for at in range(1, 8)]
    assert closed_nodes(nodes).endswith("m4 (away), m5 (away) and 2 more.")
