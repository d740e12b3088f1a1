"""What happens next in a sweep, on made curves."""

from __future__ import annotations

import pytest

from yardmaster.sweeps.decision import Decision, SweepState, Trial, TrialState, decide
from yardmaster.sweeps.plan import EarlyStop, Goal, Metric, Plan, Rule
from yardmaster.sweeps.space import Choice
from yardmaster.sweeps.stopping import hopeless, rung_of

LOSS = Metric("loss")
SPACE = (Choice("lr", (1, 2)),)


def curve(rate: float, steps: int) -> list[tuple[int, float | None]]:
    return [(step, rate * (1 + 1 / step)) for step in range(1, steps + 1)]


def trials(**states: int) -> list[Trial]:
    found: list[Trial] = []
    for state, count in states.items():
        found += [Trial(len(found) + number + 1, TrialState(state)) for number in range(count)]
    return found


def test_as_many_are_launched_as_may_run_at_once_in_order():
    plan = Plan(SPACE, parallel=3)
    assert decide(plan, SweepState.RUNNING, trials(active=1, waiting=5), 0) == Decision(launch=(2, 3))
    assert decide(plan, SweepState.RUNNING, trials(active=3, waiting=5), 0) == Decision()
    assert decide(plan, SweepState.PAUSED, trials(active=1, waiting=5), 0) == Decision()


def test_it_is_over_when_nothing_waits_or_runs():
    plan = Plan(SPACE)
    assert decide(plan, SweepState.RUNNING, trials(succeeded=2, failed=1), 0).is_over
    assert decide(plan, SweepState.PAUSED, trials(succeeded=2), 0).is_over
    assert not decide(plan, SweepState.RUNNING, trials(succeeded=2, active=1), 0).is_over
    assert not decide(plan, SweepState.STOPPING, trials(active=1, waiting=1), 0).is_over
    assert decide(plan, SweepState.STOPPING, trials(stopped=1, waiting=1), 0).is_over
    assert decide(plan, SweepState.ENDED, trials(waiting=4), 0) == Decision()


def test_failures_in_a_row_pause_it():
    plan = Plan(SPACE, stop_after_failures=3)
    assert decide(plan, SweepState.RUNNING, trials(failed=2, waiting=2), 2).launch
    assert decide(plan, SweepState.RUNNING, trials(failed=3, waiting=2), 3).pause == "3 trials in a row have failed."
    assert decide(Plan(SPACE, stop_after_failures=0), SweepState.RUNNING, trials(failed=9, waiting=1), 9).launch


def test_a_target_that_is_reached_ends_it():
    plan = Plan(SPACE, metric=Metric("acc", Goal.MAXIMIZE, target=0.9))
    near, there = Trial(1, TrialState.ACTIVE, [(1, 0.89)]), Trial(2, TrialState.ACTIVE, [(1, 0.5), (2, 0.9), (3, 0.2)])
    assert decide(plan, SweepState.RUNNING, [near], 0).finish == ""
    assert decide(plan, SweepState.RUNNING, [near, there], 0).finish == "Trial 2 has reached acc 0.9."


@pytest.mark.parametrize("goal", Goal)
def test_the_median_rule_stops_the_worse_half_alone(goal):
    metric = Metric("m", goal)
    sign = 1 if goal is Goal.MINIMIZE else -1
    curves = {n: [(step, sign * value) for step, value in curve(n, 20)] for n in (1, 2, 3, 4, 5)}
    found = hopeless(curves, [1, 2, 3, 4, 5], metric, EarlyStop(Rule.MEDIAN, min_steps=10))
    assert set(found) == {4, 5}
    assert "median" in found[5]


def test_the_median_rule_waits_for_steps_and_for_others():
    early = EarlyStop(Rule.MEDIAN, min_steps=10)
    curves = {n: curve(n, 20) for n in (1, 2, 3)}
    assert hopeless(curves | {4: curve(9, 9)}, [4], LOSS, early) == {}
    assert hopeless({1: curve(1, 20), 2: curve(2, 20), 4: curve(9, 15)}, [4], LOSS, early) == {}
    assert set(hopeless(curves | {4: curve(9, 10)}, [4], LOSS, early)) == {4}
    assert hopeless(curves | {4: curve(9, 21)}, [4], LOSS, early) == {}  # no other has come so far


def test_halving_keeps_the_best_third_at_each_rung():
    early = EarlyStop(Rule.HALVING, min_steps=10, factor=3)
    curves = {n: curve(n, 12) for n in range(1, 10)}
    assert set(hopeless(curves, range(1, 10), LOSS, early)) == {4, 5, 6, 7, 8, 9}
    farther = {n: curve(n, 30 if n < 4 else 12) for n in range(1, 10)}
    assert set(hopeless(farther, [1, 2, 3], LOSS, early)) == {2, 3}


def test_halving_is_not_asked_before_enough_have_come_to_the_rung():
    early = EarlyStop(Rule.HALVING, min_steps=10, factor=3)
    assert hopeless({1: curve(5, 12), 2: curve(1, 12), 3: curve(1, 8)}, [1, 2, 3], LOSS, early) == {}


def test_rungs_are_multiples_of_the_factor():
    early = EarlyStop(Rule.HALVING, min_steps=10, factor=3)
    assert [rung_of(step, early) for step in (10, 29, 30, 89, 90, 10**9)] == [10, 10, 30, 30, 90, 10 * 3**16]


def test_a_trial_that_has_diverged_is_stopped_and_does_not_spoil_the_others():
    curves = {n: curve(n, 20) for n in (1, 2, 3)} | {4: [(5, 0.1), (12, None)]}
    found = hopeless(curves, [1, 4], LOSS, EarlyStop(Rule.MEDIAN, min_steps=10))
    assert found == {4: "loss is no finite number at step 12."}


def test_without_a_rule_none_is_stopped():
    assert hopeless({1: curve(9, 99), 2: curve(1, 99)}, [1, 2], LOSS, EarlyStop()) == {}


def test_one_that_is_stopping_already_is_not_stopped_again():
    plan = Plan(SPACE, metric=LOSS, early_stop=EarlyStop(Rule.MEDIAN, min_steps=1))
    state = [Trial(n, TrialState.ACTIVE, curve(n, 5), is_stopping=n == 9) for n in (1, 2, 3, 8, 9)]
    assert [number for number, _ in decide(plan, SweepState.RUNNING, state, 0).stop] == [8]
