"""A job's whole world in memory: an engine with tasks, what the portal remembers, and a clock, moved by `plan` alone.

`World.step` does what the reconciler does with a step. It asserts, at every step, what must hold of any job.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from tests.unit.core.generators import NOW
from yardmaster.job.spec import Role, SuccessRule, TrainingSpec
from yardmaster.job.strategy import leading_task, never_ending_roles, only_serves
from yardmaster.lifecycle.failures import Verdict
from yardmaster.lifecycle.phases import ABSENT, MOVES, Observation, Phase, Refused, TaskPhase, TaskState, Wanted
from yardmaster.lifecycle.plan import (
    Admit,
    CleanUp,
    Discard,
    FreeQuota,
    GiveBack,
    Move,
    Release,
    Remembered,
    Restart,
    Step,
    Stop,
    Submit,
    TakeBack,
    Timing,
    Wait,
    plan,
)
from yardmaster.lifecycle.success import SUCCEEDED, job_verdict, needed_workers

Key = tuple[Role, int]
TIMING = Timing()
NEEDS_THE_ENGINE = (Submit, TakeBack, Discard, Restart, Stop, Release, CleanUp)


class Health(StrEnum):
    """How an engine answers."""

    WELL = "well"
    AWAY = "away"
    """Nothing gets through; of a submission it is unknown whether it did."""
    REFUSES = "refuses"
    """It says what there is and does nothing."""
    LOSES_ANSWERS = "loses answers"
    """It does what it is asked and says that it failed."""


class Unavailable(Exception):
    """The engine did not answer, or not well."""


@dataclass
class Engine:
    """Runs one job. Every verb may be repeated. A stop takes effect when `grace` is over, or when `obeys` is called."""

    spec: TrainingSpec
    tasks: dict[Key, TaskState] | None = None
    told_to_end: set[Key] = field(default_factory=set)
    health: Health = Health.WELL
    lost: bool = False
    """A task was lost without which the others cannot go on."""
    restarts: int = 0
    refuses_since: datetime | None = None
    """Since when it has had no place for tasks that have not begun."""
    arrives_late: bool = False
    """A submission is under way, and its answer was lost."""

    def called(self, verb: Step) -> None:
        """Do what the step asks for, as far as the engine's health lets it. Raises `Unavailable`."""
        if self.health is Health.AWAY:
            self.arrives_late |= isinstance(verb, Submit)
            raise Unavailable
        if self.health is Health.REFUSES:
            raise Unavailable
        self.do(verb)
        if self.health is Health.LOSES_ANSWERS:
            raise Unavailable

    def turns(self, health: Health) -> None:
        """Once anything gets through again, so has the submission whose answer was lost."""
        self.health = health
        if self.arrives_late and health is not Health.AWAY:
            self.submit()
            self.arrives_late = False

    def do(self, verb: Step) -> None:
        match verb:
            case Submit():
                self.submit()
            case Restart():
                self.restart()
            case Stop():
                self.release(self.spec.roles)
            case Release(roles):
                self.release(roles)
            case CleanUp() | Discard() | TakeBack():
                self.clean_up()

    def submit(self) -> None:
        if self.tasks is None:
            self.tasks = {key: TaskState(*key, TaskPhase.PENDING) for key in self.spec.tasks()}

    def lose_one(self) -> None:
        """All are to be started again together, while the job has restarts left; else one has failed for good."""
        if self.tasks is not None and self.restarts < self.spec.retries:
            self.lost = True
        elif self.tasks is not None:
            self.turn(self.spec.tasks()[0], TaskPhase.FAILED)

    def restart(self) -> None:
        if self.tasks is not None and self.lost:
            self.restarts += 1
            self.lost = False
            for key, one in self.tasks.items():
                if not one.phase.is_ended:
                    self.tasks[key] = replace(one, phase=TaskPhase.PENDING, restarts=one.restarts + 1)

    def observe(self) -> Observation | None:
        if self.health is Health.AWAY:
            return None
        if self.tasks is None:
            return ABSENT
        is_refused = self.refuses_since is not None and any(
            one.phase is TaskPhase.PENDING and not one.restarts for one in self.tasks.values()
        )
        refused = Refused(self.refuses_since, "no node") if is_refused and self.refuses_since else None
        return Observation(True, tuple(self.tasks.values()), to_restart=self.lost, refused=refused)

    def release(self, roles: Collection[Role]) -> None:
        self.told_to_end |= {key for key in self.tasks or {} if key[0] in roles}

    def clean_up(self) -> None:
        self.tasks = None
        self.lost = False
        self.told_to_end.clear()

    def obeys(self) -> None:
        """What was told to end ends."""
        for key in self.told_to_end:
            self.turn(key, TaskPhase.RELEASED)

    def turn(self, key: Key, phase: TaskPhase, now: datetime | None = None) -> None:
        """One task changes by itself, if it has not ended."""
        if self.tasks is not None and not self.tasks[key].phase.is_ended:
            exit_code = {TaskPhase.SUCCEEDED: 0, TaskPhase.FAILED: 1}.get(phase)
            self.tasks[key] = replace(self.tasks[key], phase=phase, exit_code=exit_code, finished_at=now)

    def alive(self) -> set[Key]:
        return {key for key, one in (self.tasks or {}).items() if not one.phase.is_ended}


@dataclass
class World:
    spec: TrainingSpec
    now: datetime = NOW
    has_space: bool = True

    def __post_init__(self) -> None:
        self.engine = Engine(self.spec)
        self.job = Remembered(self.spec, Phase.QUEUED, Wanted.RUN, queued_at=self.now)
        self.verdict: Verdict | None = None
        self.steps: list[Step] = []

    def stop(self) -> None:
        """The user's wish; it comes from another process at any time."""
        self.job = replace(self.job, wanted=Wanted.STOP)

    def step(self, *, crash: bool = False, twice: bool = False) -> Step:
        """One turn of the reconciler. `crash`: it dies after the engine was told and before anything was written."""
        seen = self.engine.observe()
        step = plan(self.job, seen, self.now)
        self.steps.append(step)
        self._is_allowed(step, seen)
        try:
            if isinstance(step, NEEDS_THE_ENGINE):
                self.engine.called(step)
            if (seen is None and isinstance(step, Wait)) or (isinstance(step, Admit) and self._is_deaf()):
                raise Unavailable
        except Unavailable:
            self.job = replace(self.job, failing_since=self.job.failing_since or self.now)
            return step
        if twice and self.engine.health is Health.WELL:
            before = (self.engine.observe(), set(self.engine.told_to_end))
            self.engine.do(step)
            assert (self.engine.observe(), set(self.engine.told_to_end)) == before
        if not crash:
            self._write(step)
            if twice and not isinstance(step, GiveBack | TakeBack):
                before_job = self.job
                self._write(step)
                assert self.job == before_job
        return step

    def _is_deaf(self) -> bool:
        return self.engine.health is Health.AWAY

    def _write(self, step: Step) -> None:
        job = self.job
        if isinstance(step, Move | GiveBack | TakeBack | Wait | Admit):
            job = replace(job, failing_since=None)
        match step:
            case Admit() if self.has_space:
                job = replace(job, phase=Phase.STARTING, admitted_at=self.now, reserved=frozenset(self.spec.roles))
            case Submit():
                job = replace(job, submitted_at=job.submitted_at or self.now)
            case GiveBack(until):
                given = {"admitted_at": None, "submitted_at": None, "returns": job.returns + 1}
                job = replace(job, phase=Phase.QUEUED, reserved=frozenset(), held_back_until=until, **given)
            case TakeBack(until):
                given = {"admitted_at": None, "submitted_at": None, "refusals": job.refusals + 1}
                job = replace(job, phase=Phase.QUEUED, reserved=frozenset(), held_back_until=until, **given)
            case Discard():
                job = replace(job, held_back_until=None)
            case Move(phase, verdict):
                self.verdict = verdict
                job = replace(job, phase=phase)
                if phase is Phase.RUNNING:
                    job = replace(job, started_at=self.now)
                if phase.is_final:
                    job = replace(job, decided_at=self.now)
            case Stop():
                job = replace(job, stop_sent_at=self.now)
            case Release():
                job = replace(job, released_at=self.now)
            case FreeQuota(roles):
                job = replace(job, reserved=job.reserved - roles)
            case CleanUp():
                job = replace(job, cleaned_up_at=self.now, reserved=frozenset())
        self.job = job

    # What must hold of every step.

    def _is_allowed(self, step: Step, seen: Observation | None) -> None:
        if seen is None and self.job.phase is not Phase.QUEUED:
            assert not isinstance(step, NEEDS_THE_ENGINE), f"{step} of an engine that is away"
        match step:
            case Move(phase, verdict):
                assert phase in MOVES[self.job.phase], f"{self.job.phase} -> {phase}"
                self._is_deserved(phase, verdict, seen)
            case Admit():
                assert self.job.phase is Phase.QUEUED
                assert self.engine.tasks is None, "what a lost answer left on the engine is there while it waits"
                assert not self.engine.arrives_late
            case Submit():
                assert self.job.phase is Phase.STARTING
                assert seen is not None
                assert not seen.exists
            case GiveBack(until):
                assert self.job.phase is Phase.STARTING
                assert until > self.now
                assert self._has_failed_for_long()
            case TakeBack(until):
                assert self.job.phase is Phase.STARTING, "work was lost"
                assert until > self.now
                assert seen is not None
                assert seen.refused is not None
                limit = (self.job.admitted_at or self.job.queued_at) + TIMING.start_timeout
                assert self.now >= min(limit, seen.refused.since + TIMING.refusal_patience), "there may be room yet"
            case Discard():
                assert self.job.phase is Phase.QUEUED
                assert self.job.held_back_until is not None
            case Restart():
                assert self.engine.lost
            case FreeQuota(roles):
                assert roles
                assert roles <= self.job.reserved
                if not self._has_failed_for_long():
                    assert not {role for role, _ in self.engine.alive()} & roles, "quota of a running task was returned"
            case Release() | CleanUp() if self.job.phase is Phase.SUCCEEDED and self.engine.alive():
                assert self.job.decided_at is not None
                assert self.now >= self.job.decided_at + self.spec.reclaim_delay, "released before the delay was over"
            case Release():
                assert self.job.phase is Phase.SUCCEEDED
            case Stop() | CleanUp():
                assert self.job.phase is Phase.STOPPING or self.job.phase.is_final
            case Wait(until):
                if until is None:
                    assert self.is_done()
                else:
                    assert until > self.now, "a wait that is over already would turn for ever"

    def _has_failed_for_long(self) -> bool:
        since = self.job.failing_since
        return since is not None and self.now - since >= TIMING.engine_patience

    def _is_deserved(self, phase: Phase, verdict: Verdict | None, seen: Observation | None) -> None:
        if phase is Phase.SUCCEEDED:
            assert verdict is not None
            assert verdict.reason == SUCCEEDED
            assert seen is not None
            self._deciding_tasks_have_succeeded(seen)
        if phase is Phase.FAILED:
            assert verdict is not None
            assert verdict.reason != SUCCEEDED
        if phase.is_final and phase is not Phase.STOPPED and self.job.wanted is Wanted.STOP:
            assert seen is not None
            assert job_verdict(self.spec, seen) == verdict, "a stop gave way to something that was not there already"
        if phase is Phase.STOPPED:
            assert self.job.wanted is Wanted.STOP or only_serves(self.spec.strategy)

    def _deciding_tasks_have_succeeded(self, seen: Observation) -> None:
        well = {(one.role, one.index) for one in seen.tasks if one.phase is TaskPhase.SUCCEEDED}
        if self.spec.success_rule is SuccessRule.CHIEF or Role.CHIEF in self.spec.roles:
            assert leading_task(self.spec) in well
        if self.spec.success_rule is SuccessRule.WORKERS and Role.WORKER not in never_ending_roles(self.spec.strategy):
            assert sum(role is Role.WORKER for role, _ in well) >= needed_workers(self.spec)

    def is_done(self) -> bool:
        return self.job.phase.is_final and self.job.cleaned_up_at is not None and not self.job.reserved

    def holds_nothing(self) -> bool:
        """Ended, with all quota returned, whether the engine was told or not."""
        return self.job.phase.is_final and not self.job.reserved

    def wait_for_an_engine_that_stays_as_it_is(self, turns: int = 2000) -> None:
        """Let time pass, twenty minutes a look, until the job has ended and holds nothing."""
        for _ in range(turns):
            if self.holds_nothing():
                return
            step = self.step()
            if isinstance(step, Wait | Admit) or self.job.failing_since is not None:
                until = step.until if isinstance(step, Wait) and step.until is not None else self.now
                self.now = max(until, self.now + timedelta(minutes=20))
        raise AssertionError(f"not over after {turns} turns: {self.job.phase}, last {self.steps[-3:]}")

    def drive(self, turns: int = 60) -> None:
        """Let time pass until nothing is left to do. The engine obeys; what decides has ended, or has a limit."""
        for _ in range(turns):
            step = self.step()
            if isinstance(step, Wait):
                if step.until is None:
                    return
                self.now = max(step.until, self.now + timedelta(minutes=20))
                self.engine.obeys()
        raise AssertionError(f"not done after {turns} turns: {self.job.phase}, last {self.steps[-3:]}")
