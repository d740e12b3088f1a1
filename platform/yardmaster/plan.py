"""The one decision: given what we remember of a job, what its engine shows, and the time, which ONE step comes next?

`plan` is pure and total: any job, any observation, any clock gives a step. It decides nothing about quota (`admission`)
and does nothing itself (`apps.jobs.reconcile` performs the step and writes the outcome).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from yardmaster.failures import Verdict
from yardmaster.phases import Observation, Phase, TaskState, Wanted
from yardmaster.spec import Role, TrainingSpec
from yardmaster.strategy import only_serves
from yardmaster.success import STOPPED_OUTSIDE, deadline_verdict, job_verdict, lost_verdict, never_started_verdict


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
    decided_at: datetime | None = None
    """When the phase became final."""
    released_at: datetime | None = None
    """When the engine was told to release what still ran after success."""
    tidied_at: datetime | None = None
    reserved: frozenset[Role] = frozenset()
    """Roles whose quota is still held."""


@dataclass(frozen=True)
class Timing:
    """The clockwork that is a setting, not a spec's."""

    look_again: timedelta = timedelta(seconds=15)
    """How long an event may stay lost before a running job is looked at all the same."""
    start_timeout: timedelta = timedelta(minutes=30)
    """From admission until every task has begun."""
    kill_margin: timedelta = timedelta(seconds=10)
    """Past the grace period, until what still runs is removed by force."""


@dataclass(frozen=True)
class Admit:
    """Ask admission; on success reserve and move to STARTING, else remember the reason and look again."""


@dataclass(frozen=True)
class Submit:
    """Hand the run to its engine."""


@dataclass(frozen=True)
class Move:
    """Change the phase, with the verdict where it is final."""

    phase: Phase
    verdict: Verdict | None = None


@dataclass(frozen=True)
class Restart:
    """Tell the engine to start all tasks anew together: one was lost without which the others cannot go on."""


@dataclass(frozen=True)
class Stop:
    """Tell the engine to stop every task, and remember when (`stop_sent_at`)."""

    grace: timedelta


@dataclass(frozen=True)
class Release:
    """Tell the engine to stop these roles, and remember when (`released_at`)."""

    roles: frozenset[Role]


@dataclass(frozen=True)
class FreeQuota:
    """Return the quota of these roles: none of their tasks runs any more."""

    roles: frozenset[Role]


@dataclass(frozen=True)
class Tidy:
    """Remove everything the engine has of the run, then return all quota and remember (`tidied_at`)."""


@dataclass(frozen=True)
class Wait:
    """Nothing to do before `until` (None: nothing to do ever again)."""

    until: datetime | None


Step = Admit | Submit | Move | Restart | Stop | Release | FreeQuota | Tidy | Wait


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


def plan(job: Remembered, seen: Observation, now: datetime, timing: Timing = Timing()) -> Step:
    """The next step. Performing it (or failing to) and asking again always ends in a final, tidied job."""
    facts = _Facts(seen)
    if job.phase.is_final:
        return _after_verdict(job, facts, now, timing)
    if job.phase is Phase.STOPPING:
        return _stopping(job, facts, now, timing)
    if job.phase is Phase.QUEUED:
        return Move(Phase.STOPPED) if job.wanted is Wanted.STOP else Admit()
    return _on_the_engine(job, facts, now, timing)


def _on_the_engine(job: Remembered, facts: _Facts, now: datetime, timing: Timing) -> Step:
    """STARTING or RUNNING. A verdict that is already there beats a stop that comes too late; that its tasks were ended
    from outside is no verdict on a job that is to stop, but the stop itself."""
    verdict = job_verdict(job.spec, facts.seen)
    if verdict is not None and not (job.wanted is Wanted.STOP and verdict.reason == STOPPED_OUTSIDE):
        return Move(Phase.SUCCEEDED if verdict.reason == "Succeeded" else Phase.FAILED, verdict)
    if job.wanted is Wanted.STOP:
        return Move(Phase.STOPPING)
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
    if not facts.seen.exists:
        return Submit()
    begun = {(task.role, task.index) for task in facts.seen.tasks if task.phase != "PENDING"}
    if begun.issuperset(job.spec.tasks()):
        return Move(Phase.RUNNING)
    limit = _start_limit(job, timing)
    if now >= limit:
        return Move(Phase.FAILED, never_started_verdict(job.spec, facts.seen, timing.start_timeout))
    return Wait(_earliest(now + timing.look_again, limit))


def _stopping(job: Remembered, facts: _Facts, now: datetime, timing: Timing) -> Step:
    if facts.all_gone:
        # That nobody wanted it stopped means that its time was over.
        return Move(Phase.STOPPED, deadline_verdict(job.spec) if job.wanted is Wanted.RUN else None)
    if job.stop_sent_at is None:
        return Stop(job.spec.grace_period)
    limit = job.stop_sent_at + job.spec.grace_period + timing.kill_margin
    return Tidy() if now >= limit else Wait(_earliest(now + timing.look_again, limit))


def _after_verdict(job: Remembered, facts: _Facts, now: datetime, timing: Timing) -> Step:
    """The verdict stands; what still runs is released, its quota returned, the rest removed."""
    if job.tidied_at is not None:
        return FreeQuota(job.reserved) if job.reserved else Wait(None)
    if facts.all_gone:
        return Tidy()
    ended = job.reserved - facts.alive_roles()
    if ended:
        return FreeQuota(ended)
    told: datetime | None
    step: Step
    if job.phase is not Phase.SUCCEEDED:
        told, step = job.stop_sent_at, Stop(job.spec.grace_period)
    else:
        told, step = job.released_at, Release(facts.alive_roles())
        reclaim_at = (job.decided_at or now) + job.spec.reclaim_delay
        if told is None and now < reclaim_at:
            return Wait(_earliest(now + timing.look_again, reclaim_at))
    if told is None:
        return step
    limit = told + job.spec.grace_period + timing.kill_margin
    return Tidy() if now >= limit else Wait(_earliest(now + timing.look_again, limit))


def _earliest(first: datetime, second: datetime | None) -> datetime:
    return first if second is None else min(first, second)
