"""The contract that every engine keeps. One suite (`tests/contract/test_engine_contract.py`) runs on all of them."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from yardmaster.errors import Problem
from yardmaster.ids import JobKey
from yardmaster.job.spec import Resources, Role, TrainingSpec
from yardmaster.job.volumes import VolumeKind
from yardmaster.lifecycle.phases import Observation
from yardmaster.queueing.ledger import Quota
from yardmaster.queueing.placement import Bound, Node


@dataclass(frozen=True)
class Capacity:
    """What an engine has. `total` and `free` are sums over all nodes; `largest_task` is the most one task can ever get.

    `free` is what no other user of the engine holds: the portal's own ledger is subtracted by the portal, not by the
    engine.
    """

    total: Resources
    free: Resources
    largest_task: Resources
    nodes: tuple[Node, ...] = ()
    """The same, node by node, with the portal's own tasks on them; empty where the engine is one machine."""
    homes: Mapping[tuple[uuid.UUID, uuid.UUID], str] = field(default_factory=dict)
    """The node that has the files of a user's notebooks in a namespace, by namespace and user: their next one runs
    there and nowhere else. Empty where every node reaches all files."""
    notebooks: frozenset[str] | None = None
    """The nodes on which notebooks without files run; None: on all."""
    spark: frozenset[str] | None = None
    """The nodes that have a Spark for jobs without pyspark among their packages; None: that is not known of them."""
    java: frozenset[str] = frozenset()
    """Where `spark` is known: the nodes that have a Java for the pyspark of a job."""


@dataclass(frozen=True)
class TaskAccess:
    """How the tasks of one attempt reach the portal: its address as seen from the engine, and their own token."""

    portal_url: str
    token: str
    user: uuid.UUID | None = None
    """Whose job it is, for engines that note it where operators look. Nothing depends on it."""


class Engine(Protocol):
    """Runs attempts of jobs. Every verb may be repeated without harm, in any order, from several processes at once.

    All verbs return within seconds. They raise `SpecRejected` (the user's, final), `Unavailable` (retry later) or
    `Misconfigured` (the operator's), and nothing else on purpose.
    """

    name: str
    has_way_out: bool
    """Whether tasks reach addresses outside: as far as the engine decides it."""
    isolates: bool
    """Whether tasks are kept apart from each other and from the portal. Where not, only administrators may use it
    unless the operator says otherwise."""

    def capacity(self) -> Capacity:
        """What there is, measured now."""

    def submit(self, spec: TrainingSpec, key: JobKey, access: TaskAccess) -> None:
        """Start every task of the run. Already there, in whatever state: success, and nothing changes. Raises
        `EngineNamespaceMissing` where the engine keeps namespaces (`Namespaces`) and lacks the job's."""

    def observe(self, keys: Collection[JobKey]) -> Mapping[JobKey, Observation]:
        """What is really there, in one round trip; every key gets an answer (`ABSENT` where nothing is known)."""

    def release(self, key: JobKey, roles: Collection[Role]) -> None:
        """Begin to stop the tasks of these roles (SIGTERM, the spec's `time_to_end`, SIGKILL); keep the rest, and keep
        their facts. They show as RELEASED, unless they had ended before. Absent, or roles it has not: success."""

    def stop(self, key: JobKey, grace: timedelta) -> None:
        """Begin to stop every task: SIGTERM, `grace`, SIGKILL. Returns at once; `observe` shows the end. Asked again,
        the earlier end counts. Already gone: success."""

    def clean_up(self, key: JobKey) -> None:
        """Remove what is left of the run. Whatever still runs is killed. Absent: success. Afterwards `observe` says
        ABSENT, and the same key may be submitted again (`Unavailable` while what was removed is still going)."""

    def preview(self, spec: TrainingSpec, key: JobKey, user: uuid.UUID | None = None) -> list[dict[str, Any]]:
        """What `submit` would create for a job of this user, as plain data, with no side effect."""


class MachineState(StrEnum):
    """Whether a machine takes tasks now."""

    READY = "ready"
    CORDONED = "cordoned"
    """Its operator lets it take no further tasks; what runs there continues."""
    UNDER_PRESSURE = "under_pressure"
    """It is short of memory, disk or processes, or of the network, and takes no tasks until that has passed."""
    NOT_READY = "not_ready"
    """It does not answer its cluster."""


@dataclass(frozen=True)
class Machine:
    """One machine of an engine, for administrators. `total` is what it has for jobs when nothing runs; `free` what is
    left now, nothing where it takes no tasks; `bound` the portal's own tasks that are on it, as far as the engine knows
    them. `is_usable` False: its operator's choice of nodes leaves it out."""

    name: str
    state: MachineState
    total: Resources
    free: Resources
    bound: tuple[Bound, ...] = ()
    model: str = ""
    """Of its GPUs or other accelerators, as its labels say; empty: not said."""
    labels: Mapping[str, str] = field(default_factory=dict)
    is_usable: bool = True
    message: str = ""
    """Why it takes no tasks, and what to do, for people to read; empty where its state says it."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """More that its engine knows of it, as JSON; which engine says what, its module describes."""


@runtime_checkable
class ListsMachines(Protocol):
    """Optional: an engine that can say what each of its machines is and does."""

    def machines(self) -> Sequence[Machine]:
        """Every machine, by name, also those that take no tasks. For as much as `capacity` costs; what it says of the
        whole agrees with that."""


@runtime_checkable
class Watches(Protocol):
    """Optional: an engine that can say which runs have changed."""

    def changes(self) -> Iterator[JobKey]:
        """Keys of runs that may have changed, for ever; blocks between them. Events may be doubled or lost."""


@runtime_checkable
class Keeps(Protocol):
    """Optional: an engine that has a run until it is asked to remove it, whatever becomes of machines and processes:
    one that is gone was removed by others."""

    def missing(self, key: JobKey) -> str:
        """Of a run that was there and is not any more: what of it is missing, as a sentence."""


@runtime_checkable
class Outputs(Protocol):
    """Optional: what the engine itself kept of a task's output, for tasks that died before the runner began."""

    def tail(self, key: JobKey, role: Role, index: int, lines: int) -> list[str]:
        """The last `lines` lines, oldest first; empty where nothing was kept."""


@runtime_checkable
class Nudges(Protocol):
    """Optional: an engine that reaches a task sooner than the answer to its next report does."""

    def nudge(self, key: JobKey, role: Role, index: int) -> None:
        """Have the task's runner report to the portal at once. Absent, or a runner that is older: nothing happens."""


@runtime_checkable
class Restarts(Protocol):
    """Optional: an engine that starts lost tasks again by itself, but all of them together only when it is asked to."""

    def restart(self, key: JobKey) -> bool:
        """Begin to end every task of the cluster that was there when one was lost, so that all start again together.
        Returns whether there was anything to do: asked again, or by two at once, one loss is one restart. Absent, or
        nothing lost: nothing happens."""


@runtime_checkable
class Finishes(Protocol):
    """Optional: an engine that ends a run as a whole for less than it costs to end a part of it."""

    def finish(self, key: JobKey) -> None:
        """Begin to stop every task (SIGTERM, the spec's `time_to_end`, SIGKILL) and to remove the run: for those who
        know how it ended, or that it is to be stopped. Returns at once. From then on `observe` shows the tasks that
        have not ended, of a run that does not exist; when all have, ABSENT. Asked again, or absent: success."""


@runtime_checkable
class Refuses(Protocol):
    """Optional: an engine that does not run every valid job, whatever there is of it."""

    def refusal(self, spec: TrainingSpec) -> Problem | None:
        """Why it will not run this job; None where it will. `submit` and `preview` refuse the same."""


@runtime_checkable
class RunsImages(Protocol):
    """Optional: an engine whose tasks run in the image that the specification pins for their role
    (`TrainingSpec.image_of`), and in its own where that is None."""

    def runs_images(self) -> bool:
        """Whether its operator lets it."""


@runtime_checkable
class RunsSpark(Protocol):
    """Optional: an engine that can say whether jobs have what a Spark cluster needs."""

    def has_own_spark(self) -> bool:
        """Whether it has a Spark of its own, which the portal's programs use, too."""

    def missing_for_spark(self) -> str:
        """What a job has to bring and what is missing, in sentences for people; empty: nothing is."""


@runtime_checkable
class Offers(Protocol):
    """Optional: an engine with devices that its operator named."""

    def devices(self) -> Mapping[str, str]:
        """As jobs and quotas name each (`device/a100-40gb`) → what people read (`A100 40GB`), in order."""


@dataclass(frozen=True)
class Servers:
    """Where the TensorFlow servers of a run listen, as its own tasks know each other: `host:port` by role, in order of
    index. `reach` says, in a sentence for people, from where these addresses can be reached."""

    addresses: Mapping[Role, tuple[str, ...]]
    reach: str
    data_dir: str
    """Where each task can read the job's inputs: the same path for all, since one graph runs on all of them."""


@runtime_checkable
class Serves(Protocol):
    """Optional: an engine whose tasks can be reached by others, too."""

    def servers(self, spec: TrainingSpec, key: JobKey) -> Servers | None:
        """The servers of this run, whether they answer yet or not; None where they have no addresses (any more)."""


@dataclass(frozen=True)
class Address:
    """Where the portal connects to reach one port of a task."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@runtime_checkable
class Dials(Protocol):
    """Optional: an engine on which the portal itself can connect to the port of a task that has a server."""

    def address(self, spec: TrainingSpec, key: JobKey, role: Role, index: int) -> Address | None:
        """Where this task's port is now, whether it answers yet or not. None where the task has no server, or no
        address (yet, or any more). The address proves nothing: the gate that listens there has to prove itself."""


class Probe(StrEnum):
    """What no setting tells of an engine, so that it is tried from where its tasks run."""

    REACH = "reach"
    """Tasks reach the portal."""
    NETWORK = "network"
    """Tasks reach nothing that they must not."""
    PROCESSES = "processes"
    """One task cannot take all processes of its machine."""


@dataclass(frozen=True)
class Finding:
    """What came of a probe, for the operator: whether it is as it should be, and what to do. `is_well` None: it could
    not be told."""

    is_well: bool | None
    message: str
    remedy: str = ""


@runtime_checkable
class Probes(Protocol):
    """Optional: an engine that can try such things."""

    def probe(self, probe: Probe, portal_url: str) -> Finding:
        """Try it now, with what tasks are held to. Takes seconds, two minutes at most, and leaves nothing behind.
        Raises `Unavailable` and `Misconfigured`, which tell nothing of what was to be tried."""


class ClaimPhase(StrEnum):
    """How a volume of a namespace is at the engine."""

    ABSENT = "absent"
    PENDING = "pending"
    READY = "ready"
    LOST = "lost"
    """Its storage is gone, with what was on it."""
    GOING = "going"


@dataclass(frozen=True)
class VolumeState:
    """`size` is what there is, in bytes; 0: not known. `message` says why it is not as wanted, for people to read.
    `identity` is that of this very volume: one that was made in its place is empty, and has another."""

    phase: ClaimPhase
    size: int = 0
    message: str = ""
    identity: str = ""


@runtime_checkable
class Volumes(Protocol):
    """Optional: an engine on which the tasks of a namespace can share volumes."""

    def offers_volumes(self) -> bool:
        """Whether its operator has set where they come from."""

    def check_volumes(self) -> Finding:
        """Whether what the operator has set for them is there, for an engine that offers them. Asks, and changes
        nothing. Raises `Unavailable` and `Misconfigured`, which tell nothing of it."""

    def keep_volumes(
        self, namespace_id: uuid.UUID, wanted: Mapping[VolumeKind, int]
    ) -> Mapping[VolumeKind, VolumeState]:
        """Make those that are missing and enlarge those that are smaller than `wanted` says (bytes by kind); remove
        those that are not wanted, with all that is on them. Returns at once, with the state of each kind. Raises
        `EngineNamespaceMissing` as `submit` does."""


@dataclass(frozen=True)
class HomeUse:
    """Bytes that a home takes. `is_whole` False: at least so many, since it has more than was counted."""

    size: int
    is_whole: bool = True


@runtime_checkable
class KeepsHomes(Protocol):
    """Optional: an engine that keeps the files of each user's notebooks between sessions, one home in each namespace.
    `submit` makes the home of a notebook."""

    def home_size(self) -> int | None:
        """Bytes that each home has reserved, used or not; 0: what it takes is measured (`home_use`). None: its operator
        wants no homes."""

    def check_homes(self) -> Finding | None:
        """Whether what the operator has set for them is there; None where nothing was set that can be missing. Changes
        nothing. Raises `Unavailable` and `Misconfigured`, which tell nothing of it."""

    def home_use(self, namespace_id: uuid.UUID, owner_id: uuid.UUID) -> HomeUse:
        """What it takes now, measured for some seconds at most. Never there: 0."""

    def remove_home(self, namespace_id: uuid.UUID, owner_id: uuid.UUID) -> bool:
        """Remove it with all that is in it, or begin to, for some seconds at most. Returns whether it is gone, and is
        called again until it is. Never there: gone."""


@dataclass(frozen=True)
class Remains:
    """What is still there of a namespace that is to be removed, and what holds its end up, for people to read."""

    gone: bool
    left: tuple[str, ...] = ()


@runtime_checkable
class Namespaces(Protocol):
    """Optional: an engine that keeps a namespace of its own, with limits, for every namespace of the portal."""

    def shape(self, namespace_id: uuid.UUID, quota: Quota, portal_url: str) -> Collection[str]:
        """Make it, and repair whatever of it is not as it should be. Returns what was made or changed: nothing
        where all was well. `portal_url` is how tasks reach the portal, which they must always be able to."""

    def remove(self, namespace_id: uuid.UUID) -> Remains:
        """Begin to remove it with all that is in it. Returns at once, and is asked again until it is gone.
        Never there: gone."""


@runtime_checkable
class ListsNamespaces(Namespaces, Protocol):
    """Optional: one that can list its namespaces, whatever the portal remembers."""

    def namespaces_there(self) -> Collection[uuid.UUID]:
        """The portal's namespaces for which this portal has made one that is there, found by asking."""
