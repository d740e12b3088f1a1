"""Ten thousand pods of the portal's runs: what the process that watches them needs, and how soon it hears of one.

The pods are on nodes that only seem to be there, made as the engine makes them but without their controllers, which
would make twenty a second. YARDMASTER_BENCH_PODS says how many, where 10,000 take too long.
"""

from __future__ import annotations

import itertools
import json
import os
import threading
import time
from collections import Counter as Tally
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from kubernetes import client

from tests.bench.bench_portal import BenchPortal
from tests.bench.cluster.ground import TINY, Ground, ground, portal_on
from tests.bench.lines import Line, median
from tests.cluster.fake_nodes import fake_nodes, on_fake_nodes
from tests.cluster.reach import wait_for
from tests.contract.engine_harness import spec_of
from yardmaster.engines.kubernetes import KubernetesEngine
from yardmaster.engines.kubernetes.client.api import Api
from yardmaster.engines.kubernetes.client.connection import connect
from yardmaster.engines.kubernetes.observe.store import KINDS
from yardmaster.engines.kubernetes.render import names
from yardmaster.ids import JobKey, new_id
from yardmaster.job.spec import Role, RoleSpec

PODS, TASKS, NODES = 10_000, 20, 50
RUNS_IN_A_NAMESPACE = 25
AT_ONCE = 6
"""Requests: what the API server of a small machine takes beside its other work."""
CHANGES = 30
AT_REST = 30.0
PATIENCE = 300.0
SPEC = spec_of(roles={Role.WORKER: RoleSpec(TASKS - 1, TINY), Role.PS: RoleSpec(1, TINY)})


def measure() -> Iterable[Line]:
    pods = int(os.environ.get("YARDMASTER_BENCH_PODS", PODS))
    shape = f"{NODES} name=bench cpu=64 memory=256Gi pods={PODS // NODES + 50}"
    with ground() as here, fake_nodes(here.cluster, shape), portal_on(here) as portal:
        yield from _lines(here, portal, pods)


def _lines(here: Ground, portal: BenchPortal, pods: int) -> Iterable[Line]:
    conductor = portal.process("conductor")
    empty = _resident(conductor)
    engine, counter = here.engine(watch=True, **on_fake_nodes())
    ear = Ear(engine)
    with Herd(here, engine, pods) as herd:
        wait_for("all pods to be known", lambda: _known(engine) == pods, PATIENCE)
        less = "" if pods == PODS else f" instead of {PODS}"
        heard = [ear.seconds_until_heard(herd, chosen) for chosen in herd.some(CHANGES)]
        note = f"{CHANGES} changes, worst {1000 * max(heard):.0f}{less}; made in {herd.took:.0f} s"
        yield Line(f"a change of one of {pods} watched pods is heard after", 1000 * median(heard), "ms", note=note)
        streams = Tally(one.resource for one in counter.taken() if one.verb == "watch")
        yield Line("... watches of a process", len(streams), "", at_most=len(KINDS), note=", ".join(sorted(streams)))
        grown = _settled(conductor)
        yield Line("... the conductor's memory", grown, "MB", note=f"{empty:.0f} before there was a pod")
        used = _used(conductor)
        time.sleep(AT_REST)
        share = (_used(conductor) - used) / AT_REST
        yield Line("... the conductor's processors while nothing changes", share, "", note=f"over {AT_REST:g} s")
        again = _begun_again(portal, conductor)
        listed = _settled(again)
        yield Line(
            "... its memory where it began with a list of them", listed, "MB", note=f"at most {_peak(again):.0f}"
        )
    engine.close()


def _known(engine: KubernetesEngine) -> int:
    return sum(
        len(engine._watching.store.view(names.namespace_name(key.namespace_id, engine.options), key.name)["Pod"].found)
        for key in engine._watching.store.runs()
    )


class Ear:
    """Follows an engine's changes as the conductor does."""

    def __init__(self, engine: KubernetesEngine) -> None:
        self._heard: dict[JobKey, float] = {}
        self._changes = engine.changes()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for key in self._changes:
            self._heard[key] = time.monotonic()

    def seconds_until_heard(self, herd: Herd, chosen: tuple[JobKey, str]) -> float:
        """From the moment before the change is asked for."""
        begun = time.monotonic()
        herd.touch(chosen)
        wait_for("the change to be heard", lambda: self._heard.get(chosen[0], 0.0) > begun, 30)
        return self._heard[chosen[0]] - begun


@dataclass
class Herd:
    """Runs whose pods are on fake nodes; a context, at the end of which they are gone."""

    here: Ground
    engine: KubernetesEngine
    pods: int
    took: float = 0.0
    keys: list[JobKey] = field(default_factory=list)

    def __post_init__(self) -> None:
        connection = connect(self.here.cluster.kubeconfig)
        self._api = Api(connection)
        self._core, self._batch = client.CoreV1Api(connection), client.BatchV1Api(connection)
        spaces = [new_id() for _ in range(-(-self.pods // (TASKS * RUNS_IN_A_NAMESPACE)))]
        self.keys = [JobKey(spaces[number // RUNS_IN_A_NAMESPACE], new_id(), 1) for number in range(self.pods // TASKS)]
        self.spaces = [names.namespace_name(one, self.engine.options) for one in spaces]

    def __enter__(self) -> Herd:
        begun = time.monotonic()
        for name in self.spaces:
            self.here.cluster.kubectl("create", "namespace", name)
        for name in self.spaces:
            self.here.cluster.kubectl("wait", "--for=create", "serviceaccount/default", "-n", name, "--timeout=30s")
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(self._make, self.keys, itertools.count()))
        self.took = time.monotonic() - begun
        return self

    def __exit__(self, *_: object) -> None:
        for name in self.spaces:
            self._core.delete_collection_namespaced_pod(name, grace_period_seconds=0)

    def some(self, number: int) -> list[tuple[JobKey, str]]:
        """Pods, each of another run."""
        step = max(1, len(self.keys) // number)
        return [(key, f"{names.workload_name(key, Role.WORKER)}-1-x") for key in self.keys[::step][:number]]

    def touch(self, chosen: tuple[JobKey, str]) -> None:
        key, name = chosen
        space = names.namespace_name(key.namespace_id, self.engine.options)
        self._api.patch("Pod", space, name, {"metadata": {"annotations": {"bench/touched": str(time.time())}}})

    def _make(self, key: JobKey, number: int) -> None:
        """The owner, the Job, and all pods as pods of that Job."""
        owner, *workloads = (one for one in self.engine.preview(SPEC, key) if one["kind"] != "Secret")
        space = owner["metadata"]["namespace"]
        self._core.create_namespaced_config_map(space, _free(owner))
        (job,) = (one for one in workloads if one["kind"] == "Job")
        # No controller takes it for its own.
        self._batch.create_namespaced_job(
            space, {**_free(job), "spec": {**job["spec"], "managedBy": "yardmaster.local/bench"}}
        )
        for index in range(TASKS):
            pod = _pod_of(job, index, f"fake-bench-{(number + index) % NODES}")
            # Its answer is not read: the models of the client would cost more than the request.
            self._core.create_namespaced_pod(space, pod, _preload_content=False).drain_conn()


def _free(manifest: dict[str, Any]) -> dict[str, Any]:
    """Without an owner, which it would not outlive."""
    rest = {name: one for name, one in manifest["metadata"].items() if name != "ownerReferences"}
    return {**manifest, "metadata": rest}


def _pod_of(job: dict[str, Any], index: int, node: str) -> dict[str, Any]:
    template = job["spec"]["template"]
    spec = {name: one for name, one in template["spec"].items() if name != "serviceAccountName"}
    metadata = {
        "name": f"{job['metadata']['name']}-{index}-x",
        "labels": {**template["metadata"]["labels"], names.JOB_INDEX: str(index)},
        "annotations": {names.JOB_INDEX: str(index)},
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**spec, "nodeName": node}}


def _resident(process: psutil.Process) -> float:
    return process.memory_info().rss / 1e6


def _settled(process: psutil.Process) -> float:
    """Its memory, once that has not grown for some seconds."""
    seen = [_resident(process)]
    while len(seen) < 5 or seen[-1] > 1.01 * seen[-5]:
        time.sleep(2)
        seen.append(_resident(process))
    return seen[-1]


def _peak(process: psutil.Process) -> float:
    """The most that it ever had."""
    (line,) = (one for one in Path(f"/proc/{process.pid}/status").read_text().splitlines() if one.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024 / 1e6


def _used(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def _begun_again(portal: BenchPortal, conductor: psutil.Process) -> psutil.Process:
    """As after a crash: `up` starts another."""
    conductor.kill()

    def other() -> psutil.Process | None:
        found = portal.process("conductor")
        return found if found.pid != conductor.pid and found.is_running() else None

    found: psutil.Process = wait_for("the next conductor", lambda: _quietly(other), 60)
    time.sleep(10)
    return found


def _quietly(ask: Any) -> Any:
    """What it says, or nothing while the process is gone and not written down again."""
    try:
        return ask()
    except (psutil.NoSuchProcess, StopIteration, json.JSONDecodeError):
        return None
