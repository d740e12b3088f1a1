"""Which limits are in force at a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from yardmaster.queueing.scheduled_limits import Scheduled, Step, in_force, outlook, overlaid

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
USUAL = {"gpus": 2, "cpu": None}


def change(made, limits, starts, ends):
    return Scheduled(made, limits, NOON + starts * HOUR, NOON + ends * HOUR)


def test_it_holds_from_its_start_until_just_before_its_end():
    more = [change(0, {"gpus": 8}, 1, 3)]
    at = [in_force(USUAL, more, NOON + hours * HOUR)["gpus"] for hours in (0, 1, 2, 3)]
    assert at == [2, 8, 8, 2]
    assert in_force(USUAL, more, NOON + HOUR)["cpu"] is None


def test_of_two_that_overlap_the_one_made_last_counts_while_it_holds():
    both = [change(1, {"gpus": 4}, 1, 2), change(0, {"gpus": 8, "cpu": 10}, 0, 3)]
    at = [overlaid(both, NOON + hours * HOUR) for hours in (0, 1, 2, 3)]
    assert at == [{"gpus": 8, "cpu": 10}, {"gpus": 4, "cpu": 10}, {"gpus": 8, "cpu": 10}, {}]


def test_one_may_take_a_limit_away():
    assert in_force(USUAL, [change(0, {"gpus": None}, 0, 1)], NOON)["gpus"] is None


def test_the_outlook_says_what_is_and_what_comes_and_leaves_out_what_stays():
    both = [change(0, {"gpus": 8, "cpu": None}, -1, 2), change(1, {"gpus": 8}, 1, 4)]
    assert outlook(USUAL, both, NOON) == {"gpus": [Step(8, None), Step(2, NOON + 4 * HOUR)]}
    assert outlook(USUAL, [change(0, {"gpus": 1}, -3, -1)], NOON) == {}


def test_a_resource_without_a_usual_limit_is_unlimited_afterwards():
    found = outlook(USUAL, [change(0, {"amd.com/gpu": 4}, 1, 2)], NOON)
    assert found == {"amd.com/gpu": [Step(None, None), Step(4, NOON + HOUR), Step(None, NOON + 2 * HOUR)]}
