"""What is reserved for a time: kept for whom it is reserved, from all who could still run then, and from none else."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.core.generators import NOW, one_task
from yardmaster.job.spec import NOTHING, Resources
from yardmaster.queueing.admission import STARTS, Candidate, EngineCapacity, Fit, Holder, Ledger, admit
from yardmaster.queueing.ledger import Code
from yardmaster.queueing.needs import JobNeeds
from yardmaster.queueing.queue_decision import decide_queue
from yardmaster.queueing.windows import Booked, Window, most_reserved

MINE, THEIRS, THIRD = (uuid.UUID(int=n) for n in (1, 2, 3))
HOUR = timedelta(hours=1)


def window(cores: int, begins: float, ends: float, whose: uuid.UUID = MINE) -> Window:
    return Window(whose, {"cpu": cores * 1000}, NOW + begins * HOUR, NOW + ends * HOUR, "class-of-monday")


def job(number: int, cores: int, hours: float | None, whose: uuid.UUID = THEIRS) -> Candidate:
    total = Resources(cores, 1)
    longest = None if hours is None else hours * HOUR
    return Candidate(uuid.UUID(int=number), whose, NOW, 0, total, one_task(total), longest=longest)


def ledger(*windows: Window, held: tuple[tuple[uuid.UUID, int, float | None], ...] = (), cores: int = 8) -> Ledger:
    total = Resources(cores, 1 << 40)
    holders = [
        Holder(uuid.UUID(int=900 + at), whose, Resources(amount, 1)) for at, (whose, amount, _) in enumerate(held)
    ]
    ends = {uuid.UUID(int=900 + at): NOW + hours * HOUR for at, (_, _, hours) in enumerate(held) if hours is not None}
    reserved = sum((one.resources for one in holders), NOTHING)
    capacity = EngineCapacity(total, total, total, reserved)
    return Ledger(capacity, holders=tuple(holders), booked=Booked(NOW, windows, ends))


def asked(one: Candidate, books: Ledger):
    return admit(one, (), books, NOW)


@pytest.mark.parametrize(
    ("hours", "cores", "starts"),
    [(2, 8, True), (3, 8, True), (3.1, 8, False), (None, 8, False), (None, 2, True), (None, 3, False), (9, 2, True)],
)
def test_who_could_run_into_a_window_gets_only_the_rest(hours, cores, starts):
    said = asked(job(1, cores, hours), ledger(window(6, 3, 5)))
    assert (said == STARTS) is starts
    if not starts:
        assert (said.fit, said.code) == (Fit.WAITS, Code.RESERVED)
        assert said.message.startswith(
            "Reserved for class-of-monday from 2026-11-20 15:00 to 2026-11-20 17:00 UTC: CPU"
        )
        assert "Set a time limit that ends before 2026-11-20 15:00 UTC" in said.remedy


def test_within_it_the_amount_is_kept_for_its_namespace_and_after_it_for_no_one():
    books = ledger(window(6, -1, 1))
    assert asked(job(1, 3, 0.1), books).code is Code.RESERVED
    assert asked(job(1, 3, 0.1), books).remedy.startswith("Wait until 2026-11-20 13:00 UTC")
    assert asked(job(1, 2, None), books) == STARTS
    assert asked(job(1, 8, None, MINE), books) == STARTS, "and more than that, where it is free"
    assert asked(job(1, 8, None), ledger(window(6, -2, 0))) == STARTS


def test_what_its_namespace_holds_already_is_part_of_it():
    assert asked(job(1, 2, None), ledger(window(6, -1, 1), held=((MINE, 6, None),))) == STARTS
    assert asked(job(1, 2, None), ledger(window(6, -1, 1), held=((MINE, 7, None),))).code is Code.WAITING_FOR_CAPACITY
    assert asked(job(1, 1, None), ledger(window(6, -1, 1), held=((MINE, 5, None),))) == STARTS


def test_jobs_that_run_count_as_long_as_they_may_run():
    books = ledger(window(6, 3, 5), held=((THIRD, 2, 2),))
    assert asked(job(1, 2, None), books) == STARTS, "the other has ended by then"
    books = ledger(window(6, 3, 5), held=((THIRD, 2, None),))
    assert asked(job(1, 2, None), books).code is Code.RESERVED


def test_a_job_counts_as_if_it_started_as_late_as_it_may():
    books = ledger(window(6, 3, 5))
    assert books.booked is not None
    late = replace(books, booked=replace(books.booked, start_timeout=HOUR / 2))
    assert asked(job(1, 8, 2.5), late) == STARTS
    said = asked(job(1, 8, 2.6), late)
    assert said.code is Code.RESERVED
    assert "still run then: it may hold what it takes until 2026-11-20 15:06 UTC." in said.message
    assert "before 2026-11-20 15:00 UTC with 30 minutes to start and the time to end, request less" in said.remedy


def test_windows_of_several_namespaces_count_together():
    books = ledger(window(4, 3, 6), window(4, 5, 7, THIRD))
    assert asked(job(1, 4, 4), books) == STARTS
    assert asked(job(1, 4, 6), books).code is Code.RESERVED
    assert asked(job(1, 4, 6, MINE), books) == STARTS, "of its own and the rest"
    assert asked(job(1, 5, 6, MINE), books).code is Code.RESERVED


def test_the_most_that_is_reserved_at_one_moment():
    windows = [window(4, 0, 2), window(3, 1, 3), window(8, 3, 4)]
    assert most_reserved(windows, NOW, NOW + HOUR) == {"cpu": 4000}
    assert most_reserved(windows, NOW, NOW + 3 * HOUR) == {"cpu": 7000}
    assert most_reserved(windows, NOW, NOW + 4 * HOUR) == {"cpu": 8000}
    assert most_reserved(windows, NOW + 9 * HOUR, NOW + 10 * HOUR) == {}


def test_who_waits_for_a_window_keeps_no_one_else_from_starting():
    long = job(1, 8, None)
    found = decide_queue([long, job(2, 2, 1)], ledger(window(6, 3, 5)), NOW + HOUR)
    assert [one.fit for one in found.decisions.values()] == [Fit.WAITS, Fit.FITS_NOW]


_windows = st.builds(
    window, st.integers(1, 4), st.integers(-2, 5), st.integers(6, 9), st.sampled_from([MINE, THEIRS, THIRD])
)
_jobs = st.tuples(st.integers(1, 6), st.sampled_from([None, 1, 3, 5, 8]), st.sampled_from([MINE, THEIRS, THIRD]))


@settings(max_examples=150, deadline=None)
@given(st.lists(_windows, max_size=2), st.lists(_jobs, max_size=8))
def test_at_every_moment_each_namespace_can_have_what_is_reserved_for_it(windows, jobs):
    queue = [job(at + 1, *one) for at, one in enumerate(jobs)]
    books = ledger(*windows)
    found = decide_queue(queue, books, NOW)
    started = [one for one in queue if found.decisions[one.job_id].fit is Fit.FITS_NOW]
    for at in [NOW + n * HOUR for n in range(10)]:
        runs = [one for one in started if one.longest is None or NOW + one.longest > at]
        for whose in (MINE, THEIRS, THIRD):
            theirs = sum(one.total.cpu for one in runs if one.namespace_id == whose)
            now = [one for one in windows if one.owner == whose and one.begins <= at < one.ends]
            reserved = sum(one.units["cpu"] / 1000 for one in now)
            others = sum(one.total.cpu for one in runs if one.namespace_id != whose)
            if max(theirs, reserved) > theirs:
                assert others + reserved <= 8
    left = [one for one in queue if one not in started]
    after = Ledger(
        EngineCapacity(
            books.capacity.total, books.capacity.free, books.capacity.largest_task,
            sum((one.total for one in started), NOTHING),
        ),
        holders=tuple(Holder(one.job_id, one.namespace_id, one.total) for one in started),
        booked=Booked(NOW, tuple(windows), {one.job_id: NOW + one.longest for one in started if one.longest}),
    )  # fmt: skip
    for one in left:
        assert admit(one, left, after, NOW).fit is Fit.WAITS


def test_what_was_asked_to_end_late_counts_with_all_the_time_that_it_has_for_that():
    needs = JobNeeds(NOTHING, (), {}, HOUR, timedelta(minutes=2))
    late, begun = NOW + HOUR - timedelta(seconds=30), NOW
    assert needs.ends_by(begun, None, late, timedelta(0)) == late + timedelta(minutes=2)
    assert needs.ends_by(begun, None, None, timedelta(0)) == NOW + HOUR
