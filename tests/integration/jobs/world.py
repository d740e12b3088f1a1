"""A small world for jobs: an engine that does what the test says, a clock that the test moves, and a sweep by hand."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection

from apps.accounts.models import User
from apps.code.models import Code, CodeFile, CodeVersion
from apps.jobs.models import Job
from apps.jobs.reconcile import reconcile
from apps.jobs.services import job_create
from apps.namespaces.models import Namespace
from apps.uploads.storage import storage
from yardmaster.engines.base import Capacity, TaskAccess
from yardmaster.ids import JobKey, new_id
from yardmaster.phases import ABSENT, Observation, TaskPhase, TaskState
from yardmaster.spec import Resources, Role, TrainingSpec
from yardmaster.spec_json import spec_from_json

GIB = 1 << 30


@dataclass
class Run:
    """One attempt as the engine has it."""

    spec: TrainingSpec
    access: TaskAccess
    tasks: dict[tuple[Role, int], TaskState] = field(default_factory=dict)


class StagedEngine:
    """Starts nothing. Tasks begin at once, and then do what the test stages. Refuses to be called in a transaction."""

    isolates = True

    def __init__(self, name: str = "staged", cpu: float = 64, memory: int = 256 * GIB, gpus: int = 8) -> None:
        self.name = name
        self.room = Resources(cpu=cpu, memory=memory, gpus=gpus)
        self.runs: dict[JobKey, Run] = {}
        self.calls: list[tuple[str, JobKey | None]] = []
        self.submits: list[JobKey] = []
        """Submits that had an effect."""
        self.begin_at_once = True
        self.obeys_stop = True
        self.error: Exception | None = None
        """Raised by every verb while it is set."""
        self.kept_output: dict[tuple[Role, int], list[str]] = {}
        self.in_transaction: Callable[[], bool] = lambda: False

    def _called(self, verb: str, key: JobKey | None = None) -> None:
        assert not self.in_transaction(), f"{verb} was called inside a transaction"
        self.calls.append((verb, key))
        if self.error is not None:
            raise self.error

    def capacity(self) -> Capacity:
        self._called("capacity")
        return Capacity(total=self.room, free=self.room, largest_task=self.room)

    def submit(self, spec: TrainingSpec, key: JobKey, access: TaskAccess) -> None:
        self._called("submit", key)
        if key in self.runs:
            assert self.runs[key].access == access, "a repeated submit must bring the same token"
            return
        self.submits.append(key)
        phase = TaskPhase.RUNNING if self.begin_at_once else TaskPhase.PENDING
        tasks = {(role, index): TaskState(role, index, phase) for role, index in spec.tasks()}
        self.runs[key] = Run(spec, access, tasks)

    def observe(self, keys: Collection[JobKey]) -> Mapping[JobKey, Observation]:
        for key in keys:
            self._called("observe", key)
        return {
            key: Observation(True, tuple(self.runs[key].tasks.values())) if key in self.runs else ABSENT for key in keys
        }

    def release(self, key: JobKey, roles: Collection[Role]) -> None:
        self._called("release", key)
        self._end(key, roles)

    def stop(self, key: JobKey, grace: timedelta) -> None:
        self._called("stop", key)
        if self.obeys_stop:
            self._end(key, list(Role))

    def tidy(self, key: JobKey) -> None:
        self._called("tidy", key)
        self.runs.pop(key, None)

    def preview(self, spec: TrainingSpec, key: JobKey) -> list[dict[str, Any]]:
        self._called("preview", key)
        return [{"kind": "Task", "name": f"{key.name}-{role}-{index}"} for role, index in spec.tasks()]

    def tail(self, key: JobKey, role: Role, index: int, lines: int) -> list[str]:
        self._called("tail", key)
        return self.kept_output.get((role, index), [])[-lines:]

    def _end(self, key: JobKey, roles: Collection[Role]) -> None:
        tasks = self.runs[key].tasks if key in self.runs else {}
        for task in [one for one in tasks.values() if one.role in roles and not one.phase.is_ended]:
            tasks[task.role, task.index] = replace(task, phase=TaskPhase.RELEASED)

    # What tests stage.

    def set(self, job: Job, role: Role, index: int, phase: TaskPhase, **facts: Any) -> None:
        tasks = self.runs[job.key].tasks
        tasks[role, index] = replace(tasks[role, index], phase=phase, **facts)

    def succeed(self, job: Job, role: Role = Role.WORKER, index: int | None = None) -> None:
        """A task, or every task of the role, ends well."""
        for one in [task for task in self.runs[job.key].tasks.values() if task.role is role]:
            if index in (None, one.index):
                self.set(job, role, one.index, TaskPhase.SUCCEEDED, exit_code=0)

    def alive(self, job: Job) -> list[str]:
        tasks = self.runs[job.key].tasks.values() if job.key in self.runs else ()
        return sorted(f"{one.role}-{one.index}" for one in tasks if not one.phase.is_ended)


class World:
    """Time passes only when a test says so. Nothing is woken but by the sweep: events may all be lost."""

    def __init__(self, engine: StagedEngine) -> None:
        self.engine = engine
        self.now = datetime(2027, 1, 4, 12, tzinfo=UTC)

    def clock(self) -> datetime:
        return self.now

    def code_version(self, owner: User, files: Mapping[str, str] | None = None) -> CodeVersion:
        """A code version of the owner's, as an upload would have left it."""
        namespace = Namespace.objects.get(owner=owner)
        code = Code.objects.create(namespace=namespace, name=f"code {uuid.uuid4().hex[:8]}")
        version = CodeVersion(
            id=new_id(), parent=code, number=1, upload_id=new_id(), key_prefix="", size=1, file_count=1,
            added=1, changed=0, removed=0,
        )  # fmt: skip
        version.key_prefix = f"code/{version.pk}"
        version.save(force_insert=True)
        for path, text in (files or {"train.py": "print('training')\n"}).items():
            storage().put(f"{version.key_prefix}/{path}", text.encode())
            CodeFile.objects.create(version=version, path=path, size=len(text.encode()), sha256="0" * 64)
        return version

    def spec_json(self, owner: User, **changes: Any) -> dict[str, Any]:
        """Two workers and a parameter server."""
        data: dict[str, Any] = {
            "name": "digits",
            "strategy": "between_graph",
            "roles": {
                "worker": {"replicas": 2, "cpu": 1, "memory": "1Gi"},
                "ps": {"replicas": 1, "cpu": 1, "memory": "1Gi"},
            },
            "entry_point": "train.py",
        }
        data |= changes
        if "code" not in data:
            data["code"] = str(self.code_version(owner).pk)
        return data

    def launch(self, owner: User, namespace: Namespace | None = None, **changes: Any) -> Job:
        namespace = namespace or Namespace.objects.get(owner=owner)
        job = job_create(user=owner, namespace=namespace, spec=spec_from_json(self.spec_json(owner, **changes)))
        Job.objects.filter(pk=job.pk).update(queued_at=self.now, next_look_at=self.now)
        return self.again(job)

    def look(self, job: Job) -> Job:
        reconcile(job.pk, clock=self.clock)
        return self.again(job)

    def again(self, job: Job) -> Job:
        return Job.objects.get(pk=job.pk)

    def sweep(self) -> int:
        """Look once at every job that is due; how many there were."""
        due = list(Job.objects.filter(next_look_at__lte=self.now).order_by("next_look_at").values_list("pk", flat=True))
        for job_id in due:
            reconcile(job_id, clock=self.clock)
        return len(due)

    def settle(self) -> None:
        """Sweep until nobody is due now."""
        for _ in range(20):
            if not self.sweep():
                return
        raise AssertionError("the jobs never come to rest")

    def passes(self, seconds: float) -> None:
        """Time passes, and the sweep comes by every few seconds of it."""
        end = self.now + timedelta(seconds=seconds)
        while self.now < end:
            self.now = min(end, self.now + timedelta(seconds=5))
            self.settle()

    def until_quiet(self, most: timedelta = timedelta(hours=2)) -> None:
        """Time passes from look to look until no job will ever be looked at again."""
        limit = self.now + most
        while True:
            self.settle()
            following = Job.objects.filter(next_look_at__isnull=False).order_by("next_look_at").first()
            if following is None:
                return
            assert following.next_look_at <= limit, f"{following.phase} {following.reason} is still looked at"
            self.now = max(self.now, following.next_look_at)


def transaction_watch() -> Callable[[], bool]:
    """Whether a transaction is open that the test itself did not open."""
    depth = len(connection.savepoint_ids)
    outer = connection.in_atomic_block
    return lambda: connection.in_atomic_block and (not outer or len(connection.savepoint_ids) > depth)
