"""A small world for jobs: an engine that does what the test says, a clock that the test moves, and a sweep by hand."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection
from rest_framework.test import APIClient

from apps.accounts.models import User
from apps.code.models import Code, CodeVersion
from apps.datasets.models import Dataset, DatasetVersion
from apps.jobs.models import Job, QueuePass
from apps.jobs.services import job_launch
from apps.jobs.state.task_auth import token_of
from apps.jobs.worker.queue_pass import admit_queue
from apps.jobs.worker.reconcile import reconcile
from apps.namespaces.models import Namespace
from apps.stores import storage
from apps.uploads.file_blocks import manifest_append
from apps.uploads.models import Kind, State, Upload
from yardmaster.engines.base import Capacity, TaskAccess
from yardmaster.engines.fake import PLENTY, FakeEngine
from yardmaster.ids import JobKey
from yardmaster.job.spec import Resources, Role, TrainingSpec
from yardmaster.job.spec_json import spec_from_json
from yardmaster.lifecycle.phases import Observation, TaskPhase
from yardmaster.storage.file_list import ListedFile


class StagedEngine(FakeEngine):
    """Tasks begin at once, unless told otherwise. Refuses to be called inside a transaction."""

    def __init__(self, *, name: str = "staged", total: Resources = PLENTY) -> None:
        super().__init__(name=name, total=total)
        self.submits: list[JobKey] = []
        """Submits that had an effect."""
        self.begin_at_once = True
        self.said: dict[str, Any] = {}
        """More of every observation."""
        self.error: Exception | None = None
        """Raised by every verb while it is set."""
        self.kept_output: dict[tuple[Role, int], list[str]] = {}
        self.before_verb: Callable[[str], None] = lambda verb: None
        self.after_verb: Callable[[str], None] = lambda verb: None

    @contextmanager
    def _verb(self, name: str) -> Iterator[None]:
        self.before_verb(name)
        if self.error is not None:
            raise self.error
        yield
        self.after_verb(name)

    def capacity(self) -> Capacity:
        with self._verb("capacity"):
            return super().capacity()

    def submit(self, spec: TrainingSpec, key: JobKey, access: TaskAccess) -> None:
        with self._verb("submit"):
            is_new = not self.observe_quietly(key).exists
            super().submit(spec, key, access)
            assert self.access_of(key) == access, "a repeated submit must bring the same token"
            if is_new:
                self.submits.append(key)
                if self.begin_at_once:
                    self.begin(key)

    def observe(self, keys: Collection[JobKey]) -> Mapping[JobKey, Observation]:
        with self._verb("observe"):
            found = super().observe(keys)
            return {key: replace(one, **self.said) if one.exists else one for key, one in found.items()}

    def release(self, key: JobKey, roles: Collection[Role]) -> None:
        with self._verb("release"):
            super().release(key, roles)

    def stop(self, key: JobKey, grace: timedelta) -> None:
        with self._verb("stop"):
            super().stop(key, grace)

    def clean_up(self, key: JobKey) -> None:
        with self._verb("clean_up"):
            super().clean_up(key)

    def tail(self, key: JobKey, role: Role, index: int, lines: int) -> list[str]:
        with self._verb("tail"):
            return self.kept_output.get((role, index), [])[-lines:]

    # What tests stage and see.

    def observe_quietly(self, key: JobKey) -> Observation:
        return FakeEngine.observe(self, [key])[key]

    def set(self, job: Job, role: Role, index: int, phase: TaskPhase, **facts: Any) -> None:
        self.set_task(job.key, role, index, phase=phase, **facts)

    def succeed(self, job: Job, role: Role = Role.WORKER, index: int | None = None) -> None:
        """A task, or every task of the role, ends well."""
        for one in self.observe_quietly(job.key).of([role]):
            if index in (None, one.index):
                self.set(job, role, one.index, TaskPhase.SUCCEEDED, exit_code=0)

    def alive(self, job: Job) -> list[str]:
        tasks = self.observe_quietly(job.key).tasks
        return sorted(f"{one.role}-{one.index}" for one in tasks if not one.phase.is_ended)

    def has(self, job: Job) -> bool:
        return self.observe_quietly(job.key).exists


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
        return self._version(code, CodeVersion, Kind.CODE, files or {"train.py": "print('training')\n"})

    def dataset_version(self, owner: User, files: Mapping[str, str]) -> DatasetVersion:
        """The same of a dataset."""
        namespace = Namespace.objects.get(owner=owner)
        dataset = Dataset.objects.create(namespace=namespace, name=f"data {uuid.uuid4().hex[:8]}")
        return self._version(dataset, DatasetVersion, Kind.DATASET, files)

    def _version(self, parent: Any, model: Any, kind: Kind, texts: Mapping[str, str]) -> Any:
        listed = [ListedFile(path, len(text.encode()), sha256="0" * 64) for path, text in texts.items()]
        upload = Upload(
            namespace=parent.namespace, kind=kind, part_size=1, file_count=len(listed), held=0, state=State.COMPLETE,
            used=True, created_at=self.now, touched_at=self.now,
        )  # fmt: skip
        upload.key_prefix = f"{kind}/{upload.target_id}"
        upload.save(force_insert=True)
        manifest_append(upload.pk, 0, sorted(listed, key=lambda file: file.path))
        version = model(
            id=upload.target_id, parent=parent, number=1, upload_id=upload.pk, key_prefix=upload.key_prefix, size=1,
            file_count=1, added=1, changed=0, removed=0,
        )  # fmt: skip
        version.save(force_insert=True)
        for path, text in texts.items():
            storage().put(f"{version.key_prefix}/{path}", text.encode())
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
        spec = spec_from_json(self.spec_json(owner, **changes))
        job, _ = job_launch(user=owner, namespace=namespace, spec=spec, accept_never_fits=True)
        Job.objects.filter(pk=job.pk).update(queued_at=self.now, next_look_at=self.now)
        return self.again(job)

    def look(self, job: Job) -> Job:
        """Look at the job; while it waits, at its engine's queue, and where it starts at the job again."""
        reconcile(job.pk, clock=self.clock)
        found = self.again(job)
        if found.phase == "QUEUED":
            admit_queue(found.engine, clock=self.clock)
            if self.again(job).phase != "QUEUED":
                reconcile(job.pk, clock=self.clock)
        return self.again(job)

    def again(self, job: Job) -> Job:
        return Job.objects.get(pk=job.pk)

    def sweep(self) -> int:
        """Look once at every job that is due, and at the queues that are due or may have got room; how many looks."""
        due = list(Job.objects.filter(next_look_at__lte=self.now).order_by("next_look_at").values_list("pk", flat=True))
        for job_id in due:
            reconcile(job_id, clock=self.clock)
        return len(due) + self._decide_queues(because=bool(due))

    def _decide_queues(self, *, because: bool) -> int:
        engines = set(Job.objects.waiting().values_list("engine", flat=True))
        resting = QueuePass.objects.filter(engine__in=engines, next_at__gt=self.now).values_list("engine", flat=True)
        chosen = engines if because else engines - set(resting)
        for engine in sorted(chosen):
            admit_queue(engine, clock=self.clock)
        return len(chosen)

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

    def until_running(self, job: Job) -> None:
        """Time passes from look to look until the job runs."""
        for _ in range(50):
            self.settle()
            if self.again(job).phase == "RUNNING":
                return
            self.now = max(self.now, self.again(job).next_look_at)
        raise AssertionError(f"stuck as {self.again(job).phase} {self.again(job).reason}")

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


def task_of(job: Job, attempt: int = 1) -> APIClient:
    """A client with the token of a job's attempt."""
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {token_of(job.pk, attempt)}")
    return client


def refuses_transactions() -> Callable[[str], None]:
    """Fails where a verb is called within a transaction that the test itself did not open."""
    depth, outer = len(connection.savepoint_ids), connection.in_atomic_block

    def check(verb: str) -> None:
        inside = connection.in_atomic_block and (not outer or len(connection.savepoint_ids) > depth)
        assert not inside, f"{verb} was called inside a transaction"

    return check
