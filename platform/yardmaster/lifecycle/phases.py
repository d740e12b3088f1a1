"""The words for what is wanted and what was observed, of jobs and of tasks. Only words and values: who moves a job from
phase to phase is `plan`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from yardmaster.job.spec import Role
from yardmaster.storable import storable


class Wanted(StrEnum):
    """What people want of a job. They move it; the reconciler never does."""

    RUN = "RUN"
    STOP = "STOP"


class Phase(StrEnum):
    """How far a job's current attempt has come. Moved by the reconciler alone."""

    QUEUED = "QUEUED"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    STOPPED = "STOPPED"

    @property
    def is_final(self) -> bool:
        """Final phases never change; a retry is a new attempt."""
        return self in FINAL


FINAL = frozenset({Phase.SUCCEEDED, Phase.FAILED, Phase.STOPPED})

MOVES: dict[Phase, frozenset[Phase]] = {
    Phase.QUEUED: frozenset({Phase.STARTING, Phase.FAILED, Phase.STOPPING, Phase.STOPPED}),
    Phase.STARTING: frozenset({Phase.RUNNING, Phase.SUCCEEDED, Phase.FAILED, Phase.STOPPING, Phase.QUEUED}),
    Phase.RUNNING: frozenset({Phase.SUCCEEDED, Phase.FAILED, Phase.STOPPING}),
    Phase.STOPPING: frozenset({Phase.STOPPED, Phase.QUEUED}),
    Phase.SUCCEEDED: frozenset(),
    Phase.FAILED: frozenset(),
    Phase.STOPPED: frozenset(),
}
"""Which phase may follow which. Everything else is a bug and is refused at the gate."""


class TaskPhase(StrEnum):
    """How far one task has come, as its engine sees it."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    RELEASED = "RELEASED"
    """Stopped by us (released, stopped or torn down), so its exit says nothing about the job."""

    @property
    def is_ended(self) -> bool:
        return self in (TaskPhase.SUCCEEDED, TaskPhase.FAILED, TaskPhase.RELEASED)


@dataclass(frozen=True)
class TaskState:
    """One task as its engine sees it now. FAILED means: ended badly and the engine will not start it again.

    Its texts come from programs of tenants, so that they are cleaned here, for every engine."""

    role: Role
    index: int
    phase: TaskPhase
    reason: str = ""
    """A stable word where known, one of `failures.REASONS`: OutOfMemory, ImagePull, Evicted, StageInFailed, Lost, …"""
    message: str = ""
    exit_code: int | None = None
    """The script's own exit; a death by signal N is 128 + N."""
    restarts: int = 0
    node: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None
    peak_memory: int | None = None

    def __post_init__(self) -> None:
        for name in ("reason", "message", "node"):
            object.__setattr__(self, name, storable(getattr(self, name)))


@dataclass(frozen=True)
class Refused:
    """An engine has the whole run, and no place for some of its tasks, which have never begun."""

    since: datetime
    """When the first of those that are refused now was, by the engine's clock."""
    message: str = ""
    """Why, in the engine's words."""
    is_growing: bool = False
    """It says that it adds capacity: a machine is being added, or tasks of lower priority go."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", storable(self.message))


@dataclass(frozen=True)
class Observation:
    """What an engine really has of one run. `exists` is False when the engine knows nothing of it (never submitted,
    or removed), and while a part of it is missing that a repeated submission makes: then `tasks` and `message` say what
    there is and what is not. Tasks not (yet) created are simply absent."""

    exists: bool
    tasks: tuple[TaskState, ...] = ()
    message: str = ""
    """What hinders the whole run, in the engine's words, where it says."""
    to_restart: bool = False
    """A task was lost without which the others cannot continue, and the engine waits to be asked to start them all
    again (`engines.base.Restarts`). An engine that does so by itself never says this."""
    refused: Refused | None = None
    """Where the engine places tasks one by one: that it has no place for some of them now."""
    gang_restarts: int | None = None
    """How often all tasks that cannot continue without each other were started again together. None: the engine does
    not count it, since that happens only when it is asked to."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", storable(self.message))

    def of(self, roles: Iterable[Role]) -> tuple[TaskState, ...]:
        wanted = frozenset(roles)
        return tuple(task for task in self.tasks if task.role in wanted)


ABSENT = Observation(exists=False)
