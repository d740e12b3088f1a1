"""Jobs that run on certain machines alone: they wait for these, say what they lack, and hold up no other."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.job.spec import NOTHING, Resources
from yardmaster.queueing.admission import Candidate, Decision, EngineCapacity, Fit, Ledger, Quota, admit
from yardmaster.queueing.ledger import Code, Holder, Usage
from yardmaster.queueing.placement import Board, Bound, Node, Only, Tasks
from yardmaster.queueing.preemption import Running
from yardmaster.queueing.queue_decision import QueueDecision, decide_queue
from yardmaster.queueing.resources import units_of
from yardmaster.queueing.takings import Present, takings

GI = 1 << 30
NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
PATIENCE = timedelta(minutes=10)
ADA, BO = uuid.UUID(int=1), uuid.UUID(int=2)
RUNS = uuid.UUID(int=9)


def size(cpu: float) -> Resources:
    return Resources(cpu, GI)


def job(number: int, cpu: float, *, whose: uuid.UUID = ADA, only: Iterable[str] | None = None, waits: int = 900):
    """One task, asked for so many seconds ago."""
    where = None if only is None else Only(frozenset(only), "its files")
    tasks = (Tasks("worker", size(cpu), 1, serves=True, only=where),)
    return Candidate(uuid.UUID(int=100 + number), whose, NOW - timedelta(seconds=waits - number), 0, size(cpu), tasks)


def gang(number: int, cpu: float, count: int, only: Iterable[str], *, waits: int = 900):
    """So many tasks, on machines that have Spark."""
    where = Only(frozenset(only), "Spark", keeps=True)
    tasks = (Tasks("executor", size(cpu), count, only=where),)
    total = size(cpu) * count
    return Candidate(uuid.UUID(int=100 + number), ADA, NOW - timedelta(seconds=waits - number), 0, total, tasks)


def node(name: str, cpu: float, taken: float = 0, closed: str = "") -> Node:
    total, bound = Resources(cpu, 64 * GI), (Bound(RUNS, "worker", size(taken)),) if taken else ()
    return Node(name, total, size(taken) if closed and taken else NOTHING if closed else total, bound, closed=closed)


def books(*nodes: Node, **more) -> Ledger:
    total, free = (sum((getattr(one, name) for one in nodes), NOTHING) for name in ("total", "free"))
    held = sum((bound.resources for one in nodes for bound in one.bound), NOTHING)
    capacity = EngineCapacity(total, free, total, held, nodes, by_name=frozenset(one.name for one in nodes))
    return Ledger(capacity, holders=(Holder(RUNS, BO, held),) if held != NOTHING else (), **more)


def decide(ledger: Ledger, *queue: Candidate) -> list[Decision]:
    found: QueueDecision = decide_queue(queue, ledger, NOW, PATIENCE)
    for one in queue:
        others = [each for each in queue if each is not one]
        if found.decisions[one.job_id].fit is not Fit.FITS_NOW:
            started = [each for each in others if found.decisions[each.job_id].fit is Fit.FITS_NOW]
            if not started:
                assert admit(one, others, ledger, NOW, PATIENCE).fit is found.decisions[one.job_id].fit
    return [found.decisions[one.job_id] for one in queue]


def test_one_whose_machine_is_full_waits_for_it_and_says_what_it_lacks_while_all_others_start():
    full = books(node("gpu-1", 4, taken=3), node("gpu-2", 8))
    mine, same, other = decide(full, job(1, 2, only=["gpu-1"]), job(2, 2), job(3, 6, whose=BO))
    assert (mine.fit, mine.code) == (Fit.WAITS, Code.WAITING_FOR_CAPACITY)
    assert mine.message == (
        "It runs only on the machine gpu-1, which has its files. "
        "Not enough is free there: CPU (2 requested, 1 of 4 available)."
    )
    assert [(one.pool, one.resource, one.short_by) for one in mine.numbers] == [("machine", "cpu", 1)]
    assert [one.job_id for one in mine.holders] == [RUNS]
    assert (same.fit, other.fit) == (Fit.FITS_NOW, Fit.FITS_NOW)


def test_it_starts_as_soon_as_its_machine_has_the_space_and_takes_that_from_others():
    free = books(node("gpu-1", 4), node("gpu-2", 1))
    first, second, third = decide(free, job(1, 3, only=["gpu-1"]), job(2, 2, only=["gpu-1"]), job(3, 2, whose=BO))
    assert [first.fit, second.fit, third.fit] == [Fit.FITS_NOW, Fit.WAITS, Fit.WAITS]
    assert "CPU (2 requested, 1 of 4 available)" in second.message
    promised = replace(free.capacity, promised=job(1, 3, only=["gpu-1"]).tasks, reserved=size(3))
    (again,) = decide(replace(free, capacity=promised), job(2, 2, only=["gpu-1"]))
    assert again.fit is Fit.WAITS, "what is promised to one that is on no machine yet is counted on its own"


@pytest.mark.parametrize("closed", ["drained", "away"])
def test_a_machine_that_takes_no_tasks_is_named_and_keeps_nothing_from_others(closed: str):
    ledger = books(node("gpu-1", 8, closed=closed), node("gpu-2", 2))
    mine, other = decide(ledger, job(1, 2, only=["gpu-1"], waits=90_000), job(2, 2, whose=BO))
    assert mine.fit is Fit.WAITS
    assert mine.message == (
        f"It runs only on the machine gpu-1, which has its files. Machines that take no tasks now: gpu-1 ({closed})."
    )
    assert "takes tasks again" in mine.remedy
    assert other.fit is Fit.FITS_NOW


def test_a_machine_that_is_gone_or_too_small_can_never_take_it_and_one_of_several_may():
    ledger = books(node("gpu-1", 2), node("gpu-2", 8))
    gone, small, none, either = decide(
        ledger,
        job(1, 1, only=["gpu-9"]),
        job(2, 4, only=["gpu-1"]),
        job(3, 1, only=[]),
        job(4, 4, only=["gpu-1", "gpu-2"]),
    )
    assert [one.fit for one in (gone, small, none, either)] == [*[Fit.NEVER_FITS] * 3, Fit.FITS_NOW]
    assert "gpu-9, which has its files. That machine is not in the list any more." in gone.message
    assert "A task does not fit there: CPU (4 requested, maximum 2)" in small.message
    assert none.message == "No machine has its files."
    full = books(node("gpu-1", 2), node("gpu-2", 8, taken=7), node("gpu-3", 8, closed="drained"))
    (several,) = decide(full, job(1, 4, only=["gpu-1", "gpu-2", "gpu-3"]))
    assert several.message == (
        "It runs only on machines that have its files: gpu-1, gpu-2, gpu-3. "
        "Not enough is free there: CPU (4 requested, 1 of 8 available). "
        "Machines that take no tasks now: gpu-3 (drained)."
    )


def test_a_job_on_machines_that_have_spark_waits_for_these_and_says_how_many_of_its_tasks_fit_there():
    ledger = books(node("m1", 4, taken=3), node("m2", 4), node("m3", 8))
    waits, alone, starts = decide(
        ledger,
        gang(1, 2, 3, ["m1", "m2"], waits=60),
        gang(2, 4, 2, ["m1", "m2"], waits=60),
        gang(3, 2, 2, ["m2"], waits=9),
    )
    assert (waits.fit, waits.code) == (Fit.WAITS, Code.WAITING_FOR_CAPACITY)
    assert waits.message == (
        "It runs only on machines that have Spark: m1, m2. Only 2 of its 3 tasks fit there now, and all tasks of a job "
        "start together."
    )
    assert "Only 1 of its 2 tasks fit there now" in alone.message
    assert [one.job_id for one in waits.holders] == [RUNS]
    assert starts.fit is Fit.FITS_NOW


def test_one_task_of_such_a_job_says_what_it_lacks_there_and_a_gang_that_never_fits_there_is_refused():
    ledger = books(node("m1", 4, taken=3), node("m2", 2, closed="drained"), node("m3", 8))
    one, never = decide(ledger, gang(1, 2, 1, ["m1", "m2"], waits=60), gang(2, 2, 4, ["m1", "m2"]))
    assert one.message == (
        "It runs only on machines that have Spark: m1, m2. Not enough is free there: CPU (2 requested, 1 of 4 "
        "available). Machines that take no tasks now: m2 (drained)."
    )
    assert (never.fit, never.code) == (Fit.NEVER_FITS, Code.NO_MATCHING_FLAVOR)
    assert never.message.endswith("Even with nothing else running, only 3 of its 4 tasks fit there at once.")


def test_small_jobs_pass_it_only_until_its_patience_ends_and_for_closed_machines_always():
    full = books(node("m1", 4, taken=2), node("m2", 4), node("m3", 8))
    for waits, passed in ((60, Fit.FITS_NOW), (900, Fit.WAITS)):
        _, small = decide(full, gang(1, 4, 2, ["m1", "m2"], waits=waits), job(2, 1, waits=30))
        assert small.fit is passed
    drained = books(node("m1", 4, closed="drained"), node("m2", 4), node("m3", 8))
    waiting, small = decide(drained, gang(1, 4, 2, ["m1", "m2"]), job(2, 1, waits=30))
    assert "m1 (drained)" in waiting.message
    assert small.fit is Fit.FITS_NOW


def test_it_keeps_quota_that_it_lacks_only_while_its_machine_would_take_it():
    limits = {"quotas": {ADA: Quota(cpu=4)}, "usage": {ADA: Usage(size(3), 1)}}
    first, smaller = decide(books(node("gpu-1", 4), node("gpu-2", 4), **limits), job(1, 2, only=["gpu-1"]), job(2, 1))
    assert (first.code, smaller.fit) == (Code.WAITING_FOR_QUOTA, Fit.WAITS)
    full = books(node("gpu-1", 4, taken=4), node("gpu-2", 4), **limits)
    first, smaller = decide(full, job(1, 2, only=["gpu-1"]), job(2, 1))
    assert (first.code, smaller.fit) == (Code.WAITING_FOR_QUOTA, Fit.FITS_NOW)


def test_it_takes_no_places_of_running_jobs_and_lets_others_take_them():
    full = books(node("gpu-1", 4, taken=4), node("gpu-2", 4, closed="drained"))
    runs = Running(RUNS, BO, 0, NOW - timedelta(hours=1), units_of(size(4)), may_go=True)
    mine, other = (replace(one, priority=5, is_granted=True) for one in (job(1, 2, only=["gpu-1"]), job(2, 2)))
    for queue, taker in (([mine], None), ([mine, other], other)):
        present = Present((runs,), by_priority=frozenset(one.job_id for one in queue))
        known = {one.job_id: one for one in queue}
        found = takings(decide_queue(queue, full, NOW, PATIENCE), known, full, present, NOW)
        assert [one.candidate for one in found] == ([] if taker is None else [taker])


def test_a_job_on_machines_with_spark_takes_places_there_and_none_elsewhere():
    elsewhere = uuid.UUID(int=8)
    nodes = [node(name, 4) for name in ("m1", "m2", "m3")]
    nodes[1] = replace(nodes[1], bound=(Bound(RUNS, "worker", size(4)),))
    nodes[2] = replace(nodes[2], bound=(Bound(elsewhere, "worker", size(4)),))
    full = replace(books(*nodes), holders=(Holder(RUNS, BO, size(4)), Holder(elsewhere, BO, size(4))))
    begun = {RUNS: 2, elsewhere: 1}
    runs = [
        Running(key, BO, 0, NOW - timedelta(hours=hours), units_of(size(4)), may_go=True)
        for key, hours in begun.items()
    ]
    mine = replace(gang(1, 4, 2, ["m1", "m2"]), priority=5, is_granted=True)
    present = Present(tuple(runs), by_priority=frozenset({mine.job_id}))
    (taking,) = takings(decide_queue([mine], full, NOW, PATIENCE), {mine.job_id: mine}, full, present, NOW)
    assert [one.job_id for one in taking.victims] == [RUNS], "although it began before the other"


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_what_starts_has_a_place_where_it_may_run(data: st.DataObject):
    cpus = st.sampled_from([0.5, 1, 2, 3])
    nodes = [node(f"n{at}", data.draw(st.sampled_from([1, 2, 4]))) for at in range(data.draw(st.integers(1, 4)))]
    ledger = books(*nodes)
    some = st.lists(st.sampled_from([one.name for one in nodes]), min_size=1, max_size=2, unique=True)
    queue = [job(n, data.draw(cpus), only=data.draw(st.none() | some), whose=(ADA, BO)[n % 2]) for n in range(8)]
    found = decide_queue(queue, ledger, NOW, PATIENCE).decisions
    board = Board.idle(nodes, ledger.capacity.by_name)
    for one in queue:
        if found[one.job_id].fit is Fit.FITS_NOW:
            assert board.fits(one.tasks)
            board.take(one.tasks)
    free = [one for one in queue if one.only is None]
    alone = decide_queue(free, ledger, NOW, PATIENCE).decisions
    if not any(found[one.job_id].fit is Fit.FITS_NOW for one in queue if one.only is not None):
        assert {key: alone[key].fit for key in alone} == {one.job_id: found[one.job_id].fit for one in free}


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_the_whole_queue_is_decided_as_one_job_after_another_would_be(data: st.DataObject):
    """Each job runs on one machine, so that there is one way to place those that start."""
    nodes = [node(f"n{at}", data.draw(st.sampled_from([1, 2, 4]))) for at in range(3)]
    quotas = {ADA: Quota(cpu=data.draw(st.sampled_from([2, 4, 99])))}
    ledger = books(*nodes, quotas=quotas)
    queue = [
        job(n, data.draw(st.sampled_from([0.5, 1, 2, 3])), only=[f"n{data.draw(st.integers(0, 3))}"],
            whose=(ADA, BO)[data.draw(st.integers(0, 1))], waits=data.draw(st.sampled_from([60, 900])))
        for n in range(8)
    ]  # fmt: skip
    found = decide_queue(queue, ledger, NOW, PATIENCE).decisions
    waiting = list(queue)
    for key, decision in found.items():
        one = next(each for each in queue if each.job_id == key)
        alone = admit(one, waiting, ledger, NOW, PATIENCE)
        assert (alone.fit, alone.code, alone.message) == (decision.fit, decision.code, decision.message)
        if decision.fit is Fit.FITS_NOW:
            ledger = _with_started(ledger, one)
            waiting.remove(one)


def _with_started(ledger: Ledger, one: Candidate) -> Ledger:
    there, used = ledger.capacity, ledger.usage.get(one.namespace_id, Usage())
    return replace(
        ledger,
        capacity=replace(there, reserved=there.reserved + one.total, promised=(*there.promised, *one.tasks)),
        usage={**ledger.usage, one.namespace_id: Usage(used.resources + one.total, used.running_jobs + 1)},
    )


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_queue_with_jobs_on_machines_with_spark_is_decided_as_one_after_another_would_be(data: st.DataObject):
    nodes = [
        node(f"n{at}", data.draw(st.sampled_from([2, 4])), closed=data.draw(st.sampled_from(["", "", "away"])))
        for at in range(3)
    ]
    ledger, queue = books(*nodes), list[Candidate]()
    for n in range(6):
        waits = data.draw(st.sampled_from([60, 900]))
        if data.draw(st.booleans()):
            queue.append(gang(n, data.draw(st.sampled_from([1, 2])), data.draw(st.integers(1, 2)), ["n0"], waits=waits))
        else:
            queue.append(job(n, data.draw(st.sampled_from([1, 2, 3])), only=[f"n{n % 2 + 1}"], waits=waits))
    found = decide_queue(queue, ledger, NOW, PATIENCE).decisions
    waiting = list(queue)
    for key, decision in found.items():
        one = next(each for each in queue if each.job_id == key)
        alone = admit(one, waiting, ledger, NOW, PATIENCE)
        assert (alone.fit, alone.code) == (decision.fit, decision.code)
        if decision.fit is Fit.FITS_NOW:
            ledger = _with_started(ledger, one)
            waiting.remove(one)
