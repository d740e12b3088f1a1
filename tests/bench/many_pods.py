"""What admission of a job of two hundred tasks costs where a thousand nodes have ten thousand pods: the capacity
counted from what the watches told, and a place found for every task. In processor time, without a cluster and
without watches: what they would deliver is put into their store.

Not here: the same with a real API server and its watches (`cluster.placement`).
"""

from __future__ import annotations

import gc
import itertools
import random
import time
import tracemalloc
import uuid
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from tests.bench.lines import Line, interleaved, median
from yardmaster.engines.base import Capacity
from yardmaster.engines.kubernetes import KubernetesEngine
from yardmaster.engines.kubernetes.client.api import Api
from yardmaster.engines.kubernetes.observe.watching import Watching
from yardmaster.engines.kubernetes.render import names
from yardmaster.ids import JobKey
from yardmaster.job.spec import NOTHING, Resources, Role, RoleSpec
from yardmaster.queueing.admission import Candidate, Fit, Ledger, admit
from yardmaster.queueing.ledger import EngineCapacity, Holder
from yardmaster.queueing.placement import Tasks

GI = 1 << 30
NODES, RUNS, TASKS = 1_000, 500, 20
PODS = RUNS * TASKS
ROLES = {Role.WORKER: RoleSpec(196, Resources(1.5, 6 * GI)), Role.PS: RoleSpec(4, Resources(0.5, 2 * GI))}
"""Of the job that is admitted."""
ASKED = sum(one.replicas for one in ROLES.values())
AT_ONCE = 200
"""Pods that have changed since the last look: those of a job of that many tasks."""
ROUNDS = 15
GOAL = 100.0
NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEYS = [JobKey(uuid.UUID(int=1 + at % 20 << 100), uuid.UUID(int=1 + at << 90), 1) for at in range(RUNS)]
SIZES = (("250m", "512Mi"), ("500m", "1Gi"), ("500m", "2Gi"), ("1", "2Gi"), ("1500m", "3Gi"))


def measure() -> Iterable[Line]:
    yield Line("memory for the amounts of a node's pods, for each of 10,000", _kept(), "bytes")
    full, empty = Cluster(RUNS), Cluster(0)
    once = _milliseconds(full.admit)
    crowded, bare = interleaved(full.changed_and_admitted, lambda: _milliseconds(empty.admit), ROUNDS)
    many = f"admission of {ASKED} tasks, {NODES:,} nodes with {PODS:,} pods, {AT_ONCE} changed"
    yield Line(many, median(crowded), "ms",
               at_most=GOAL, note=f"of the processor; median of {ROUNDS}, worst {max(crowded):.0f}")  # fmt: skip
    yield Line("... the first of a process", once, "ms", at_most=GOAL)
    yield Line("... ratio to as many empty nodes", median(crowded) / median(bare), "", note="in turn")
    quiet = [_milliseconds(full.admit) for _ in range(ROUNDS)]
    counted = [_milliseconds(full.engine.capacity) for _ in range(ROUNDS)]
    yield Line("... where nothing has changed", median(quiet), "ms", at_most=GOAL,
               note=f"the capacity counted in {median(counted):.1f} of these")  # fmt: skip


def _milliseconds(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return 1000 * (time.process_time() - begun)


def place(capacity: Capacity, holders: tuple[Holder, ...] = ()) -> None:
    """Places for all tasks of the job, as a pass of the queue looks for them. Raises where it is not admitted."""
    total = sum((one.resources * one.replicas for one in ROLES.values()), NOTHING)
    tasks = tuple(Tasks(role.value, one.resources, one.replicas) for role, one in ROLES.items())
    seen = EngineCapacity(capacity.total, capacity.free, capacity.largest_task, nodes=capacity.nodes)
    one = Candidate(uuid.UUID(int=7), uuid.UUID(int=8), NOW, 0, total, tasks)
    decision = admit(one, [], Ledger(seen, holders=holders), NOW)
    if decision.fit is not Fit.FITS_NOW:
        raise RuntimeError(f"it was not admitted: {decision}")


class AsTold(Watching):
    """The watches of a process, without their streams."""

    def start_capacity(self) -> None:
        pass

    def knows_capacity(self) -> bool:
        return True


class Cluster:
    """An engine that has heard of the nodes, and of the pods of so many runs."""

    def __init__(self, runs: int) -> None:
        api = Api.__new__(Api)  # no request is ever made
        watching = AsTold(api, "yardmaster-")
        self.engine = KubernetesEngine(tasks={"image": "bench"}, api=api, watch=True, watching=watching)
        self._room, self._version = watching.capacity, 1
        self._chance = random.Random(7)
        self._at = [self._chance.randrange(NODES) for _ in range(runs * TASKS)]
        """On which node each pod is. The pods themselves are made when they are told, and not kept: what is measured
        has none of them either."""
        self._holders = tuple(Holder(key.job_id, key.namespace_id, Resources(1, GI)) for key in KEYS[:runs])
        self._room.replace("Node", map(_node, range(NODES)), "1")
        self._room.replace(
            "Pod", itertools.chain(map(_daemon, range(NODES)), map(self._pod, range(len(self._at)))), "1"
        )

    def admit(self) -> None:
        """As a pass of the queue does it, for one job."""
        place(self.engine.capacity(), self._holders)

    def changed_and_admitted(self) -> float:
        """Milliseconds, after some pods have gone to other nodes."""
        for number in self._chance.sample(range(len(self._at)), AT_ONCE):
            self._version += 1
            self._at[number] = self._chance.randrange(NODES)
            self._room.take("Pod", "MODIFIED", self._pod(number))
        return _milliseconds(self.admit)

    def _pod(self, number: int) -> dict[str, Any]:
        return _task(KEYS[number // TASKS], number % TASKS, self._at[number], self._version)


def _node(at: int) -> dict[str, Any]:
    return {
        "metadata": {"name": f"node-{at}", "resourceVersion": "1", "labels": {"kubernetes.io/hostname": f"node-{at}"}},
        "spec": {},
        "status": {
            "allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "95Gi"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _daemon(at: int) -> dict[str, Any]:
    metadata = {"name": f"agent-{at}", "namespace": "kube-system", "ownerReferences": [{"kind": "DaemonSet"}]}
    return _placed(metadata, "100m", "128Mi", at, 1)


def _task(key: JobKey, index: int, at: int, version: int) -> dict[str, Any]:
    role = "ps" if index == 0 else "worker"
    namespace = f"yardmaster-{names.short(key.namespace_id)}"
    labels = {**names.labels(key), names.ROLE: role, names.JOB_INDEX: str(index)}
    metadata = {"name": f"{key.name}-{role}-{index}", "namespace": namespace, "labels": labels,
                "ownerReferences": [{"kind": "Job"}]}  # fmt: skip
    return _placed(metadata, *SIZES[key.job_id.int % len(SIZES) if role == "worker" else 0], at, version)


def _placed(metadata: dict[str, Any], cpu: str, memory: str, at: int, version: int) -> dict[str, Any]:
    asked = {"cpu": cpu, "memory": memory, "ephemeral-storage": "1Gi"}
    return {
        "metadata": {**metadata, "resourceVersion": str(version)},
        "spec": {"nodeName": f"node-{at}", "containers": [{"resources": {"requests": asked, "limits": dict(asked)}}]},
        "status": {"phase": "Running"},
    }


def _kept() -> float:
    """What a process keeps of a pod that is on a node, once the capacity was counted; without the nodes' own share."""
    begun = []
    for runs in (0, 0, RUNS):  # the first only loads what is loaded once
        gc.collect()
        tracemalloc.start()
        cluster = Cluster(runs)
        cluster.engine.capacity()
        gc.collect()
        begun.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        del cluster
    return (begun[2] - begun[1]) / PODS
