"""A job's whole world in memory: an engine with tasks, what the portal remembers, and a clock, moved by `plan` alone.

`World.step` does what the reconciler does with a step. It asserts, at every step, what must hold of any job.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from tests.unit.core.generators import NOW
from yardmaster.failures import Verdict
from yardmaster.phases import ABSENT, MOVES, Observation, Phase, TaskPhase, TaskState, Wanted
from yardmaster.plan import Admit, FreeQuota, Move, Release, Remembered, Step, Stop, Submit, Tidy, Wait, plan
from yardmaster.spec import Role, SuccessRule, TrainingSpec
from yardmaster.strategy import leading_task, never_ending_roles
from yardmaster.success import SUCCEEDED, job_verdict, needed_workers

Key = tuple[Role, int]


@dataclass
class Engine:
    """Runs one job. Every verb may be repeated. A stop takes effect when `grace` is over, or when `obeys` is called."""

    spec: TrainingSpec
    tasks: dict[Key, TaskState] | None = None
    told_to_end: set[Key] = field(default_factory=set)

    def submit(self) -> None:
        if self.tasks is None:
            self.tasks = {key: TaskState(*key, TaskPhase.PENDING) for key in self.spec.tasks()}

    def observe(self) -> Observation:
        return ABSENT if self.tasks is None else Observation(True, tuple(self.tasks.values()))

    def release(self, roles: Collection[Role]) -> None:
        self.told_to_end |= {key for key in self.tasks or {} if key[0] in roles}

    def tidy(self) -> None:
        self.tasks = None
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
    has_room: bool = True

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
        self._tell_engine(step)
        if twice:
            before = (self.engine.observe(), set(self.engine.told_to_end))
            self._tell_engine(step)
            assert (self.engine.observe(), set(self.engine.told_to_end)) == before
        if not crash:
            self._write(step)
            if twice:
                before_job = self.job
                self._write(step)
                assert self.job == before_job
        return step

    def _tell_engine(self, step: Step) -> None:
        match step:
            case Submit():
                self.engine.submit()
            case Stop():
                self.engine.release(self.spec.roles)
            case Release(roles):
                self.engine.release(roles)
            case Tidy():
                self.engine.tidy()

    def _write(self, step: Step) -> None:
        job = self.job
        match step:
            case Admit() if self.has_room:
                job = replace(job, phase=Phase.STARTING, admitted_at=self.now, reserved=frozenset(self.spec.roles))
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
            case Tidy():
                job = replace(job, tidied_at=self.now, reserved=frozenset())
        self.job = job

    # What must hold of every step.

    def _is_allowed(self, step: Step, seen: Observation) -> None:
        match step:
            case Move(phase, verdict):
                assert phase in MOVES[self.job.phase], f"{self.job.phase} -> {phase}"
                self._is_deserved(phase, verdict, seen)
            case Admit():
                assert self.job.phase is Phase.QUEUED
            case Submit():
                assert self.job.phase is Phase.STARTING
                assert not seen.exists
            case FreeQuota(roles):
                assert roles
                assert roles <= self.job.reserved
                assert not {role for role, _ in self.engine.alive()} & roles, "quota of a running task was returned"
            case Release() | Tidy() if self.job.phase is Phase.SUCCEEDED and self.engine.alive():
                assert self.job.decided_at is not None
                assert self.now >= self.job.decided_at + self.spec.reclaim_delay, "released before the delay was over"
            case Release():
                assert self.job.phase is Phase.SUCCEEDED
            case Stop() | Tidy():
                assert self.job.phase is Phase.STOPPING or self.job.phase.is_final
            case Wait(until):
                if until is None:
                    assert self.is_done()
                else:
                    assert until > self.now, "a wait that is over already would turn for ever"

    def _is_deserved(self, phase: Phase, verdict: Verdict | None, seen: Observation) -> None:
        if phase is Phase.SUCCEEDED:
            assert verdict is not None
            assert verdict.reason == SUCCEEDED
            self._deciding_tasks_have_succeeded(seen)
        if phase is Phase.FAILED:
            assert verdict is not None
            assert verdict.reason != SUCCEEDED
        if phase.is_final and phase is not Phase.STOPPED and self.job.wanted is Wanted.STOP:
            assert job_verdict(self.spec, seen) == verdict, "a stop gave way to something that was not there already"
        if phase is Phase.STOPPED:
            assert self.job.wanted is Wanted.STOP

    def _deciding_tasks_have_succeeded(self, seen: Observation) -> None:
        well = {(one.role, one.index) for one in seen.tasks if one.phase is TaskPhase.SUCCEEDED}
        if self.spec.success_rule is SuccessRule.CHIEF or Role.CHIEF in self.spec.roles:
            assert leading_task(self.spec) in well
        if self.spec.success_rule is SuccessRule.WORKERS and Role.WORKER not in never_ending_roles(self.spec.strategy):
            assert sum(role is Role.WORKER for role, _ in well) >= needed_workers(self.spec)

    def is_done(self) -> bool:
        return self.job.phase.is_final and self.job.tidied_at is not None and not self.job.reserved

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
