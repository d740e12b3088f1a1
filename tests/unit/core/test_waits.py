"""How long a job will wait: what is said from what, how wrong ranges are widened, and that ranges hold."""

from __future__ import annotations

import math
import random
import uuid

import pytest

from tests.unit.core.wait_simulation import Portal
from yardmaster.queueing.durations import History, Lasting, remaining
from yardmaster.queueing.pools import PoolKey
from yardmaster.queueing.waits import AIM, UNTRIED, Past, Range, Runs, Waits, correction, estimates

CPU = PoolKey(None, "cpu")
TEAM = PoolKey(uuid.UUID(int=1), "cpu")
HOUR = 3_600.0


def history(*seconds: float, group: str = "all") -> History:
    return History(((group,), one) for one in seconds)


def alike(count: int, seconds: float, group: str = "all") -> list[tuple[tuple[str, ...], float]]:
    return [((group,), seconds)] * count


def test_jobs_of_the_same_group_count_where_there_are_enough_else_all() -> None:
    known = History([*alike(20, 100.0), *alike(5, 9.0, "short"), *alike(4, 5_000.0, "rare")])
    assert set(known.like(Lasting(("short",)))) == {9.0}
    assert set(known.like(Lasting(("rare", "short")))) == {9.0}, "the next group"
    assert set(known.like(Lasting(("rare",)))) == {100.0, 9.0, 5_000.0}
    assert set(known.like(Lasting(("short",)), ran=50.0)) == {100.0, 5_000.0}, "it has outlasted its group"


def test_what_has_run_for_long_may_take_about_as_long_again_up_to_its_limit() -> None:
    chance = random.Random(1)
    found = sorted(remaining([], None, HOUR, chance) for _ in range(200))
    assert found[0] >= 1
    assert HOUR / 2 < found[100] < 2 * HOUR
    assert found[-1] <= 9 * HOUR
    assert max(remaining([], HOUR + 60, HOUR, chance) for _ in range(50)) <= 60
    assert remaining([100.0], 40.0, 10.0, chance) == 30.0


def test_nothing_is_said_before_enough_jobs_have_ended() -> None:
    queue = [Waits({CPU: 1}, Lasting(()))]
    assert estimates(history(*[60.0] * 9), [], queue, {CPU: 1}, 600) == [None]
    assert estimates(history(*[60.0] * 10), [], queue, {CPU: 1}, 600) == [Range(0, 0)]
    assert estimates(history(*[60.0] * 10), [], queue, {CPU: 0}, 600) == [None], "it never starts as things are"


def test_one_after_the_other_along_the_queue() -> None:
    known = history(*[100.0] * 10)
    runs = [Runs({CPU: 1}, Lasting(()), ran=40.0)]
    found = estimates(known, runs, [Waits({CPU: 1}, Lasting(()))] * 3, {CPU: 0}, 600)
    assert found == [Range(60, 60), Range(160, 160), Range(260, 260)]


def test_small_jobs_pass_a_large_one_until_it_has_waited_enough() -> None:
    known = history(*[100.0] * 10)
    runs = [Runs({CPU: 3}, Lasting(()), ran=0.0)]
    large, small = Waits({CPU: 4}, Lasting(())), Waits({CPU: 1}, Lasting(()))
    assert estimates(known, runs, [large, small], {CPU: 1}, 600) == [Range(100, 100), Range(0, 0)]
    waited = Waits({CPU: 4}, Lasting(()), waited=700.0)
    assert estimates(known, runs, [waited, small], {CPU: 1}, 600) == [Range(100, 100), Range(200, 200)]


def test_who_waits_for_a_quota_keeps_nothing_of_the_engine() -> None:
    known = history(*[100.0] * 10)
    runs = [Runs({CPU: 1, TEAM: 1}, Lasting(()), ran=0.0)]
    mine, other = Waits({CPU: 1, TEAM: 1}, Lasting(()), waited=700.0), Waits({CPU: 1}, Lasting(()))
    found = estimates(known, runs, [mine, other], {CPU: 1, TEAM: 0}, 600)
    assert found == [Range(100, 100), Range(0, 0)]


def test_the_same_seed_says_the_same_and_ranges_are_in_order() -> None:
    chance = random.Random(3)
    known = history(*(chance.lognormvariate(5, 1) for _ in range(50)))
    runs = [Runs({CPU: 1}, Lasting(()), chance.random() * 100) for _ in range(4)]
    queue = [Waits({CPU: chance.choice([1, 2])}, Lasting(())) for _ in range(20)]
    found = estimates(known, runs, queue, {CPU: 0}, 600, seed=5)
    assert found == estimates(known, runs, queue, {CPU: 0}, 600, seed=5)
    assert all(one is not None and 0 <= one.low <= one.high for one in found)


def test_ranges_are_widened_by_what_was_wrong_and_by_default_before_enough_is_known() -> None:
    assert correction([]) == UNTRIED
    narrow = Range(100.0, 110.0)
    late = [Past(narrow, 1_000.0)] * 40
    wide = narrow.corrected(correction(late))
    assert wide.low < 100
    assert wide.high == pytest.approx(1_000.0)
    early = [Past(Range(100.0, 1_000.0), 300.0)] * 40
    tight = Range(100.0, 1_000.0).corrected(correction(early))
    assert 100 < tight.low <= 300 <= tight.high < 1_000, "ranges that were far too wide become narrower"


def test_who_still_waits_counts_once_the_range_is_over() -> None:
    soon = Range(10.0, 20.0)
    right = [Past(soon, 15.0)] * 40
    waits = [Past(soon, 5_000.0, has_started=False)] * 40
    assert correction(right) < 0 < correction([*right, *waits])
    fresh = [Past(soon, 12.0, has_started=False)] * 40
    assert correction([*right, *fresh]) == correction(right)


def test_a_range_without_end_stays_without_end() -> None:
    assert math.isinf(Range(10.0, math.inf).corrected(UNTRIED).high)
    assert Range(10.0, 20.0).corrected(-50.0).low == Range(10.0, 20.0).corrected(-50.0).high


def test_in_a_simulated_portal_at_least_four_of_five_ranges_hold() -> None:
    portal = Portal(cores=24, people=9, load=0.8, seed=2)
    portal.run(days=1.5)
    ended = [one for one in portal.said.values() if one.waited is not None]
    assert len(ended) >= 60, "else it says nothing"
    right = sum(one.told.low <= one.waited <= one.told.high for one in ended)
    assert right / len(ended) >= 0.8 < AIM
