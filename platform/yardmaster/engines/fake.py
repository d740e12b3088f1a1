"""Engines that run nothing: one whose runs do what a test says, and others named after what is wrong with them.

They keep the contract of `base` (the same suite runs on them), in memory, for one process. Not for any installation.
"""

from __future__ import annotations

import queue
import threading
import uuid
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from yardmaster.engines.base import (
    Address,
    Capacity,
    ClaimPhase,
    Finding,
    HomeUse,
    Machine,
    MachineState,
    Remains,
    Servers,
    TaskAccess,
    VolumeState,
)
from yardmaster.errors import EngineNamespaceMissing, Problem, SpecRejected, Unavailable
from yardmaster.ids import JobKey
from yardmaster.job.spec import NOTHING, Resources, Role, TrainingSpec
from yardmaster.job.strategy import server_roles
from yardmaster.job.volumes import VolumeKind
from yardmaster.lifecycle.phases import ABSENT, Observation, TaskPhase, TaskState
from yardmaster.lifecycle.restarts import NO_TRACE, Trace, after_exit, tasks_to_restart
from yardmaster.queueing.ledger import Quota
from yardmaster.queueing.placement import Node
from yardmaster.queueing.resources import resources_of

PLENTY = Resources(cpu=64.0, memory=256 << 30, gpus=8)


@dataclass
class _Run:
    spec: TrainingSpec
    access: TaskAccess
    tasks: dict[tuple[Role, int], TaskState] = field(default_factory=dict)
    traces: dict[tuple[Role, int], Trace] = field(default_factory=dict)
    spent: int = 0


class FakeEngine:
    """An engine whose tasks go as the test says: PENDING until `begin`, RUNNING until `end`, or until they are stopped.

    `calls` lists the verbs that changed something or tried to, as (verb, key), in order. Tasks that are `stubborn`
    ignore being stopped until `clean_up`. Every port of a task is at `served_at`.
    """

    isolates = True
    has_way_out = True

    def __init__(self, *, name: str = "fake", total: Resources = PLENTY, largest_task: Resources | None = None) -> None:
        self.name = name
        self.calls: list[tuple[str, JobKey]] = []
        self.served_at = Address("127.0.0.1", 9)
        self.stubborn: set[tuple[Role, int]] = set()
        self._capacity = Capacity(total=total, free=total, largest_task=largest_task or total)
        self._runs: dict[JobKey, _Run] = {}
        self._failures: dict[str, list[Exception]] = {}
        self._lock = threading.RLock()
        self._followers: list[queue.SimpleQueue[JobKey]] = []

    def set_nodes(self, *nodes: Node) -> None:
        """It has these nodes from now on."""
        total, free = (sum((getattr(one, name) for one in nodes), NOTHING) for name in ("total", "free"))
        self._capacity = Capacity(total=total, free=free, largest_task=total, nodes=nodes)

    # --- what a test says --------------------------------------------------------------------------------------------

    def begin(self, key: JobKey, *tasks: tuple[Role, int]) -> None:
        """These tasks (all, without any) now run."""
        now = datetime.now(UTC)
        for role, index in tasks or self._runs[key].spec.tasks():
            self.set_task(key, role, index, phase=TaskPhase.RUNNING, started_at=now, finished_at=None, exit_code=None)

    def end(self, key: JobKey, role: Role, index: int, exit_code: int | None, reason: str = "") -> None:
        """This task has ended by itself, well or for good."""
        phase = TaskPhase.SUCCEEDED if exit_code == 0 else TaskPhase.FAILED
        self.set_task(key, role, index, phase=phase, exit_code=exit_code, reason=reason, finished_at=datetime.now(UTC))

    def fail(
        self, key: JobKey, role: Role, index: int, exit_code: int, reason: str, message: str, trace: Trace = NO_TRACE
    ) -> None:
        """This task has failed: what `restarts` says follows at once."""
        with self._lock:
            run = self._runs[key]
            reason = trace.reason_after(run.traces.get((role, index), NO_TRACE), reason)
            well = [one for one, state in run.tasks.items() if state.phase is TaskPhase.SUCCEEDED]
            restart = after_exit(run.spec, role, index, exit_code, reason, run.spent, well)
            again = tasks_to_restart(run.spec, restart, role, index, well)
            if not again:
                self.end(key, role, index, exit_code, reason)
                self.set_task(key, role, index, message=message)
                return
            run.traces[role, index] = trace
            run.spent += 1
            for one in again:
                self.set_task(key, *one, phase=TaskPhase.RUNNING, restarts=run.tasks[one].restarts + 1)

    def set_task(self, key: JobKey, role: Role, index: int, **changes: Any) -> None:
        """Any fields of a task's state, as they are to be observed."""
        with self._lock:
            tasks = self._runs[key].tasks
            tasks[role, index] = replace(tasks[role, index], **changes)
            self._note(key)

    def lose(self, key: JobKey) -> None:
        """Forget the run, as an engine does whose machine was replaced."""
        with self._lock:
            self._runs.pop(key, None)

    def fail_next(self, verb: str, *errors: Exception) -> None:
        """The next calls of this verb raise these, one each, and change nothing."""
        with self._lock:
            self._failures.setdefault(verb, []).extend(errors)

    def access_of(self, key: JobKey) -> TaskAccess:
        """What `submit` was given for the tasks of this run."""
        return self._runs[key].access

    # --- the contract ------------------------------------------------------------------------------------------------

    def capacity(self) -> Capacity:
        self._fail_if_asked("capacity")
        return self._capacity

    def machines(self) -> list[Machine]:
        self._fail_if_asked("machines")
        there = self._capacity
        nodes = there.nodes or (Node(self.name, there.total, there.free),)
        left = [one.left_beside(frozenset(held.job_id for held in one.bound)) for one in nodes]
        return [
            Machine(one.name, MachineState.READY, one.total, resources_of(free), one.bound)
            for one, free in sorted(zip(nodes, left, strict=True), key=lambda pair: pair[0].name)
        ]

    def submit(self, spec: TrainingSpec, key: JobKey, access: TaskAccess) -> None:
        with self._called("submit", key):
            if key not in self._runs:
                tasks = {(role, index): TaskState(role, index, TaskPhase.PENDING) for role, index in spec.tasks()}
                self._runs[key] = _Run(spec, access, tasks)
                self._note(key)

    def observe(self, keys: Collection[JobKey]) -> Mapping[JobKey, Observation]:
        self._fail_if_asked("observe")
        with self._lock:
            return {
                key: Observation(True, tuple(self._runs[key].tasks.values())) if key in self._runs else ABSENT
                for key in keys
            }

    def release(self, key: JobKey, roles: Collection[Role]) -> None:
        with self._called("release", key):
            self._end_all(key, frozenset(roles))

    def stop(self, key: JobKey, grace: timedelta) -> None:
        with self._called("stop", key):
            self._end_all(key, frozenset(Role))

    def clean_up(self, key: JobKey) -> None:
        with self._called("clean_up", key):
            if self._runs.pop(key, None) is not None:
                self._note(key)

    def preview(self, spec: TrainingSpec, key: JobKey, user: uuid.UUID | None = None) -> list[dict[str, Any]]:
        self._fail_if_asked("preview")
        return [{"kind": "fake", "name": f"{key.name}-{role.value}-{index}"} for role, index in spec.tasks()]

    def servers(self, spec: TrainingSpec, key: JobKey) -> Servers | None:
        if key not in self._runs:
            return None
        addresses = {
            role: tuple(f"{role.value}-{index}.{key.name}:2222" for index in range(spec.replicas(role)))
            for role in server_roles(spec)
        }
        return Servers(addresses, "From nowhere: this engine runs nothing.", "/data")

    def address(self, spec: TrainingSpec, key: JobKey, role: Role, index: int) -> Address | None:
        self._fail_if_asked("address")
        if key not in self._runs or role not in server_roles(spec) or index >= spec.replicas(role):
            return None
        return self.served_at

    def changes(self) -> Iterator[JobKey]:
        """From this call on, not from the first key asked of it."""
        mine: queue.SimpleQueue[JobKey] = queue.SimpleQueue()
        with self._lock:
            self._followers.append(mine)
        return iter(mine.get, None)

    def tail(self, key: JobKey, role: Role, index: int, lines: int) -> list[str]:
        return []

    # --- parts -------------------------------------------------------------------------------------------------------

    def _called(self, verb: str, key: JobKey) -> AbstractContextManager[Any]:
        """Note the call, fail if told to, and give the lock under which the verb does its work."""
        with self._lock:
            self.calls.append((verb, key))
            self._fail_if_asked(verb)
        return self._lock

    def _fail_if_asked(self, verb: str) -> None:
        with self._lock:
            waiting = self._failures.get(verb)
            if waiting:
                raise waiting.pop(0)

    def _end_all(self, key: JobKey, roles: frozenset[Role]) -> None:
        run = self._runs.get(key)
        if run is None:
            return
        for one, state in run.tasks.items():
            if one[0] in roles and not state.phase.is_ended and one not in self.stubborn:
                ended = replace(state, phase=TaskPhase.RELEASED, exit_code=143, finished_at=datetime.now(UTC))
                run.tasks[one] = ended
        self._note(key)

    def _note(self, key: JobKey) -> None:
        for follower in self._followers:
            follower.put(key)


class EngineWithNamespaces(FakeEngine):
    """Keeps a namespace for each of the portal's, in memory. Those named in `finalizers` do not go."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.namespaces: dict[uuid.UUID, Quota] = {}
        self.finalizers: dict[uuid.UUID, tuple[str, ...]] = {}

    def shape(self, namespace_id: uuid.UUID, quota: Quota, portal_url: str) -> tuple[str, ...]:
        self._fail_if_asked("shape")
        with self._lock:
            before = self.namespaces.get(namespace_id)
            self.namespaces[namespace_id] = quota
        return () if before == quota else ("quota",)

    def remove(self, namespace_id: uuid.UUID) -> Remains:
        self._fail_if_asked("remove")
        with self._lock:
            if namespace_id in self.namespaces and namespace_id in self.finalizers:
                return Remains(gone=False, left=self.finalizers[namespace_id])
            self.namespaces.pop(namespace_id, None)
            for key in [key for key in self._runs if key.namespace_id == namespace_id]:
                del self._runs[key]
        return Remains(gone=True)


class EngineWithVolumes(EngineWithNamespaces):
    """Has volumes that are ready at once, or pending with the words in `pending`; those in `held` do not go."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.volumes: dict[uuid.UUID, dict[VolumeKind, int]] = {}
        self.identities: dict[VolumeKind, str] = {}
        """Of the volumes of every namespace. Another one: they were made again."""
        self.is_lost = False
        self.pending = ""
        self.held: set[VolumeKind] = set()

    def offers_volumes(self) -> bool:
        return True

    def check_volumes(self) -> Finding:
        self._fail_if_asked("check_volumes")
        return Finding(True, "It has volumes.")

    def keep_volumes(self, namespace_id: uuid.UUID, wanted: Mapping[VolumeKind, int]) -> dict[VolumeKind, VolumeState]:
        self._fail_if_asked("keep_volumes")
        with self._lock:
            if namespace_id not in self.namespaces:
                raise EngineNamespaceMissing("It has no such namespace.")
            had = self.volumes.setdefault(namespace_id, {})
            for kind in VolumeKind:
                if kind in wanted:
                    had[kind] = max(had.get(kind, 0), wanted[kind])
                elif kind not in self.held:
                    had.pop(kind, None)
            return {kind: self._volume_state(had, kind, wanted) for kind in VolumeKind}

    def _volume_state(
        self, had: Mapping[VolumeKind, int], kind: VolumeKind, wanted: Mapping[VolumeKind, int]
    ) -> VolumeState:
        if kind not in had:
            return VolumeState(ClaimPhase.ABSENT)
        if kind not in wanted:
            return VolumeState(ClaimPhase.GOING, had[kind], "A task uses it.")
        phase = ClaimPhase.LOST if self.is_lost else ClaimPhase.PENDING if self.pending else ClaimPhase.READY
        return VolumeState(phase, had[kind], self.pending, self.identities.get(kind, "first"))

    def remove(self, namespace_id: uuid.UUID) -> Remains:
        remains = super().remove(namespace_id)
        if remains.gone:
            self.volumes.pop(namespace_id, None)
        return remains


class EngineWithImages(FakeEngine):
    """Runs images, unless its operator has turned that off (`has_images`)."""

    has_images = True

    def runs_images(self) -> bool:
        return self.has_images


class EngineWithHomes(FakeEngine):
    """Keeps homes, of which `reserved` says what each takes; 0: what `homes` says. Those in `held` do not go."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.reserved: int | None = 0
        self.homes: dict[tuple[uuid.UUID, uuid.UUID], int] = {}
        self.held: set[uuid.UUID] = set()

    def home_size(self) -> int | None:
        return self.reserved

    def check_homes(self) -> None:
        self._fail_if_asked("check_homes")

    def home_use(self, namespace_id: uuid.UUID, owner_id: uuid.UUID) -> HomeUse:
        self._fail_if_asked("home_use")
        return HomeUse(self.homes.get((namespace_id, owner_id), 0))

    def remove_home(self, namespace_id: uuid.UUID, owner_id: uuid.UUID) -> bool:
        self._fail_if_asked("remove_home")
        if owner_id in self.held:
            return False
        self.homes.pop((namespace_id, owner_id), None)
        return True


class EngineThatIsAway(FakeEngine):
    """Every verb fails: its machine cannot be reached."""

    def _fail_if_asked(self, verb: str) -> None:
        raise Unavailable("The engine does not answer.", remedy="Wait; the job continues when it is back.")


class EngineThatRefuses(FakeEngine):
    """No specification is good enough for it."""

    def submit(self, spec: TrainingSpec, key: JobKey, access: TaskAccess) -> None:
        raise SpecRejected([Problem("roles", "no_such_resource", "Not on this engine.", "Choose another engine.")])


class EngineThatLosesAnswers(FakeEngine):
    """Every call is carried out and then reported as failed, once: the connection broke before the answer came."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._lost: set[tuple[str, JobKey]] = set()

    def submit(self, spec: TrainingSpec, key: JobKey, access: TaskAccess) -> None:
        super().submit(spec, key, access)
        self._lose_answer("submit", key)

    def release(self, key: JobKey, roles: Collection[Role]) -> None:
        super().release(key, roles)
        self._lose_answer("release", key)

    def stop(self, key: JobKey, grace: timedelta) -> None:
        super().stop(key, grace)
        self._lose_answer("stop", key)

    def clean_up(self, key: JobKey) -> None:
        super().clean_up(key)
        self._lose_answer("clean_up", key)

    def _lose_answer(self, verb: str, key: JobKey) -> None:
        if (verb, key) not in self._lost:
            self._lost.add((verb, key))
            raise Unavailable("The connection broke before the engine had answered.")
