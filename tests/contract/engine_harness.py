"""What the contract suite must be able to do to an engine's tasks from outside: let them run, let them end."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Protocol

import pytest

from tests.fakes.kubernetes_api import KubernetesApi
from tests.fakes.kubernetes_cluster import Cluster
from tests.fakes.kubernetes_rights import shipped
from tests.real.machines import Machines
from yardmaster.engines.base import Engine, TaskAccess
from yardmaster.engines.fake import FakeEngine
from yardmaster.engines.hosts import HostsEngine
from yardmaster.engines.kubernetes import KubernetesEngine
from yardmaster.engines.kubernetes.client.api import Api
from yardmaster.engines.kubernetes.client.connection import connect_to
from yardmaster.engines.kubernetes.client.errors import Forbidden
from yardmaster.engines.kubernetes.observe.watching import Pace, Watching
from yardmaster.engines.local import LocalEngine
from yardmaster.engines.supervision.facts import key_from_json
from yardmaster.errors import EngineNamespaceMissing, Unavailable
from yardmaster.ids import JobKey, new_id
from yardmaster.job.spec import Resources, Role, RoleSpec, Strategy, TrainingSpec
from yardmaster.lifecycle.phases import Observation, TaskPhase, TaskState
from yardmaster.lifecycle.restarts import Trace
from yardmaster.queueing.ledger import Quota
from yardmaster_runner.exits import Ending, last_words

ACCESS = TaskAccess("http://127.0.0.1:1", "a-token")
SMALL = Resources(cpu=0.3, memory=256 << 20)
STAND_IN = Path(__file__).with_name("stand_in.py")
PATIENCE = 20.0
QUICK = Pace(lasts=30, quiet=8.0, stale_after=0.5, shortest_pause=0.02, longest_pause=0.05)


def new_key() -> JobKey:
    return JobKey(new_id(), new_id(), 1)


def spec_of(strategy: Strategy = Strategy.BETWEEN_GRAPH, **changes: object) -> TrainingSpec:
    """Two workers and a parameter server, unless `roles` says otherwise."""
    made = {
        "name": "a job",
        "strategy": strategy,
        "roles": {Role.WORKER: RoleSpec(2, SMALL), Role.PS: RoleSpec(1, SMALL)},
        "code_version": new_id(),
        "entry_point": "train.py",
        "retries": 0,
        "grace_period": timedelta(seconds=1),
    }
    return TrainingSpec(**{**made, **changes})  # type: ignore[arg-type]


FAILED_ONCE = Ending(1, "ScriptFailed", "ValueError: bad")


class Harness(Protocol):
    """An engine, and a hand in its tasks. The words for tasks are (role, index)."""

    engine: Engine

    def let_begin(self, key: JobKey) -> None: ...
    def let_end(self, key: JobKey, role: Role, index: int, exit_code: int) -> None: ...
    def let_fail(self, key: JobKey, role: Role, index: int, ending: Ending = FAILED_ONCE) -> None:
        """The task fails once, as its runner would note it; should it be started again, that start goes on."""

    def make_stubborn(self, key: JobKey, role: Role, index: int) -> None: ...


class FakeHarness:
    def __init__(self) -> None:
        self.engine = FakeEngine()

    def let_begin(self, key: JobKey) -> None:
        self.engine.begin(key)

    def let_end(self, key: JobKey, role: Role, index: int, exit_code: int) -> None:
        self.engine.end(key, role, index, exit_code)

    def let_fail(self, key: JobKey, role: Role, index: int, ending: Ending = FAILED_ONCE) -> None:
        trace = Trace(ending.signature, ending.reached)
        self.engine.fail(key, role, index, ending.exit_code, ending.reason, ending.message, trace)

    def make_stubborn(self, key: JobKey, role: Role, index: int) -> None:
        """The fake knows no SIGKILL: what it stops, ends."""


class LocalHarness:
    """The local engine with `stand_in.py` in the runner's place. `close` removes every run."""

    def __init__(self, folder: Path, **options: object) -> None:
        self.orders = folder / "orders"
        self.orders.mkdir(parents=True)
        self.root = folder / "local"
        os.environ["STAND_IN"] = str(self.orders)
        command = [sys.executable, "-S", str(STAND_IN)]
        self.engine = LocalEngine(self.root, **{"command": command, "pass_environment": ["STAND_IN"], **options})
        self.keys: list[JobKey] = []

    def new_key(self) -> JobKey:
        self.keys.append(new_key())
        return self.keys[-1]

    def submit(self, spec: TrainingSpec | None = None) -> JobKey:
        key = self.new_key()
        self.engine.submit(spec or spec_of(), key, ACCESS)
        return key

    def let_begin(self, key: JobKey) -> None:
        """Running for the engine, and so far that it has noted its life."""
        wait_until(self.engine, key, lambda seen: all(self._has_begun(key, task) for task in seen.tasks))

    def let_end(self, key: JobKey, role: Role, index: int, exit_code: int) -> None:
        self.tell(key, role, index, "exit", str(exit_code))

    def let_fail(self, key: JobKey, role: Role, index: int, ending: Ending = FAILED_ONCE) -> None:
        self.tell(key, role, index, "fail", json.dumps(asdict(ending)))

    def make_stubborn(self, key: JobKey, role: Role, index: int) -> None:
        self.tell(key, role, index, "stubborn")

    def tell(self, key: JobKey, role: Role, index: int, word: str, text: str = "") -> None:
        draft = self.orders / ".draft"
        draft.write_text(text)
        draft.rename(self.orders / f"{key.name}.{role.value}-{index}.{word}")

    def untell(self, key: JobKey, role: Role, index: int, word: str) -> None:
        (self.orders / f"{key.name}.{role.value}-{index}.{word}").unlink()

    def _has_begun(self, key: JobKey, task: TaskState) -> bool:
        begun = len(self.starts(key, task.role, task.index)) > task.restarts
        return task.phase.is_ended or (task.phase is TaskPhase.RUNNING and begun)

    def starts(self, key: JobKey, role: Role, index: int) -> list[int]:
        """The pids of all processes that this task ever was, in order."""
        try:
            lines = (self.orders / f"{key.name}.{role.value}-{index}.lives").read_text().splitlines()
        except FileNotFoundError:
            return []
        return [int(line.split()[0]) for line in lines]

    def close(self) -> None:
        for path in (self.root / "runs").glob("*/run.json"):
            self.keys.append(_key_of(path))
        for key in set(self.keys):
            self.engine.clean_up(key)
        os.environ.pop("STAND_IN", None)


class HostsHarness(LocalHarness):
    """The engine of several machines, whose tasks do what files tell them: the machines see this one's files."""

    def __init__(self, folder: Path, machines: Machines, **options: object) -> None:
        self.orders = folder / "orders"
        self.orders.mkdir(parents=True)
        self.engine = HostsEngine(
            machines.portal,
            machines.file,
            command=[sys.executable, "-S", str(STAND_IN)],
            environment={"STAND_IN": str(self.orders)},
            owner="the tests",
            **options,  # type: ignore[arg-type]
        )
        self.keys: list[JobKey] = []

    def close(self) -> None:
        for placement in self.engine.records.placements():
            self.engine.clean_up(placement.key)
        deadline = time.monotonic() + PATIENCE  # machines that were away have something left
        while self.engine.records.placements() and time.monotonic() < deadline:
            self.engine.capacity()
            time.sleep(0.1)
        self.engine.close()


class InItsPlace(KubernetesEngine):
    """Makes the place of a job's namespace where it is missing, as the portal does between two submissions: again where
    rights in it were given just now, and are not heeded yet."""

    def submit(self, spec: TrainingSpec, key: JobKey, access: TaskAccess) -> None:
        try:
            super().submit(spec, key, access)
        except EngineNamespaceMissing:
            self._make_place(key, access)
            super().submit(spec, key, access)

    def _make_place(self, key: JobKey, access: TaskAccess) -> None:
        for _ in range(100 if self.options.bound_role else 0):
            with contextlib.suppress(Unavailable, Forbidden):
                self.shape(key.namespace_id, Quota(), access.portal_url)
                return
            time.sleep(0.1)
        self.shape(key.namespace_id, Quota(), access.portal_url)


BOUND = {"bound_role": "yardmaster-tasks", "bound_account": "yardmaster/portal"}
"""The options that go with the rights in deploy/kubernetes."""


class KubernetesHarness:
    """The Kubernetes engine on an API server in a thread, with controllers and a kubelet that do as they are told. With
    `bound_role` the portal's account has the rights in deploy/kubernetes there, and no other."""

    def __init__(self, *, watch: bool = False, lives: bool = True, **tasks: object) -> None:
        self.api = KubernetesApi()
        self.api.rights = shipped() if tasks.get("bound_role") else None
        self.cluster = Cluster(self.api.store, lives=lives)
        self.engines: list[KubernetesEngine] = []
        self.tasks = {"image": "tasks:1", **tasks}
        self.engine = self.another_process(watch=watch)

    def another_process(self, *, watch: bool = True, pace: Pace = QUICK) -> KubernetesEngine:
        """An engine as another process of the portal has it, with watches of its own."""
        api = Api(connect_to(self.api.url))
        watching = Watching(api, "yardmaster-", pace)
        self.engines.append(InItsPlace(tasks=self.tasks, api=api, watch=watch, watching=watching))
        return self.engines[-1]

    def as_offered(self) -> dict[str, object]:
        """This cluster's entry in the portal's settings of engines."""
        options = {"tasks": self.tasks, "api": Api(connect_to(self.api.url))}
        return {"class": "yardmaster.engines.kubernetes.KubernetesEngine", "options": options}

    def let_begin(self, key: JobKey) -> None:
        self.cluster.let_begin(key.name)
        wait_until(self.engine, key, lambda seen: all(task.phase is TaskPhase.RUNNING for task in seen.tasks))

    def let_end(self, key: JobKey, role: Role, index: int, exit_code: int) -> None:
        self.cluster.end(key.name, role.value, index, exit_code)

    def let_fail(self, key: JobKey, role: Role, index: int, ending: Ending = FAILED_ONCE) -> None:
        self.cluster.end(key.name, role.value, index, ending.exit_code, message="\n".join(last_words(ending)))

    def make_stubborn(self, key: JobKey, role: Role, index: int) -> None:
        self.cluster.stubborn.add((key.name, role.value, index))

    def close(self) -> None:
        for engine in self.engines:
            engine.close()
        self.cluster.close()
        self.api.close()


def wait_until(
    engine: Engine, key: JobKey, holds: Callable[[Observation], bool], patience: float = PATIENCE
) -> Observation:
    """Observe until `holds`; fail with what was seen last."""
    deadline = time.monotonic() + patience
    while not holds(seen := engine.observe([key])[key]):
        assert time.monotonic() < deadline, f"never came: {seen}"
        time.sleep(0.02)
    return seen


def task_in(seen: Observation, role: Role, index: int) -> TaskState:
    return next(task for task in seen.tasks if (task.role, task.index) == (role, index))


def has_phase(role: Role, index: int, phase: TaskPhase) -> Callable[[Observation], bool]:
    return lambda seen: task_in(seen, role, index).phase is phase


def all_ended(seen: Observation) -> bool:
    return all(task.phase.is_ended for task in seen.tasks)


def _key_of(order: Path) -> JobKey:
    return key_from_json(json.loads(order.read_text())["key"])


def wait_for(holds: Callable[[], bool]) -> None:
    """Of what is not an observation."""
    for _ in range(2000):
        if holds():
            return
        threading.Event().wait(0.01)
    pytest.fail("never came")


def lists_of(harness: KubernetesHarness, deed: Callable[[], object]) -> int:
    """How many lists the deed asks of the server."""
    before = harness.api.count("list")
    deed()
    return harness.api.count("list") - before
