"""The one decision: given what we remember of a job, what its engine shows, and the time, which ONE step comes next?

`plan` is pure and total: any job, any observation, any clock gives a step. It decides nothing about quota (`admission`)
and does nothing itself (`apps.jobs.worker.reconcile` performs the step and writes the outcome).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from yardmaster.backoff import delay
from yardmaster.job.spec import Role, TrainingSpec
from yardmaster.job.strategy import only_serves
from yardmaster.lifecycle.failures import Verdict
from yardmaster.lifecycle.hindrances import NO_RIVALS, Rivals, goes_back_at, image_verdict
from yardmaster.lifecycle.phases import Observation, Phase, Refused, TaskState, Wanted
from yardmaster.lifecycle.success import (
    STOPPED_OUTSIDE,
    SUCCEEDED,
    away_verdict,
    deadline_verdict,
    job_verdict,
    lost_verdict,
    never_started_verdict,
    not_taken_verdict,
    refused_verdict,
    stopped_unseen_verdict,
)


@dataclass(frozen=True)
class Remembered:
    """What the portal remembers of a job's current attempt. Times are aware datetimes, None until it happened."""

    spec: TrainingSpec
    phase: Phase
    wanted: Wanted
    queued_at: datetime
    admitted_at: datetime | None = None
    started_at: datetime | None = None
    """When the phase became RUNNING."""
    stop_sent_at: datetime | None = None
    """When the engine was last told to stop everything."""
    preempted_at: datetime | None = None
    """Since when it is to give its place to another job."""
    decided_at: datetime | None = None
    """When the phase became final."""
    released_at: datetime | None = None
    """When the engine was asked to release what still ran after success."""
    cleaned_up_at: datetime | None = None
    reserved: frozenset[Role] = frozenset()
    """Roles whose quota is still held."""
    submitted_at: datetime | None = None
    """When the engine was first known to have taken the run."""
    failing_since: datetime | None = None
    """Since when every look at the job has failed: its engine is away, or does not do what it is asked."""
    returns: int = 0
    """How often its quota was returned because the engine did not take it."""
    held_back_until: datetime | None = None
    """While QUEUED after such a return: not to be admitted before then, nor before what the engine may have taken all
    the same was removed."""
    refusals: int = 0
    """How often it was returned to the queue because the engine had no place for all of its tasks."""
    rivals: Rivals = NO_RIVALS
    """The other jobs that the engine has no place for now."""
    uploading_at: datetime | None = None
    """When a task of it last reported that it uploads what its script wrote; None: none does."""
    image_failing_since: datetime | None = None
    """Since when the job has shown that an image of its tasks cannot be pulled; None while it does not."""


@dataclass(frozen=True)
class Timing:
    """The clockwork that is a setting, not a spec's."""

    look_again: timedelta = timedelta(seconds=15)
    """How long an event may stay lost before a running job is looked at all the same."""
    start_timeout: timedelta = timedelta(minutes=30)
    """From admission until every task has begun."""
    kill_margin: timedelta = timedelta(seconds=10)
    """Past the time that tasks have to end, until what still runs is removed by force."""
    engine_patience: timedelta = timedelta(minutes=5)
    """How long quota is held for an engine that does not take a job, or does not end one."""
    away_limit: timedelta = timedelta(days=3)
    """How long an engine may be away until its jobs fail."""
    most_returns: int = 12
    """How often a job that its engine does not take goes back to the queue until it fails."""
    refusal_patience: timedelta = timedelta(minutes=1)
    """How long quota is held for tasks that the engine has no place for."""
    growth_patience: timedelta = timedelta(minutes=10)
    """The same while the engine says that it adds capacity."""
    image_patience: timedelta = timedelta(minutes=5)
    """How long an image that cannot be pulled is tried for."""

    def pause_after_return(self, returns: int) -> timedelta:
        """How long a job rests after so many returns: with five minutes of patience 1, 2, 4, … minutes, half an hour
        at most."""
        return _doubled(self.engine_patience / 5, returns)

    def pause_after_refusal(self, refusals: int) -> timedelta:
        """How long a job rests after so many refusals: with a minute of patience 1, 2, 4, … minutes, half an hour at
        most. A job waits for capacity without end; it only asks for it less and less often."""
        return _doubled(self.refusal_patience, refusals)


def _doubled(first: timedelta, times: int) -> timedelta:
    """The pause after so many times: twice as long each time, thirty times the first at most."""
    return delay(times - 1, first, first * 30)


@dataclass(frozen=True)
class Admit:
    """Ask admission; on success reserve and move to STARTING, else remember the reason and look again."""


@dataclass(frozen=True)
class Submit:
    """Hand the run to its engine."""


@dataclass(frozen=True)
class GiveBack:
    """Return all quota and the job to the queue, where it rests until then (`held_back_until`), with why."""

    until: datetime
    why: Verdict


@dataclass(frozen=True)
class TakeBack:
    """Remove the whole run from its engine, then do as `GiveBack` does: it has no place for some of the tasks."""

    until: datetime
    why: Verdict


@dataclass(frozen=True)
class Discard:
    """Remove what the engine may have of a submission that was given up, then let the job be admitted again."""


@dataclass(frozen=True)
class Move:
    """Change the phase, with the verdict where it is final."""

    phase: Phase
    verdict: Verdict | None = None


@dataclass(frozen=True)
class Restart:
    """Tell the engine to start all tasks again together: one was lost without which the others cannot continue."""


@dataclass(frozen=True)
class Stop:
    """Tell the engine to stop every task, and remember when (`stop_sent_at`)."""

    grace: timedelta


@dataclass(frozen=True)
class Requeue:
    """Remove what the engine has of the run, return all quota, and begin the next attempt in the queue."""


@dataclass(frozen=True)
class Release:
    """Tell the engine to stop these roles, and remember when (`released_at`)."""

    roles: frozenset[Role]


@dataclass(frozen=True)
class FreeQuota:
    """Return the quota of these roles: none of their tasks runs any more."""

    roles: frozenset[Role]


@dataclass(frozen=True)
class CleanUp:
    """Remove everything the engine has of the run, then return all quota and remember (`cleaned_up_at`)."""


@dataclass(frozen=True)
class Wait:
    """Nothing to do before `until` (None: nothing to do ever again)."""

    until: datetime | None


Step = (
    Admit | Submit | GiveBack | TakeBack | Discard | Move | Restart | Stop | Requeue | Release | FreeQuota | CleanUp
    | Wait
)  # fmt: skip


@dataclass(frozen=True)
class _Facts:
    """The observation, sorted for the questions that are asked of it."""

    seen: Observation
    alive: tuple[TaskState, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "alive", tuple(task for task in self.seen.tasks if not task.phase.is_ended))

    @property
    def all_gone(self) -> bool:
        return not self.alive

    def alive_roles(self) -> frozenset[Role]:
        return frozenset(task.role for task in self.alive)


def plan(job: Remembered, seen: Observation | None, now: datetime, timing: Timing = Timing()) -> Step:
    """The next step. Performing it (or failing to) and asking again always ends in a final job that holds no quota, and
    of which nothing is left as soon as its engine answers. `seen` None: the engine could not be asked; no step that is
    given then needs it."""
    if job.phase.is_final:
        return _after_verdict(job, seen, now, timing)
    if job.phase is Phase.STOPPING:
        return _stopping(job, seen, now, timing)
    if job.phase is Phase.QUEUED:
        return _queued(job, now, timing)
    if seen is None:
        return _unseen(job, now, timing)
    return _on_the_engine(job, _Facts(seen), now, timing)


def _fails_for(job: Remembered, now: datetime, time: timedelta) -> bool:
    """Whether every look has failed for so long."""
    return job.failing_since is not None and now >= job.failing_since + time


def _queued(job: Remembered, now: datetime, timing: Timing) -> Step:
    """A job that was given back rests first. What a lost answer left on the engine goes before it comes again."""
    if job.wanted is Wanted.STOP:
        return Move(Phase.STOPPED)
    if _fails_for(job, now, timing.away_limit):
        return Move(Phase.FAILED, away_verdict(timing.away_limit))
    if job.held_back_until is None:
        return Admit()
    return Wait(job.held_back_until) if now < job.held_back_until else Discard()


def _unseen(job: Remembered, now: datetime, timing: Timing) -> Step:
    """STARTING or RUNNING on an engine that cannot be asked. What it was known to take probably runs on."""
    if job.wanted is Wanted.STOP:
        return Move(Phase.STOPPING)
    if job.phase is Phase.STARTING and job.submitted_at is None:
        return _not_taken(job, now, timing) or Wait(now + timing.look_again)
    if _fails_for(job, now, timing.away_limit):
        return Move(Phase.FAILED, away_verdict(timing.away_limit))
    return Wait(now + timing.look_again)


def _not_taken(job: Remembered, now: datetime, timing: Timing) -> Step | None:
    """What follows when the engine has not taken the run for too long; None while that is not so."""
    if not _fails_for(job, now, timing.engine_patience):
        return None
    is_last = job.returns >= timing.most_returns
    verdict = not_taken_verdict(timing.engine_patience, job.returns + 1, is_last=is_last)
    if is_last:
        return Move(Phase.FAILED, verdict)
    return GiveBack(now + timing.pause_after_return(job.returns + 1), verdict)


def _on_the_engine(job: Remembered, facts: _Facts, now: datetime, timing: Timing) -> Step:
    """STARTING or RUNNING. A verdict that is already there beats a stop that comes too late; that its tasks were ended
    from outside is no verdict on a job that is to stop, but the stop itself."""
    verdict = job_verdict(job.spec, facts.seen)
    is_to_end = job.wanted is Wanted.STOP or job.preempted_at is not None
    if verdict is not None and not (is_to_end and verdict.reason == STOPPED_OUTSIDE):
        return _ends(verdict)
    if is_to_end:
        return Move(Phase.STOPPING)
    if _fails_for(job, now, timing.away_limit):
        return Move(Phase.FAILED, away_verdict(timing.away_limit))
    if job.image_failing_since is not None and now >= job.image_failing_since + timing.image_patience:
        verdict = image_verdict(job.spec, job.phase, facts.seen)
        if verdict is not None:
            return _ends(verdict)
    if facts.seen.to_restart and not _is_overdue(job, now, timing):
        return Restart()
    if job.phase is Phase.STARTING:
        return _starting(job, facts, now, timing)
    if not facts.seen.exists:
        return Move(Phase.FAILED, lost_verdict(facts.seen.message))
    deadline = _deadline(job)
    if _is_overdue(job, now, timing):
        # Servers have no work of their own that could be cut off: the end of their time is a stop like any other.
        return (
            Move(Phase.STOPPING) if only_serves(job.spec.strategy) else Move(Phase.FAILED, deadline_verdict(job.spec))
        )
    return Wait(_earliest(now + timing.look_again, deadline))


def _ends(verdict: Verdict) -> Move:
    return Move(Phase.SUCCEEDED if verdict.reason == SUCCEEDED else Phase.FAILED, verdict)


def _deadline(job: Remembered) -> datetime | None:
    begun = job.started_at or job.admitted_at or job.queued_at
    return None if job.spec.max_runtime is None else begun + job.spec.max_runtime


def _is_overdue(job: Remembered, now: datetime, timing: Timing) -> bool:
    """Whether its time to start, or to run, is over."""
    deadline = _deadline(job) if job.phase is Phase.RUNNING else _start_limit(job, timing)
    return deadline is not None and now >= deadline


def _start_limit(job: Remembered, timing: Timing) -> datetime:
    return (job.admitted_at or job.queued_at) + timing.start_timeout


def _starting(job: Remembered, facts: _Facts, now: datetime, timing: Timing) -> Step:
    """RUNNING only when every task has begun: half a gang is not a running job."""
    limit = _start_limit(job, timing)
    if not facts.seen.exists:
        if job.submitted_at is None or now < limit:
            return _not_taken(job, now, timing) or Submit()
        return Move(Phase.FAILED, never_started_verdict(job.spec, facts.seen, timing.start_timeout))
    begun = {(task.role, task.index) for task in facts.seen.tasks if task.phase != "PENDING"}
    if begun.issuperset(job.spec.tasks()):
        return Move(Phase.RUNNING)
    if facts.seen.refused is not None:
        return _refused(job, facts.seen.refused, now, timing)
    if now >= limit:
        return Move(Phase.FAILED, never_started_verdict(job.spec, facts.seen, timing.start_timeout))
    return Wait(_earliest(now + timing.look_again, limit))


def _refused(job: Remembered, refused: Refused, now: datetime, timing: Timing) -> Step:
    """Half a gang waits for the other half, and holds capacity that others could use: it waits in the queue instead."""
    patience = timing.growth_patience if refused.is_growing else timing.refusal_patience
    limit = _start_limit(job, timing)
    due = goes_back_at(refused, job.submitted_at or job.admitted_at or job.queued_at, job.rivals, patience)
    at = limit if due is None else min(due, limit)
    if now < at:
        return Wait(_earliest(now + timing.look_again, at))
    pause = timing.pause_after_refusal(job.refusals + 1)
    return TakeBack(now + pause, refused_verdict(refused.message, patience))


def _stopping(job: Remembered, seen: Observation | None, now: datetime, timing: Timing) -> Step:
    """What an engine that is away may still run is removed when it is back; no quota is held until then."""
    goes_on = job.preempted_at is not None and job.wanted is Wanted.RUN
    if _fails_for(job, now, timing.away_limit if goes_on else timing.engine_patience):
        return Move(Phase.STOPPED, stopped_unseen_verdict(timing.away_limit if goes_on else timing.engine_patience))
    if goes_on and job.reserved and _fails_for(job, now, timing.engine_patience):
        return FreeQuota(job.reserved)
    if seen is None:
        return Wait(now + timing.look_again)
    if goes_on and _Facts(seen).all_gone:
        return Requeue()
    if _Facts(seen).all_gone:
        # That no user wanted it stopped means that its time was over.
        return Move(Phase.STOPPED, deadline_verdict(job.spec) if job.wanted is Wanted.RUN else None)
    if job.stop_sent_at is None:
        return Stop(job.spec.time_to_end)
    limit = job.spec.end_by(job.stop_sent_at, job.uploading_at) + timing.kill_margin
    return CleanUp() if now >= limit else Wait(_earliest(now + timing.look_again, limit))


def _after_verdict(job: Remembered, seen: Observation | None, now: datetime, timing: Timing) -> Step:
    """The verdict stands; what still runs is released, its quota returned, the rest removed. An engine that does not
    do that may keep what is left of the run, but not its quota from others."""
    if job.cleaned_up_at is not None:
        return FreeQuota(job.reserved) if job.reserved else Wait(None)
    if job.reserved and _fails_for(job, now, timing.engine_patience):
        return FreeQuota(job.reserved)
    if seen is None:
        return Wait(now + timing.look_again)
    facts = _Facts(seen)
    if facts.all_gone:
        return CleanUp()
    ended = job.reserved - facts.alive_roles()
    if ended:
        return FreeQuota(ended)
    asked_at: datetime | None
    step: Step
    if job.phase is not Phase.SUCCEEDED:
        asked_at, step = job.stop_sent_at, Stop(job.spec.time_to_end)
    else:
        asked_at, step = job.released_at, Release(facts.alive_roles())
        reclaim_at = (job.decided_at or now) + job.spec.reclaim_delay
        if asked_at is None and now < reclaim_at:
            return Wait(_earliest(now + timing.look_again, reclaim_at))
    if asked_at is None:
        return step
    limit = job.spec.end_by(asked_at, job.uploading_at) + timing.kill_margin
    return CleanUp() if now >= limit else Wait(_earliest(now + timing.look_again, limit))


def _earliest(first: datetime, second: datetime | None) -> datetime:
    return first if second is None else min(first, second)
