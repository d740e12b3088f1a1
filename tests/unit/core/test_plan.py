"""The one decision, as a table: what is remembered, what is seen, what time it is, and the step that follows."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.unit.core.generators import NOW, everything, make_spec, task
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import ABSENT, Observation, Phase, TaskPhase, Wanted
from yardmaster.lifecycle.plan import (
    Admit,
    CleanUp,
    FreeQuota,
    Move,
    Release,
    Remembered,
    Restart,
    Stop,
    Submit,
    Timing,
    Wait,
    plan,
)

SPEC = make_spec(max_runtime=timedelta(hours=1))
TIMING = Timing(timedelta(seconds=15), timedelta(minutes=30), timedelta(seconds=10))
WORKER, PS = Role.WORKER, Role.PS
BOTH = frozenset({WORKER, PS})
PENDING, RUNNING, DONE = TaskPhase.PENDING, TaskPhase.RUNNING, TaskPhase.SUCCEEDED
FAILED, RELEASED = TaskPhase.FAILED, TaskPhase.RELEASED

ALL_RUN = everything(SPEC, RUNNING)
ALL_PEND = everything(SPEC, PENDING)
ALL_GONE = everything(SPEC, RELEASED)
WORKERS_DONE = everything(SPEC, RUNNING, task(WORKER, 0, DONE), task(WORKER, 1, DONE))
ALL_ENDED_WELL = everything(SPEC, DONE, task(PS, 0, RELEASED))
PS_FAILED = everything(SPEC, RUNNING, task(PS, 0, FAILED, exit_code=1))
LOST_FOR_ALL = replace(ALL_RUN, to_restart=True)
RUN, STOP = Wanted.RUN, Wanted.STOP


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def job(phase: Phase, wanted: Wanted = RUN, **fields: Any) -> Remembered:
    """A job that was queued, admitted and started at second 0, and holds the quota of both roles."""
    known = {"reserved": BOTH, "admitted_at": NOW, "started_at": NOW, **fields}
    return Remembered(
        fields.pop("spec", SPEC), phase, wanted, queued_at=NOW, **{k: v for k, v in known.items() if k != "spec"}
    )


QUEUED = Remembered(SPEC, Phase.QUEUED, RUN, queued_at=NOW)
STARTING = job(Phase.STARTING, started_at=None)
LIVE = job(Phase.RUNNING)
STOPPING = job(Phase.STOPPING, STOP)
UPLOADING = replace(STOPPING, stop_sent_at=at(100), uploading_at=at(330))
WELL = job(Phase.SUCCEEDED, decided_at=at(100))
BADLY = job(Phase.FAILED, decided_at=at(100))

TABLE = [
    # Waiting for room.
    ("a queued job asks for room", QUEUED, ABSENT, 0, Admit()),
    ("a queued job that is not wanted has stopped", replace(QUEUED, wanted=STOP), ABSENT, 0, Move(Phase.STOPPED)),
    # Starting.
    ("an admitted job is handed to its engine", STARTING, ABSENT, 0, Submit()),
    ("it is handed over again after any time, if it is not there", STARTING, ABSENT, 9999, Submit()),
    ("half a gang is not a running job", STARTING, everything(SPEC, RUNNING, task(PS, 0, PENDING)), 5, Wait(at(20))),
    ("nor is one of which a task was not created yet", STARTING, Observation(True, ALL_RUN.tasks[:2]), 5, Wait(at(20))),
    ("it runs when all have begun", STARTING, ALL_RUN, 5, Move(Phase.RUNNING)),
    ("the start timeout is waited for exactly", STARTING, ALL_PEND, 1795, Wait(at(1800))),
    ("a stop while starting", replace(STARTING, wanted=STOP), ALL_PEND, 5, Move(Phase.STOPPING)),
    ("a stop before anything was submitted", replace(STARTING, wanted=STOP), ABSENT, 5, Move(Phase.STOPPING)),
    # Running.
    ("a running job is looked at again", LIVE, ALL_RUN, 100, Wait(at(115))),
    ("but not later than its deadline", LIVE, ALL_RUN, 3590, Wait(at(3600))),
    ("a stop", replace(LIVE, wanted=STOP), ALL_RUN, 100, Move(Phase.STOPPING)),
    ("a stop of a run that is gone", replace(LIVE, wanted=STOP), ABSENT, 100, Move(Phase.STOPPING)),
    ("a stop that was carried out on the engine itself", replace(LIVE, wanted=STOP), ALL_GONE, 9, Move(Phase.STOPPING)),
    # Stopping.
    ("the engine is told", STOPPING, ALL_RUN, 100, Stop(timedelta(seconds=3630))),
    ("and given its time", replace(STOPPING, stop_sent_at=at(100)), ALL_RUN, 120, Wait(at(135))),
    ("exactly", replace(STOPPING, stop_sent_at=at(100)), ALL_RUN, 285, Wait(at(290))),
    ("then it is done by force", replace(STOPPING, stop_sent_at=at(100)), ALL_RUN, 290, CleanUp()),
    ("a task that uploads has longer", UPLOADING, ALL_RUN, 485, Wait(at(490))),
    ("until it says no more that it does", UPLOADING, ALL_RUN, 490, CleanUp()),
    (
        "or the longest time is over",
        replace(UPLOADING, uploading_at=at(3700)),
        ALL_RUN,
        100 + 30 + 3600 + 10,
        CleanUp(),
    ),
    ("all tasks have ended", replace(STOPPING, stop_sent_at=at(100)), ALL_GONE, 110, Move(Phase.STOPPED)),
    ("success that comes after the stop changes nothing", STOPPING, ALL_ENDED_WELL, 110, Move(Phase.STOPPED)),
    # After success.
    ("ended workers return their quota at once", WELL, WORKERS_DONE, 100, FreeQuota(frozenset({WORKER}))),
    ("servers stay for the delay", replace(WELL, reserved=frozenset({PS})), WORKERS_DONE, 101, Wait(at(116))),
    ("exactly", replace(WELL, reserved=frozenset({PS})), WORKERS_DONE, 129, Wait(at(130))),
    ("then they are released", replace(WELL, reserved=frozenset({PS})), WORKERS_DONE, 130, Release(frozenset({PS}))),
    (
        "and given their time",
        replace(WELL, reserved=frozenset({PS}), released_at=at(130)),
        WORKERS_DONE,
        131,
        Wait(at(146)),
    ),
    (
        "then removed by force",
        replace(WELL, reserved=frozenset({PS}), released_at=at(130)),
        WORKERS_DONE,
        320,
        CleanUp(),
    ),
    ("with all tasks ended there is nothing to wait for", WELL, ALL_ENDED_WELL, 101, CleanUp()),
    ("a run that is gone is cleaned up, too", WELL, ABSENT, 101, CleanUp()),
    # After failure.
    ("the rest is stopped at once", BADLY, PS_FAILED, 100, FreeQuota(frozenset({PS}))),
    ("gently", replace(BADLY, reserved=frozenset({WORKER})), PS_FAILED, 100, Stop(timedelta(seconds=3630))),
    (
        "then by force",
        replace(BADLY, reserved=frozenset({WORKER}), stop_sent_at=at(100)),
        PS_FAILED,
        290,
        CleanUp(),
    ),
    # All start again at once.
    ("a loss for all", LIVE, LOST_FOR_ALL, 100, Restart()),
    ("a loss for all while it starts", STARTING, LOST_FOR_ALL, 1, Restart()),
    ("a loss for all that cannot be mended until its time to start is over", replace(STARTING, admitted_at=at(0)),
     replace(ALL_PEND, to_restart=True), 1799, Restart()),
    ("a loss for all of what is to stop", replace(LIVE, wanted=STOP), LOST_FOR_ALL, 100, Move(Phase.STOPPING)),
    ("a loss for all of what has its verdict", replace(WELL, released_at=at(90), reserved=frozenset({PS})),
     LOST_FOR_ALL, 91, Wait(at(106))),
    # The end.
    ("what is still held is returned", replace(WELL, cleaned_up_at=at(200)), ABSENT, 200, FreeQuota(BOTH)),
    ("nothing is left", replace(WELL, cleaned_up_at=at(200), reserved=frozenset()), ABSENT, 200, Wait(None)),
    ("a late stop", replace(WELL, wanted=STOP, cleaned_up_at=at(9), reserved=frozenset()), ABSENT, 10, Wait(None)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("remembered", "seen", "seconds", "step"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_the_table(remembered: Remembered, seen: Observation, seconds: float, step: object) -> None:
    assert plan(remembered, seen, at(seconds), TIMING) == step


VERDICTS = [
    ("the workers completed successfully", LIVE, WORKERS_DONE, 100, Phase.SUCCEEDED, "Succeeded"),
    ("so fast that its start was not seen", STARTING, ALL_ENDED_WELL, 1, Phase.SUCCEEDED, "Succeeded"),
    ("success beats the deadline", LIVE, WORKERS_DONE, 9999, Phase.SUCCEEDED, "Succeeded"),
    ("success beats a late stop", replace(LIVE, wanted=STOP), WORKERS_DONE, 9, Phase.SUCCEEDED, "Succeeded"),
    ("a server failed for good", LIVE, PS_FAILED, 100, Phase.FAILED, "ScriptFailed"),
    ("a failure while starting", STARTING, PS_FAILED, 100, Phase.FAILED, "ScriptFailed"),
    ("the deadline", LIVE, ALL_RUN, 3600, Phase.FAILED, "DeadlineExceeded"),
    ("its tasks were ended from outside", LIVE, ALL_GONE, 100, Phase.FAILED, "StoppedOutside"),
    ("the engine has lost it", LIVE, ABSENT, 100, Phase.FAILED, "Lost"),
    ("not started in time, for a loss that could not be mended", STARTING, replace(ALL_PEND, to_restart=True), 1800,
     Phase.FAILED, "StartTimeout"),
    ("not started in time", STARTING, ALL_PEND, 1800, Phase.FAILED, "StartTimeout"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("remembered", "seen", "seconds", "phase", "reason"),
    [row[1:] for row in VERDICTS],
    ids=[row[0] for row in VERDICTS],
)
def test_the_verdicts(remembered: Remembered, seen: Observation, seconds: float, phase: Phase, reason: str) -> None:
    step = plan(remembered, seen, at(seconds), TIMING)
    assert isinstance(step, Move)
    assert step.verdict is not None
    assert (step.phase, step.verdict.reason) == (phase, reason)


def test_trainer_774_parameter_servers_are_released_30_seconds_after_success_by_default() -> None:
    spec = make_spec()
    held = job(Phase.SUCCEEDED, spec=spec, decided_at=NOW, reserved=frozenset({PS}))
    assert plan(held, WORKERS_DONE, at(29.9)) == Wait(at(30))
    assert plan(held, WORKERS_DONE, at(30)) == Release(frozenset({PS}))


def test_kueue_1503_quota_of_ended_tasks_is_returned_while_others_still_run() -> None:
    assert plan(WELL, WORKERS_DONE, at(100)) == FreeQuota(frozenset({WORKER}))
