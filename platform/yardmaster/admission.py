"""May this job start now? The whole job or nothing, against its namespace's quota and its engine's capacity.

Pure: the caller reads the portal's ledger in one transaction, asks `admit`, and writes what it answers in the same
one, so that two jobs are never promised the same room. All amounts are promises (reservations), not use.

The order is priority, then first come. A waiting job that does not fit yet may be passed by smaller ones, but not for
ever: once it has waited longer than `patience`, no later job may take from a pool (its namespace's quota, the engine)
any resource that it lacks there. What others lack is left to others: a job that waits for its own namespace's quota
holds up nobody else's. Higher priority always passes lower: that is what it means.

Not here: where one task is placed (the engine's matter), and what a too large job could be instead (`fitting`).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from yardmaster.spec import NOTHING, Resources, TrainingSpec

RUNNING_JOBS = "running_jobs"
"""The name under which the number of running jobs appears among a quota's resources."""


class Code(StrEnum):
    """Why a job has not started: Kueue's words, with the same meaning and precedence, and four of our own."""

    DEACTIVATED = "Deactivated"
    MISCONFIGURED = "Misconfigured"
    NO_MATCHING_FLAVOR = "NoMatchingFlavor"
    """One of its tasks is larger than the largest machine."""
    SUSPENDED = "Suspended"
    ADMISSION_GATED = "AdmissionGated"
    EXCEEDS_MAX_QUOTA = "ExceedsMaxQuota"
    EXCEEDS_CAPACITY = "ExceedsCapacity"
    """Ours: all machines of the engine together are too small. Kueue knows quota only, not machines."""
    WAITING_FOR_QUOTA = "WaitingForQuota"
    WAITING_FOR_CAPACITY = "WaitingForCapacity"
    """Ours: quota is there, the engine is full."""
    WAITING_FOR_TURN = "WaitingForTurn"
    """Ours: there would be room, but it is kept for a job that came first."""
    PENDING_EVALUATION = "PendingEvaluation"
    """Not looked at yet."""


@dataclass(frozen=True)
class Quota:
    """What a namespace may hold at most, all engines together. None: no limit."""

    cpu: float | None = None
    memory: int | None = None
    gpus: int | None = None
    running_jobs: int | None = None

    def limits(self) -> dict[str, float]:
        """The limits that are set, by resource."""
        found = {"cpu": self.cpu, "memory": self.memory, "gpus": self.gpus, RUNNING_JOBS: self.running_jobs}
        return {name: limit for name, limit in found.items() if limit is not None}


@dataclass(frozen=True)
class Usage:
    """What the admitted jobs of a namespace hold."""

    resources: Resources = NOTHING
    running_jobs: int = 0

    def amounts(self) -> dict[str, float]:
        return {**self.resources.as_amounts(), RUNNING_JOBS: self.running_jobs}


@dataclass(frozen=True)
class Room:
    """What an engine has: `engines.base.Capacity`, and what the portal has promised of it (`reserved`).

    `free` is what strangers to the portal leave over; our own promises are not subtracted from it.
    """

    total: Resources
    free: Resources
    largest_task: Resources
    reserved: Resources = NOTHING


@dataclass(frozen=True)
class Candidate:
    """A job that waits. `sizes` are its tasks' sizes, each once; only the job that is asked about needs them."""

    job_id: uuid.UUID
    namespace_id: uuid.UUID
    queued_at: datetime
    priority: int
    total: Resources
    sizes: tuple[Resources, ...] = ()

    @classmethod
    def of(cls, spec: TrainingSpec, *, job_id: uuid.UUID, namespace_id: uuid.UUID, queued_at: datetime) -> Candidate:
        """The candidate that a spec makes."""
        sizes = tuple(one.resources for one in spec.roles.values())
        return cls(job_id, namespace_id, queued_at, spec.priority, spec.total(), sizes)


@dataclass(frozen=True)
class Holder:
    """An admitted job and what it holds now."""

    job_id: uuid.UUID
    namespace_id: uuid.UUID
    resources: Resources


@dataclass(frozen=True)
class Ledger:
    """All that admission on one engine knows at one instant. A namespace without a quota has no limit."""

    room: Room
    quotas: Mapping[uuid.UUID, Quota] = field(default_factory=dict)
    usage: Mapping[uuid.UUID, Usage] = field(default_factory=dict)
    holders: tuple[Holder, ...] = ()
    """The admitted jobs, on this engine or of the candidate's namespace: for the answer's `holders` only."""
    closed: Mapping[uuid.UUID, Code] = field(default_factory=dict)
    """Namespaces that may start nothing now, and why: Deactivated, Suspended or AdmissionGated."""
    engine_closed: Code | None = None
    """The same for the engine: Misconfigured, Suspended or Deactivated."""


@dataclass(frozen=True)
class Shortage:
    """One resource that lacks in one pool. `limit` is the quota or the capacity; `unused` is what is left of it now."""

    pool: str
    """`quota` or `capacity`."""
    resource: str
    needs: float
    unused: float
    limit: float

    @property
    def short_by(self) -> float:
        return round(self.needs - max(self.unused, 0), 3)


@dataclass(frozen=True)
class Admitted:
    """Reserve `total` for it, in the same transaction, and start it."""

    total: Resources


@dataclass(frozen=True)
class Waiting:
    """It will start once there is room. Ids are for programs: whoever shows them hides those the reader may not see."""

    code: Code
    message: str
    numbers: tuple[Shortage, ...] = ()
    position: int = 0
    """How many jobs of the engine's queue are before it."""
    ahead: tuple[uuid.UUID, ...] = ()
    """Those of them that want what it waits for, first first."""
    holders: tuple[Holder, ...] = ()
    """Admitted jobs that hold what it waits for."""


@dataclass(frozen=True)
class Never:
    """As limits and machines are now, it can never start, however long it waits."""

    code: Code
    message: str
    remedy: str = ""
    numbers: tuple[Shortage, ...] = ()


Decision = Admitted | Waiting | Never
