"""Who may start now, who waits and for what, and who never can."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.unit.core.generators import NOW, make_spec, one_task
from yardmaster.job.spec import NOTHING, Resources, Role
from yardmaster.queueing.admission import (
    STARTS,
    Candidate,
    Code,
    Decision,
    EngineCapacity,
    Fit,
    Holder,
    Ledger,
    Quota,
    Shortage,
    Usage,
    admit,
)
from yardmaster.queueing.placement import Tasks

GI = 1 << 30
TEAM, OTHERS = uuid.UUID(int=1), uuid.UUID(int=2)
ENGINE = Resources(cpu=8, memory=32 * GI, gpus=4)
MACHINE = Resources(cpu=4, memory=16 * GI, gpus=2)


def capacity(reserved: Resources = NOTHING, free: Resources = ENGINE) -> EngineCapacity:
    return EngineCapacity(ENGINE, free, MACHINE, reserved)


def ledger(quota: Quota = Quota(), usage: Usage = Usage(), **fields: Any) -> Ledger:
    return Ledger(**{"capacity": capacity(), "quotas": {TEAM: quota}, "usage": {TEAM: usage}, **fields})


def candidate(
    number: int = 1,
    cpu: float = 1,
    gpus: int = 0,
    waited: float = 0,
    priority: int = 0,
    namespace: uuid.UUID = TEAM,
    extended: dict[str, int] | None = None,
) -> Candidate:
    """One task of this size that has waited for `waited` seconds."""
    size = Resources(cpu, GI, gpus, extended or {})
    queued_at = NOW - timedelta(seconds=waited)
    return Candidate(uuid.UUID(int=number), namespace, queued_at, priority, size, one_task(size))


def ask(one: Candidate, books: Ledger, *queue: Candidate, now: datetime = NOW) -> Any:
    return admit(one, queue, books, now)


def waits(one: Candidate, books: Ledger, *queue: Candidate) -> Decision:
    decision = ask(one, books, *queue)
    assert decision.fit is Fit.WAITS
    return decision


def never(one: Candidate, books: Ledger) -> Decision:
    decision = ask(one, books)
    assert decision.fit is Fit.NEVER_FITS
    return decision


def test_a_job_that_fits_is_admitted_whole() -> None:
    spec = make_spec(shape={Role.WORKER: 3, Role.PS: 2})
    one = Candidate.of(spec, job_id=uuid.UUID(int=9), namespace_id=TEAM, queued_at=NOW)
    assert ask(one, ledger()) == STARTS


def test_a_namespace_without_a_quota_is_limited_by_the_engine_alone() -> None:
    assert ask(candidate(cpu=4, namespace=OTHERS), ledger()) == STARTS


# kueue#189: say which resource lacked quota.


def test_kueue_189_the_answer_says_which_resource_lacks_in_quota_and_by_how_much() -> None:
    found = waits(candidate(cpu=4), ledger(Quota(cpu=8), Usage(Resources(cpu=6, memory=0), 1)))
    assert found.code is Code.WAITING_FOR_QUOTA
    assert found.numbers == (Shortage("quota", "cpu", needs=4, unused=2, limit=8),)
    assert found.numbers[0].short_by == 2
    assert "Not enough namespace quota: CPU (4 requested, 2 of 8 available)" in found.message


def test_dstack_4099_a_full_engine_is_not_called_a_lack_of_quota() -> None:
    found = waits(candidate(cpu=4), ledger(Quota(cpu=100), capacity=capacity(reserved=Resources(6, GI))))
    assert found.code is Code.WAITING_FOR_CAPACITY
    assert found.numbers == (Shortage("capacity", "cpu", needs=4, unused=2, limit=8),)
    assert "free capacity on the engine: CPU" in found.message


def test_where_both_lack_both_are_named_and_quota_comes_first() -> None:
    books = ledger(Quota(cpu=8), Usage(Resources(6, 0), 1), capacity=capacity(reserved=Resources(7, GI)))
    found = waits(candidate(cpu=4), books)
    assert found.code is Code.WAITING_FOR_QUOTA
    assert [one.pool for one in found.numbers] == ["quota", "capacity"]


def test_what_strangers_use_is_not_free() -> None:
    books = ledger(capacity=capacity(reserved=Resources(1, GI), free=Resources(3, 32 * GI)))
    found = waits(candidate(cpu=3), books)
    assert found.numbers == (Shortage("capacity", "cpu", needs=3, unused=2, limit=8),)


def test_the_number_of_running_jobs_is_a_limit_too() -> None:
    found = waits(candidate(), ledger(Quota(running_jobs=2), Usage(Resources(2, GI), 2)))
    assert found.numbers == (Shortage("quota", "running_jobs", needs=1, unused=0, limit=2),)
    assert "running jobs (1 requested, 0 of 2 available)" in found.message


def test_a_quota_that_was_lowered_below_what_is_held_only_stops_what_needs_it() -> None:
    books = ledger(Quota(cpu=8, gpus=0), Usage(Resources(2, GI, gpus=2), 1))
    assert ask(candidate(cpu=2), books).fit is Fit.FITS_NOW


def test_fractions_of_cores_add_up_exactly() -> None:
    books = ledger(Quota(cpu=0.3), Usage(Resources(0.1 + 0.1, 0), 2))
    assert ask(candidate(cpu=0.1), books).fit is Fit.FITS_NOW


# coder#6465: waiting may mean full, or that nobody can ever run it.


def test_coder_6465_a_job_larger_than_its_quota_is_told_that_it_can_never_start() -> None:
    found = never(candidate(cpu=4), ledger(Quota(cpu=3)))
    assert found.code is Code.EXCEEDS_MAX_QUOTA
    assert found.numbers == (Shortage("quota", "cpu", needs=4, unused=3, limit=3),)
    assert "CPU (4 requested, maximum 3)" in found.message
    assert found.remedy


def test_coder_6465_so_is_one_larger_than_the_engine() -> None:
    four = Resources(4, GI)
    one = replace(candidate(), total=four * 3, tasks=(Tasks("worker", four, 3),))
    assert never(one, ledger()).code is Code.EXCEEDS_CAPACITY


def test_kai_2058_so_is_one_of_which_a_single_task_fits_on_no_machine() -> None:
    found = never(candidate(gpus=4), ledger())
    assert found.code is Code.NO_MATCHING_FLAVOR
    assert found.numbers == (Shortage("machine", "gpus", needs=4, unused=2, limit=2),)


def test_a_resource_that_no_machine_has_can_never_be_had() -> None:
    found = never(candidate(extended={"rdma/hca": 1}), ledger())
    assert found.code is Code.NO_MATCHING_FLAVOR
    assert "rdma/hca" in found.message


def test_no_running_job_allowed_means_never() -> None:
    assert never(candidate(), ledger(Quota(running_jobs=0))).code is Code.EXCEEDS_MAX_QUOTA


@pytest.mark.parametrize("code", [Code.DEACTIVATED, Code.SUSPENDED, Code.ADMISSION_GATED])
def test_a_closed_namespace_starts_nothing_and_the_others_go_on(code: Code) -> None:
    books = ledger(closed={TEAM: code})
    assert waits(candidate(), books).code is code
    assert ask(candidate(namespace=OTHERS), books).fit is Fit.FITS_NOW


def test_a_closed_engine_starts_nothing() -> None:
    found = waits(candidate(), ledger(engine_closed=Code.MISCONFIGURED))
    assert found.code is Code.MISCONFIGURED
    assert found.message.startswith("The engine")


@pytest.mark.parametrize(
    ("engine_closed", "closed", "quota", "gpus", "code"),
    [
        (Code.MISCONFIGURED, Code.DEACTIVATED, None, 4, Code.DEACTIVATED),
        (Code.MISCONFIGURED, Code.SUSPENDED, None, 4, Code.MISCONFIGURED),
        (Code.SUSPENDED, None, 0.5, 4, Code.NO_MATCHING_FLAVOR),
        (Code.SUSPENDED, Code.ADMISSION_GATED, 0.5, 0, Code.SUSPENDED),
        (None, Code.ADMISSION_GATED, 0.5, 0, Code.ADMISSION_GATED),
        (None, None, 0.5, 0, Code.EXCEEDS_MAX_QUOTA),
    ],
)
def test_of_several_reasons_the_first_in_kueues_order_is_given(
    engine_closed: Code | None, closed: Code | None, quota: float | None, gpus: int, code: Code
) -> None:
    books = ledger(Quota(cpu=quota), engine_closed=engine_closed, closed={TEAM: closed} if closed else {})
    assert ask(candidate(gpus=gpus), books).code is code


def test_a_held_job_waits_and_takes_nothing_from_those_behind_it() -> None:
    held, behind = candidate(1, cpu=4, waited=60), candidate(2, cpu=4)
    books = ledger(held_jobs=frozenset({held.job_id}), reasons={held.job_id: "Ask Bea first."})
    found = waits(held, books)
    assert (found.code, found.message) == (
        Code.HELD, "The job is held by an administrator and does not start: Ask Bea first."
    )  # fmt: skip
    assert ask(behind, books, held).fit is Fit.FITS_NOW


def test_a_namespace_without_budget_is_told_when_it_starts_again() -> None:
    found = waits(candidate(), ledger(closed={TEAM: Code.BUDGET_SPENT}))
    assert found.message == "The namespace has used up its budget of this month and starts no jobs until the next."


# The queue.


def test_volcano_2534_a_job_that_fits_passes_one_that_does_not() -> None:
    big, small = candidate(1, cpu=4, waited=60), candidate(2, cpu=1)
    books = ledger(capacity=capacity(reserved=Resources(6, GI)))
    assert ask(big, books, small).fit is Fit.WAITS
    assert ask(small, books, big).fit is Fit.FITS_NOW


def test_but_not_for_ever_once_the_big_one_has_waited_long_enough() -> None:
    big, small = candidate(1, cpu=4, waited=601), candidate(2, cpu=1, waited=30)
    found = waits(small, ledger(capacity=capacity(reserved=Resources(6, GI))), big)
    assert found.code is Code.WAITING_FOR_TURN
    assert found.ahead == (big.job_id,)
    assert found.position == 1
    assert "1 job ahead in the queue" in found.message


def test_a_long_wait_for_ones_own_quota_holds_up_nobody_elses() -> None:
    big = candidate(1, cpu=4, waited=601)
    books = ledger(Quota(cpu=4), Usage(Resources(2, GI), 1))
    assert ask(candidate(2, cpu=1), books, big).fit is Fit.WAITS
    assert ask(candidate(3, cpu=1, namespace=OTHERS), books, big).fit is Fit.FITS_NOW


def test_a_long_wait_for_gpus_does_not_keep_the_cores_from_others() -> None:
    gpu_job = candidate(1, gpus=2, waited=9999)
    books = ledger(capacity=capacity(reserved=Resources(1, GI, gpus=3)))
    assert ask(candidate(2), books, gpu_job).fit is Fit.FITS_NOW
    assert waits(candidate(3, gpus=1), books, gpu_job).code is Code.WAITING_FOR_TURN


def test_who_came_first_and_fits_gets_its_room_first() -> None:
    first, second = candidate(1, cpu=2, waited=5), candidate(2, cpu=2)
    books = ledger(Quota(cpu=3))
    assert ask(first, books, second).fit is Fit.FITS_NOW
    found = waits(second, books, first)
    assert found.code is Code.WAITING_FOR_TURN
    assert found.ahead == (first.job_id,)


def test_priority_comes_before_time_and_ids_settle_the_rest() -> None:
    books = ledger(Quota(cpu=2))
    late, early = candidate(2, cpu=2, priority=5), candidate(1, cpu=2, waited=9999)
    assert ask(late, books, early).fit is Fit.FITS_NOW
    assert ask(early, books, late).fit is Fit.WAITS
    twin = candidate(3, cpu=2, priority=5)
    assert ask(twin, books, late).fit is Fit.WAITS
    assert ask(late, books, twin).fit is Fit.FITS_NOW


def test_jobs_that_can_never_start_or_may_not_hold_up_nobody() -> None:
    impossible = candidate(1, cpu=4, gpus=4, waited=9999)
    closed = candidate(2, cpu=4, waited=9999, namespace=OTHERS)
    books = ledger(closed={OTHERS: Code.SUSPENDED}, capacity=capacity(reserved=Resources(6, GI)))
    assert ask(candidate(3, cpu=2), books, impossible, closed).fit is Fit.FITS_NOW


def test_kueue_2833_the_answer_says_who_is_ahead_and_who_holds_what_it_waits_for() -> None:
    mine = Holder(uuid.UUID(int=50), TEAM, Resources(6, GI))
    theirs = Holder(uuid.UUID(int=51), OTHERS, Resources(1, GI, gpus=1))
    ahead, elsewhere = candidate(1, cpu=4, waited=60), candidate(2, cpu=4, waited=50, namespace=OTHERS)
    books = ledger(Quota(cpu=8), Usage(Resources(6, GI), 1), holders=(mine, theirs))
    found = waits(candidate(3, cpu=3), books, ahead, elsewhere)
    assert found.code is Code.WAITING_FOR_QUOTA
    assert found.ahead == (ahead.job_id,)
    assert found.position == 2
    assert found.holders == (mine,)
    assert found.message.endswith("1 job ahead is waiting for the same resources.")


def test_the_candidate_itself_may_be_in_the_queue() -> None:
    one = candidate(1, cpu=4)
    assert ask(one, ledger(Quota(cpu=4)), one, replace(one)).fit is Fit.FITS_NOW


def test_trainer_1264_of_two_jobs_that_half_fit_one_starts_whole_and_the_other_waits_whole() -> None:
    spec = make_spec(shape={Role.WORKER: 3, Role.PS: 1}, resources=Resources(1, GI))
    first, second = (Candidate.of(spec, job_id=uuid.UUID(int=n), namespace_id=TEAM, queued_at=NOW) for n in (1, 2))
    books = ledger(Quota(cpu=6))
    assert ask(first, books, second) == STARTS
    held = ledger(Quota(cpu=6), Usage(spec.total(), 1), capacity=capacity(reserved=spec.total()))
    assert waits(second, held).numbers == (Shortage("quota", "cpu", needs=4, unused=2, limit=6),)
