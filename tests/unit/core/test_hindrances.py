"""What keeps a run from going on that its engine took: what is shown, when it goes back, when it has failed."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from tests.unit.core.generators import NOW, everything, make_spec, task
from yardmaster.job.spec import Role, Strategy, SuccessRule
from yardmaster.lifecycle.failures import REASONS
from yardmaster.lifecycle.hindrances import Hindrance, Rivals, goes_back_at, image_verdict, shown_hindrance
from yardmaster.lifecycle.phases import Observation, Phase, Refused, TaskPhase, Wanted
from yardmaster.lifecycle.plan import Move, Remembered, Restart, Step, TakeBack, Timing, Wait, plan

SPEC = make_spec()
TIMING = Timing()
WORKER, PS = Role.WORKER, Role.PS
PENDING, RUNNING, FAILED = TaskPhase.PENDING, TaskPhase.RUNNING, TaskPhase.FAILED
NO_NODE = "0/2 nodes are available: 2 Insufficient cpu."
MINUTE = timedelta(minutes=1)


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def refused(*, since: float = 1, is_growing: bool = False) -> Observation:
    """Worker 0 runs, worker 1 has no node."""
    stuck = task(WORKER, 1, PENDING, reason="Unschedulable", message=NO_NODE)
    seen = everything(SPEC, RUNNING, stuck)
    return replace(seen, refused=Refused(at(since), NO_NODE, is_growing))


STARTING = Remembered(
    SPEC, Phase.STARTING, Wanted.RUN, queued_at=NOW, admitted_at=NOW, submitted_at=NOW, reserved=frozenset(SPEC.roles)
)


def step(seconds: float, seen: Observation | None = None, **changes: object) -> Step:
    return plan(replace(STARTING, **changes), seen or refused(), at(seconds), TIMING)  # type: ignore[arg-type]


def test_what_the_scheduler_refuses_for_a_minute_goes_back_whole_with_its_words() -> None:
    assert step(50) == Wait(at(61))
    found = step(61)
    assert isinstance(found, TakeBack)
    assert found.until == at(61) + MINUTE
    assert (found.why.reason, NO_NODE in found.why.message) == ("Unschedulable", True)
    assert "1 minute" in found.why.message


@pytest.mark.parametrize(("refusals", "minutes"), [(0, 1), (1, 2), (2, 4), (5, 30), (500, 30)])
def test_it_is_tried_again_less_and_less_often(refusals: int, minutes: int) -> None:
    found = step(61, refusals=refusals)
    assert isinstance(found, TakeBack)
    assert found.until == at(61) + timedelta(minutes=minutes)


def test_a_machine_that_is_being_added_is_waited_for() -> None:
    growing = refused(is_growing=True)
    assert step(590, growing) == Wait(at(601))
    assert isinstance(step(601, growing), TakeBack)


def test_a_clock_of_the_cluster_that_is_slow_hastens_nothing() -> None:
    assert step(59, refused(since=-3600)) == Wait(at(60))


def test_a_job_that_runs_keeps_its_room_whatever_the_scheduler_says_of_a_pod_that_is_made_anew() -> None:
    running = replace(STARTING, phase=Phase.RUNNING, started_at=NOW)
    assert plan(running, refused(), at(9999), TIMING) == Wait(at(9999 + 15))


def test_a_verdict_a_stop_and_a_restart_of_all_come_first() -> None:
    failed = replace(refused(), tasks=everything(SPEC, RUNNING, task(PS, 0, FAILED, exit_code=1)).tasks)
    found = step(100, failed)
    assert isinstance(found, Move)
    assert found.phase is Phase.FAILED
    assert step(100, wanted=Wanted.STOP) == Move(Phase.STOPPING)
    assert step(100, replace(refused(), to_restart=True)) == Restart()


def test_of_several_the_one_that_was_admitted_last_goes_first_and_the_others_are_given_their_time_anew() -> None:
    assert step(100, rivals=Rivals(is_last=False)) == Wait(at(115))
    assert step(100, rivals=Rivals(capacity_freed_at=at(61))) == Wait(at(115))
    assert isinstance(step(121, rivals=Rivals(capacity_freed_at=at(61))), TakeBack)
    assert goes_back_at(Refused(NOW), NOW, Rivals(is_last=False), MINUTE) is None


def test_who_waits_for_another_to_go_first_waits_no_longer_than_a_start_may_take() -> None:
    assert isinstance(step(1800, rivals=Rivals(is_last=False)), TakeBack)


# --- images ----------------------------------------------------------------------------------------------------------

NO_IMAGE = task(WORKER, 1, PENDING, reason="ImagePull", message="denied: no access")


def test_an_image_that_cannot_be_pulled_fails_after_its_time_with_the_registrys_words() -> None:
    seen = everything(SPEC, RUNNING, NO_IMAGE)
    assert step(299, seen, image_failing_since=NOW) == Wait(at(314))
    found = step(300, seen, image_failing_since=NOW)
    assert isinstance(found, Move)
    assert found.verdict is not None
    assert (found.phase, found.verdict.reason, found.verdict.index) == (Phase.FAILED, "ImagePull", 1)
    assert "Denied: no access" in found.verdict.message or "denied: no access" in found.verdict.message


def test_an_image_that_came_in_the_last_second_fails_nothing() -> None:
    assert step(900, everything(SPEC, RUNNING), image_failing_since=NOW) == Move(Phase.RUNNING)


def test_a_running_job_does_without_a_task_that_it_does_not_need() -> None:
    needs_one = make_spec(
        Strategy.MULTI_WORKER_MIRRORED, {WORKER: 2}, success_rule=SuccessRule.WORKERS, success_percent=50
    )
    seen = everything(needs_one, RUNNING, NO_IMAGE)
    assert image_verdict(needs_one, Phase.RUNNING, seen) is None
    assert image_verdict(SPEC, Phase.RUNNING, everything(SPEC, RUNNING, NO_IMAGE)) is not None
    assert image_verdict(needs_one, Phase.STARTING, seen) is not None


# --- what is shown ---------------------------------------------------------------------------------------------------


def test_a_running_job_says_what_machines_do_to_its_tasks_and_not_what_its_log_tells() -> None:
    lost = [task(WORKER, index, RUNNING, reason="NodeNotReady", message="n1 is not ready.") for index in (0, 1)]
    shown = shown_hindrance(Phase.RUNNING, everything(SPEC, RUNNING, *lost))
    assert (shown.reason, shown.message) == ("NodeNotReady", "Worker 0 (and 1 more): n1 is not ready.")
    assert shown.remedy == REASONS["NodeNotReady"].remedy
    again = task(WORKER, 0, PENDING, reason="ScriptFailed", message="ValueError")
    assert shown_hindrance(Phase.RUNNING, everything(SPEC, RUNNING, again)) == Hindrance()
    done = task(WORKER, 0, FAILED, reason="Evicted")
    assert shown_hindrance(Phase.RUNNING, everything(SPEC, RUNNING, done)) == Hindrance()


def test_a_starting_job_says_the_most_telling_of_several_reasons() -> None:
    stuck = task(WORKER, 0, PENDING, reason="Unschedulable", message=NO_NODE)
    shown = shown_hindrance(Phase.STARTING, everything(SPEC, PENDING, stuck, NO_IMAGE))
    assert (shown.reason, shown.message) == ("ImagePull", "denied: no access")
    assert shown_hindrance(Phase.STARTING, replace(everything(SPEC, PENDING), message="held")).reason == "Starting"
    assert shown_hindrance(Phase.STOPPING, everything(SPEC, PENDING, stuck)) == Hindrance()
