"""Which running jobs would return to the queue for a waiting one: no more than needed, and none that is protected."""

from __future__ import annotations

import uuid
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.core.generators import NOW
from yardmaster.queueing.preemption import Preemptor, Rules, Running, victims

MINE, THEIRS, THIRD = (uuid.UUID(int=n) for n in (1, 2, 3))
HIGH = Preemptor(MINE, 100, {"cpu": 4000}, by_priority=True)
LENDER = Preemptor(MINE, 0, {"cpu": 4000}, within_guarantee=True)


def running(
    number: int, cpu: int = 4000, *, priority: int = 0, age: int = 60, over: float = 0, **rest: object
) -> Running:
    started = NOW - timedelta(minutes=age)
    facts = {"may_go": True, **rest}
    return Running(uuid.UUID(int=number), THEIRS, priority, started, {"cpu": cpu}, over, **facts)  # type: ignore[arg-type]


def taken(one: Preemptor, *jobs: Running) -> list[int]:
    return [each.job_id.int for each in victims(one, jobs, NOW)]


def test_the_lowest_priority_goes_first_then_who_is_most_over_then_the_newest() -> None:
    assert taken(HIGH, running(1, priority=5), running(2, priority=-1), running(3)) == [2]
    assert taken(HIGH, running(1, over=0.1), running(2, over=0.3), running(3)) == [2]
    assert taken(HIGH, running(1, age=60), running(2, age=30), running(3, age=90)) == [2]


def test_no_job_goes_that_is_not_needed() -> None:
    assert taken(HIGH, running(1, 1000, priority=-2), running(2, 4000, priority=-1)) == [2]
    assert taken(HIGH, running(1, 2000), running(2, 2000, age=30), running(3, 2000, age=20)) == [3, 2]


def test_nothing_goes_in_vain() -> None:
    assert taken(HIGH, running(1, 2000)) == []
    assert taken(Preemptor(MINE, 100, {"gpus": 1}, by_priority=True), running(1)) == []
    assert taken(Preemptor(MINE, 100, {}, by_priority=True), running(1)) == []


def test_who_is_protected_stays() -> None:
    protected = (
        running(1, may_go=False), running(2, age=5), running(3, taken_today=3), running(4, priority=100),
    )  # fmt: skip
    assert taken(HIGH, *protected) == []
    assert taken(Preemptor(MINE, 100, {"cpu": 4000}), running(1)) == [], "its class may not"


def test_a_lender_takes_back_from_borrowers_alone() -> None:
    assert taken(LENDER, running(1, borrows=False), running(2, priority=50)) == [2]
    own = Running(uuid.UUID(int=3), MINE, 0, NOW - timedelta(hours=1), {"cpu": 4000}, may_go=True)
    assert victims(LENDER, [own], NOW) == []


_jobs = st.builds(
    Running,
    job_id=st.uuids(),
    namespace_id=st.sampled_from([MINE, THEIRS, THIRD]),
    priority=st.integers(-3, 3),
    started_at=st.integers(0, 60).map(lambda age: NOW - timedelta(minutes=age)),
    holds=st.fixed_dictionaries({"cpu": st.integers(0, 8), "gpus": st.integers(0, 2)}),
    over=st.sampled_from([0, 0.1, 0.5]),
    borrows=st.booleans(),
    may_go=st.booleans(),
    taken_today=st.integers(0, 4),
)
_preemptors = st.builds(
    Preemptor,
    namespace_id=st.just(MINE),
    priority=st.integers(-3, 3),
    lacks=st.fixed_dictionaries({"cpu": st.integers(-2, 12), "gpus": st.integers(-1, 3)}),
    by_priority=st.booleans(),
    within_guarantee=st.booleans(),
)


@given(_preemptors, st.lists(_jobs, max_size=12, unique_by=lambda one: one.job_id), st.randoms())
def test_it_is_enough_none_is_too_many_and_the_order_of_asking_does_not_count(one, jobs, chance) -> None:
    found, rules = victims(one, jobs, NOW), Rules()
    for each in found:
        assert each.may_go
        assert each.taken_today < rules.most_a_day
        assert NOW - each.started_at >= rules.least_run
        is_own = each.namespace_id == one.namespace_id
        lower = one.by_priority and each.priority < one.priority and (each.borrows or is_own)
        assert lower or (one.within_guarantee and each.borrows and not is_own)

    def is_enough(some: list[Running]) -> bool:
        return all(sum(each.holds[name] for each in some) >= units for name, units in one.lacks.items())

    assert not found or is_enough(found)
    for each in found:
        assert not is_enough([other for other in found if other is not each])
    mixed = jobs.copy()
    chance.shuffle(mixed)
    assert victims(one, mixed, NOW) == found
