"""A priority above a namespace's ceiling orders that namespace's own jobs, and passes nobody else's."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.core.generators import NOW, one_task
from yardmaster.job.spec import NOTHING, Resources
from yardmaster.queueing.admission import Candidate, EngineCapacity, Fit, Ledger, Quota, admit
from yardmaster.queueing.pools import Pools
from yardmaster.queueing.queue_decision import decide_queue
from yardmaster.queueing.turns import in_order

GI = 1 << 30
MINE, THEIRS, THIRD = (uuid.UUID(int=n) for n in (1, 2, 3))
ENGINE = Resources(4, 64 * GI)


def job(number: int, namespace: uuid.UUID, priority: int = 0, age: int = 0, cpu: float = 1) -> Candidate:
    size = Resources(cpu, GI)
    return Candidate(uuid.UUID(int=number), namespace, NOW - timedelta(seconds=age), priority, size, one_task(size))


def books(held: Resources = NOTHING, **ceilings: int) -> Ledger:
    named = {"mine": MINE, "theirs": THEIRS, "third": THIRD}
    quotas = {named[name]: Quota(priority_ceiling=ceiling) for name, ceiling in ceilings.items()}
    return Ledger(EngineCapacity(ENGINE, ENGINE, ENGINE, held), quotas)


def order(queue: Sequence[Candidate], ledger: Ledger) -> list[int]:
    return [turn.candidate.job_id.int for turn in in_order(queue, ledger, Pools(ledger))]


def test_priority_1000_passes_no_other_namespaces_earlier_job() -> None:
    queue = [job(1, THEIRS, age=30), job(2, MINE, 1000, age=20), job(3, THEIRS, age=10)]
    assert order(queue, books()) == [1, 2, 3]


def test_within_the_namespace_it_orders_and_the_places_among_the_others_stay() -> None:
    queue = [job(1, MINE, age=50), job(2, THEIRS, age=40), job(3, MINE, 7, age=30), job(4, MINE, 1000, age=20)]
    assert order(queue, books()) == [4, 2, 3, 1]


def test_up_to_its_ceiling_a_priority_counts_among_all() -> None:
    queue = [job(1, THIRD, age=50), job(2, MINE, 10, age=40), job(3, MINE, 1000, age=30), job(4, THEIRS, 3, age=20)]
    assert order(queue, books(mine=5)) == [3, 2, 1, 4]
    assert order(queue, books(mine=5, theirs=3)) == [3, 2, 4, 1]
    assert order(queue, books(mine=2, theirs=3)) == [4, 3, 2, 1]


def test_a_negative_priority_goes_behind_everybody() -> None:
    assert order([job(1, MINE, -1, age=50), job(2, THEIRS, age=10)], books()) == [2, 1]


def test_a_job_that_can_never_start_lends_its_turn_to_none() -> None:
    impossible = job(1, MINE, age=500, cpu=99)
    assert order([impossible, job(2, THEIRS, age=20), job(3, MINE, 1000, age=10)], books()) == [1, 2, 3]


def test_a_turn_is_used_once() -> None:
    """A large job that cannot start yet shall not lend its early turn to one small job after another."""
    stuck, other = job(1, MINE, age=500, cpu=4), job(2, THEIRS, age=50)
    first, second = job(3, MINE, 1000, age=40), job(4, MINE, 1000, age=5)
    one_core = books(held=Resources(3, 0))
    found = decide_queue([stuck, other, first], one_core, NOW)
    assert [key.int for key, answer in found.decisions.items() if answer.fit is Fit.FITS_NOW] == [3]
    assert found.turns[stuck.job_id] == first.queued_at, "the turn of the one that started is left to it"
    stuck = replace(stuck, turn_at=found.turns[stuck.job_id])
    assert order([stuck, other, second], one_core) == [2, 4, 1]
    assert admit(other, [stuck, second], one_core, NOW).fit is Fit.FITS_NOW


_ages = st.lists(st.integers(1, 900), min_size=1, max_size=12, unique=True)
_namespaces = st.sampled_from([MINE, THEIRS, THIRD])


@given(st.data())
def test_whatever_priorities_a_namespace_sets_nobody_elses_place_or_answer_changes(data: st.DataObject) -> None:
    """Its ceiling is 0. Jobs of one size, so that only the order could make a difference."""
    ages = data.draw(_ages)
    queue = [
        job(n, data.draw(_namespaces), data.draw(st.sampled_from([0, 0, -2, 3])), age) for n, age in enumerate(ages)
    ]
    plain = [replace(one, priority=0) if one.namespace_id == MINE else one for one in queue]
    raised = [
        replace(one, priority=data.draw(st.integers(0, 1000))) if one.namespace_id == MINE else one for one in queue
    ]
    ledger = books(held=Resources(data.draw(st.integers(0, 4)), 0), theirs=data.draw(st.integers(0, 5)))
    before, after = order(plain, ledger), order(raised, ledger)
    others = {one.job_id.int for one in queue if one.namespace_id != MINE}
    assert [(at, number) for at, number in enumerate(after) if number in others] == [
        (at, number) for at, number in enumerate(before) if number in others
    ]
    then, now = decide_queue(plain, ledger, NOW).decisions, decide_queue(raised, ledger, NOW).decisions
    for number in others:
        old, new = then[uuid.UUID(int=number)], now[uuid.UUID(int=number)]
        assert type(old) is type(new)
        assert [getattr(old, name, None) for name in ("code", "message", "position", "numbers")] == [
            getattr(new, name, None) for name in ("code", "message", "position", "numbers")
        ]
    mine = [raised[number].priority for number in after if number not in others]
    assert mine == sorted(mine, reverse=True)


@given(st.lists(st.tuples(st.integers(0, 1000), st.sampled_from([0.5, 1, 2, 4]), st.integers(0, 4)), max_size=25))
def test_no_stream_of_high_priorities_starts_before_anothers_job_more_often_than_jobs_were_there_first(
    events: list[tuple[int, float, int]],
) -> None:
    """The other namespace's job needs the whole engine; whatever room there is, and whatever is launched after it."""
    queue = [job(n, MINE, age=900 - n, cpu=4) for n in range(1, 4)]
    there_first = len(queue)
    other = job(50, THEIRS, age=100, cpu=4)
    queue.append(other)
    passed = 0
    for number, (priority, cpu, held) in enumerate(events):
        queue.append(job(100 + number, MINE, priority, age=99 - number, cpu=cpu))
        ledger = books(held=Resources(held, 0))
        found = decide_queue(queue, ledger, NOW)
        places = list(found.decisions)
        started = {key for key in places if found.decisions[key].fit is Fit.FITS_NOW}
        passed += sum(key in started for key in places[: places.index(other.job_id)])
        queue = [
            replace(one, turn_at=found.turns.get(one.job_id, one.turn_at)) for one in queue if one.job_id not in started
        ]
        if other.job_id in started:
            break
        ahead: list[datetime] = [one.turn_at or one.queued_at for one in queue if one.namespace_id == MINE]
        assert passed + sum(at < other.queued_at for at in ahead) <= there_first


def test_jobs_of_one_priority_stay_in_their_order_when_a_turn_among_them_was_used() -> None:
    oldest, older, urgent = job(1, MINE, age=30), job(2, MINE, age=20), job(3, MINE, 1000, age=10)
    found = decide_queue([oldest, older, urgent], books(held=Resources(3, 0)), NOW)
    assert [key.int for key, answer in found.decisions.items() if answer.fit is Fit.FITS_NOW] == [3]
    left = [replace(one, turn_at=found.turns.get(one.job_id)) for one in (oldest, older)]
    assert order(left, books()) == [1, 2]


def test_one_that_gave_up_its_place_is_before_those_of_its_namespace_that_came_after_it() -> None:
    turn = NOW - timedelta(seconds=90)
    back = replace(job(9, MINE), turn_at=turn, place_at=turn)
    older, newer = job(1, MINE, age=100), job(2, MINE, age=80)
    assert order([newer, back, older], books()) == [1, 9, 2]
