"""Raw objects as an API server shows them, for the tests of what the Kubernetes engine makes of them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from yardmaster.engines.base import Capacity
from yardmaster.engines.kubernetes.capacity.count import Count
from yardmaster.engines.kubernetes.capacity.holdings import held_by, node_as_counted
from yardmaster.engines.kubernetes.observe.facts import Seen, observation_of
from yardmaster.engines.kubernetes.observe.store import slimmed
from yardmaster.engines.kubernetes.render import names
from yardmaster.engines.kubernetes.render.options import TaskOptions
from yardmaster.engines.kubernetes.render.record import RECORD, RunShape
from yardmaster.ids import JobKey
from yardmaster.job.spec import Role, TrainingSpec
from yardmaster.lifecycle.phases import TaskState

OPTIONS = TaskOptions(image="tasks:1")
KEY = JobKey(uuid.UUID(int=1 << 100), uuid.UUID(int=2 << 100), 1)
UID = "the-owner"
BEGUN, ENDED = "2026-11-20T12:00:00Z", "2026-11-20T12:05:00Z"
Raw = dict[str, Any]


def owner(spec: TrainingSpec) -> Raw:
    return {
        "metadata": {"uid": UID, "name": KEY.name},
        "data": {RECORD: RunShape.of(spec).to_json()},
    }


def labels(role: Role) -> dict[str, str]:
    return {**names.labels(KEY), names.ROLE: role.value, names.OWNER: UID}


def workload(role: Role, limit: int = 0, **status: Any) -> Raw:
    metadata = {"name": names.workload_name(KEY, role), "labels": labels(role)}
    return {"metadata": metadata, "spec": {"backoffLimitPerIndex": limit}, "status": status}


def pod(role: Role, index: int, phase: str, failures: int = 0, **status: Any) -> Raw:
    annotations = {} if role is Role.PS else {names.JOB_INDEX: str(index), names.JOB_FAILURES: str(failures)}
    marks = {names.SET_INDEX: str(index)} if role is Role.PS else {}
    name = f"{names.workload_name(KEY, role)}-{index}" + ("" if role is Role.PS else f"-{failures}x")
    metadata = {"name": name, "labels": {**labels(role), **marks}, "annotations": annotations}
    return {"metadata": metadata, "spec": {"nodeName": "node-1"}, "status": {"phase": phase, **status}}


def container(**status: Any) -> list[Raw]:
    return [{"name": names.CONTAINER, "restartCount": 0, **status}]


def terminated(exit_code: int, **more: Any) -> list[Raw]:
    ended = {"exitCode": exit_code, "startedAt": BEGUN, "finishedAt": ENDED, **more}
    return container(state={"terminated": ended})


def event(about: Raw, reason: str, message: str, uid: str = "", at: str = BEGUN) -> Raw:
    """Of an object; with `uid` of the one that had its name then."""
    of = {"name": about["metadata"]["name"], "uid": uid}
    return {"metadata": {"creationTimestamp": BEGUN}, "involvedObject": of, "reason": reason, "message": message,
            "lastTimestamp": at}  # fmt: skip


def states(
    spec: TrainingSpec, *pods: Raw, workloads: list[Raw] | None = None, events: list[Raw] = ()
) -> list[TaskState]:
    """Also checks that what is kept of a watched object says the same as the whole object."""
    made = [workload(role, spec.retries) for role in spec.roles] if workloads is None else workloads
    found = observation_of(Seen(owner(spec), made, pods, events))
    kept = Seen(slimmed(owner(spec)), [slimmed(one) for one in made], [slimmed(one) for one in pods], events)
    assert observation_of(kept) == found
    return list(found.tasks)


def capacity_of(nodes: Iterable[Raw], pods: Iterable[Raw], options: TaskOptions) -> Capacity:
    """Counted once, and nothing before."""
    return Count(options).of(map(node_as_counted, nodes), filter(None, map(held_by, pods)))
