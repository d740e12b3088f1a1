"""What admission receives: limits, what is held of them, who waits. Values only; who decides is `admission`.

All amounts are promises (reservations), not use.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property

from yardmaster.job.spec import NOTHING, Resources, TrainingSpec
from yardmaster.queueing.needs import longest_of, total_of
from yardmaster.queueing.placement import Board, Node, Only, Tasks, tasks_of
from yardmaster.queueing.resources import is_accelerator
from yardmaster.queueing.shares import Shares
from yardmaster.queueing.windows import Booked

RUNNING_JOBS = "running_jobs"
"""The name under which the number of running jobs appears among a quota's resources."""


ENGINE = "engine"
"""The key of the engine among `Ledger.reasons`."""


class Code(StrEnum):
    """Why a job has not started: Kueue's words, with the same meaning and precedence, and some of our own."""

    DEACTIVATED = "Deactivated"
    MISCONFIGURED = "Misconfigured"
    NO_MATCHING_FLAVOR = "NoMatchingFlavor"
    """One of its tasks fits on no machine."""
    SUSPENDED = "Suspended"
    ADMISSION_GATED = "AdmissionGated"
    HELD = "Held"
    """Ours: an administrator holds this one job."""
    BUDGET_SPENT = "BudgetSpent"
    """Ours: the namespace has used up its budget of the month."""
    EXCEEDS_MAX_QUOTA = "ExceedsMaxQuota"
    EXCEEDS_CAPACITY = "ExceedsCapacity"
    """Ours: all machines of the engine together are too small, or take not all of its tasks at once. Kueue knows quota
    only, not machines."""
    WAITING_FOR_QUOTA = "WaitingForQuota"
    WAITING_FOR_CAPACITY = "WaitingForCapacity"
    """Ours: quota is there, the engine is full, or what is free is too scattered."""
    WAITING_FOR_TURN = "WaitingForTurn"
    """Ours: there is capacity, but it is kept for a job that came first."""
    RESERVED = "Reserved"
    """Ours: what it lacks is reserved for others within a time that it could reach into."""
    PENDING_EVALUATION = "PendingEvaluation"
    """Not looked at yet."""


NEVER_FITS = frozenset({Code.NO_MATCHING_FLAVOR, Code.EXCEEDS_MAX_QUOTA, Code.EXCEEDS_CAPACITY})
"""Reasons that no waiting takes away: only other limits, or other machines."""


@dataclass(frozen=True)
class Quota:
    """What a namespace may hold at most, all engines together. None: no limit.

    A limit on GPUs is one on accelerators: of those of other names, none may be held that `extended` does not name.
    Else who may hold no GPU could hold a slice of one, or another maker's."""

    cpu: float | None = None
    memory: int | None = None
    gpus: int | None = None
    running_jobs: int | None = None
    priority_ceiling: int = 0
    """The highest priority with which its jobs count among those of other namespaces."""
    extended: Mapping[str, int] = field(default_factory=dict)
    """Limits of other resources, by name (`amd.com/gpu`). One that is not named has none, but for accelerators."""

    def limits(self, names: Iterable[str] = ()) -> dict[str, float]:
        """The limits that are set, by resource; and of `names` those that follow from the limit on GPUs."""
        found = {"cpu": self.cpu, "memory": self.memory, "gpus": self.gpus, RUNNING_JOBS: self.running_jobs}
        said = {name: limit for name, limit in found.items() if limit is not None}
        followed = {} if self.gpus is None else dict.fromkeys(filter(is_accelerator, names), 0)
        return {**followed, **self.extended, **said}

    def at_least(self, held: Resources) -> Quota:
        """The same, but never less than what is held: for a bound that must let it start again."""
        return replace(
            self,
            cpu=None if self.cpu is None else max(self.cpu, held.cpu),
            memory=None if self.memory is None else max(self.memory, held.memory),
            gpus=None if self.gpus is None else max(self.gpus, held.gpus),
            extended={
                name: max(int(limit), held.extended.get(name, 0))
                for name, limit in self.limits(held.extended).items()
                if name in {*self.extended, *held.extended}
            },
        )


@dataclass(frozen=True)
class Usage:
    """What the admitted jobs of a namespace hold."""

    resources: Resources = NOTHING
    running_jobs: int = 0

    def amounts(self) -> dict[str, float]:
        return {**self.resources.as_amounts(), RUNNING_JOBS: self.running_jobs}


@dataclass(frozen=True)
class EngineCapacity:
    """What an engine has: `engines.base.Capacity`, and what the portal has promised of it (`reserved`).

    `free` is what strangers to the portal leave over; our own promises are not subtracted from it. `nodes`: the same,
    node by node; empty where the engine is one machine. `promised`: the tasks of admitted jobs that are on no node yet.
    """

    total: Resources
    free: Resources
    largest_task: Resources
    reserved: Resources = NOTHING
    nodes: tuple[Node, ...] = ()
    promised: tuple[Tasks, ...] = ()
    by_name: frozenset[str] = frozenset()
    """The nodes that tasks may ask for by name (`Tasks.only`)."""

    @cached_property
    def idle(self) -> Board:
        """The nodes as if no job ran: what does not fit there never fits."""
        return Board.idle(self.nodes, self.by_name)

    @cached_property
    def idle_open(self) -> Board:
        """The same without those that take no tasks now: what does not fit there waits for one of these."""
        return Board.idle((one for one in self.nodes if not one.closed), self.by_name)


@dataclass(frozen=True)
class Candidate:
    """A job that waits. One of whose `tasks` fits on no machine holds up no other."""

    job_id: uuid.UUID
    namespace_id: uuid.UUID
    queued_at: datetime
    priority: int
    total: Resources
    tasks: tuple[Tasks, ...]
    turn_at: datetime | None = None
    """Where another job's turn in the queue was left to it: that turn's time. None: its own, `queued_at`."""
    is_granted: bool = False
    """Whether a class gave it its priority, which then counts between namespaces whatever the ceiling of its own."""
    longest: timedelta | None = None
    """How long it runs at most from its start, with the time to end; None: it has no limit."""
    place_at: datetime | None = None
    """Since when it has its place among the jobs of its namespace. None: since `queued_at`. A job that gave up its
    place to another keeps it, and waits again."""

    @property
    def only(self) -> Only | None:
        """Where it may run; None: wherever there is space."""
        return next((one.only for one in self.tasks if one.only is not None), None)

    @classmethod
    def of(cls, spec: TrainingSpec, *, job_id: uuid.UUID, namespace_id: uuid.UUID, queued_at: datetime) -> Candidate:
        """The candidate that a spec makes."""
        tasks = tasks_of(spec, {role: one.replicas for role, one in spec.roles.items()})
        granted = bool(spec.priority_class)
        return cls(
            job_id,
            namespace_id,
            queued_at,
            spec.priority,
            total_of(spec),
            tasks,
            is_granted=granted,
            longest=longest_of(spec),
        )


@dataclass(frozen=True)
class Holder:
    """An admitted job and what it holds now."""

    job_id: uuid.UUID
    namespace_id: uuid.UUID
    resources: Resources
    on_engine: bool = True
    """False: on another engine, so that it holds the namespace's quota only."""


@dataclass(frozen=True)
class Ledger:
    """All that admission on one engine knows at one instant. A namespace without a quota has no limit."""

    capacity: EngineCapacity
    quotas: Mapping[uuid.UUID, Quota] = field(default_factory=dict)
    usage: Mapping[uuid.UUID, Usage] = field(default_factory=dict)
    holders: tuple[Holder, ...] = ()
    """The admitted jobs, on this engine or of a candidate's namespace: for the answer's `holders` only."""
    closed: Mapping[uuid.UUID, Code] = field(default_factory=dict)
    """Namespaces that may start nothing now, and why: Deactivated, Suspended, AdmissionGated or BudgetSpent."""
    held_jobs: frozenset[uuid.UUID] = frozenset()
    """Jobs that may not start now, whatever is free."""
    reasons: Mapping[uuid.UUID | str, str] = field(default_factory=dict)
    """What those who closed it said, by the id of the namespace or the job, or `ENGINE`: shown to whom it concerns."""
    engine_closed: Code | None = None
    """The same for the engine: Misconfigured, Suspended or Deactivated."""
    claimants: Mapping[uuid.UUID, int] = field(default_factory=dict)
    """Waiting jobs for which others are giving up their places now, each with how many. What such a job lacks no later
    one may take."""
    booked: Booked | None = None
    """What is reserved for a time. None: nothing."""
    shares: Shares | None = None
    """Which share of the engine belongs to whom. None: the queue is served as it came."""
