"""What the API server shows of one role of a run, sorted: its workload, and of its pods the newest of each task and
those that failed. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from yardmaster.engines.kubernetes.client.objects import Raw, condition
from yardmaster.engines.kubernetes.observe import podfacts as pods
from yardmaster.engines.kubernetes.observe.placing import (
    has_failed,
)
from yardmaster.engines.kubernetes.render import names
from yardmaster.engines.kubernetes.render.record import NEVER, GangRestarts, RunShape
from yardmaster.job.spec import Role
from yardmaster.lifecycle.failures import REASONS
from yardmaster.lifecycle.restarts import SAME_FAILURE

OVER = ("Succeeded", "Failed")
"""The phases of pods that have ended."""


def lives(pod: Mapping[str, Any]) -> bool:
    """Whether its containers have not ended, as far as the API server knows."""
    return (pod.get("status") or {}).get("phase") not in OVER


@dataclass(frozen=True)
class RoleSeen:
    """One role of one run, sorted for the questions that are asked of it."""

    role: Role
    shape: RunShape
    workload: Raw | None
    pods: Mapping[int, Raw]
    events: tuple[Raw, ...]
    gang_restarts: GangRestarts = NEVER
    repeated: frozenset[str] = frozenset()
    """The names of its pods that failed the same way as their task had before (`repeated_in`)."""
    failed_pods: Mapping[int, tuple[Raw, ...]] = field(default_factory=dict)
    """Of its pods that failed by themselves, those that are still there, by index, the last one last."""
    exhausted: frozenset[int] = frozenset()
    """The indexes of its tasks that failed when the job had no restart left (`budget`)."""
    failed: frozenset[int] = field(init=False)
    completed: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        status = (self.workload or {}).get("status", {})
        object.__setattr__(self, "failed", indexes(status.get("failedIndexes", "")))
        object.__setattr__(self, "completed", indexes(status.get("completedIndexes", "")))

    @property
    def memory(self) -> int:
        return self.shape.roles[self.role].memory

    @property
    def is_over(self) -> bool:
        """Whether its controller makes no more pods."""
        found = self.workload or {}
        return any(condition(found, kind).get("status") == "True" for kind in ("Failed", "Complete"))

    @property
    def is_overdue(self) -> bool:
        """Whether the cluster ends it, as its time was over and the portal did not (`activeDeadlineSeconds`): a Job
        says so first (`FailureTarget`), then its pods go, and then it has failed."""
        found = (condition(self.workload or {}, kind) for kind in ("Failed", "FailureTarget"))
        return any(one.get("reason") == "DeadlineExceeded" for one in found)

    def indexes(self) -> range:
        return range(self.shape.roles[self.role].replicas)

    def restarts_of(self, pod: Raw) -> int:
        """How often the task that is this pod now was started before."""
        return restarts_of_pod(pod) + (self.gang_restarts.count if self.role is Role.PS else 0)


def indexes(text: str) -> frozenset[int]:
    """`0,2-4` as a Job's status writes it."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def newest_of(found: Iterable[Raw], repeated: Collection[str] = ()) -> dict[int, Any]:
    """Of the pods of one role, the last of each index; of those that failed for good, whatever was made after them."""
    newest: dict[int, Any] = {}
    for pod in sorted(found, key=lambda pod: (failed_for_good(pod) or name_of(pod) in repeated, _age(pod))):
        index = _index_of(pod)
        if index is not None:
            newest[index] = pod
    return newest


def repeated_in(failed: Mapping[int, tuple[Raw, ...]]) -> frozenset[str]:
    """Of the pods that failed (`failed_in`), the names of those that did so the same way as their task had before,
    without a step of progress in between. A set's pod shows only its last failure, so that it is never among them."""
    again = set()
    for some in failed.values():
        traces = [pods.ending_of(pod, 0).trace for pod in some]
        for pod, trace, earlier in zip(some[1:], traces[1:], traces, strict=False):
            if trace.reason_after(earlier, "") == SAME_FAILURE:
                again.add(name_of(pod))
    return frozenset(again)


def failed_in(found: Iterable[Raw]) -> dict[int, tuple[Raw, ...]]:
    """Of the pods of one role, those that failed by themselves, by index, the last one last."""
    failed: dict[int, tuple[Raw, ...]] = {}
    for pod in sorted(found, key=_age):
        index = _index_of(pod)
        if index is not None and has_failed(pod):
            failed[index] = (*failed.get(index, ()), pod)
    return failed


def _age(pod: Raw) -> tuple[int, str, str]:
    """Later pods of an index sort later, also those of the same second."""
    return restarts_of_pod(pod), pod["metadata"].get("creationTimestamp") or "", name_of(pod)


def name_of(pod: Raw) -> str:
    return str(pod["metadata"]["name"])


def _index_of(pod: Raw) -> int | None:
    metadata = pod["metadata"]
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    text = annotations.get(names.JOB_INDEX) or labels.get(names.SET_INDEX) or metadata["name"].rpartition("-")[2]
    return int(text) if text.isdigit() else None


def restarts_of_pod(pod: Raw) -> int:
    """How often its task was started before: by its Job, which counts, or by the kubelet within the pod."""
    annotations = pod["metadata"].get("annotations") or {}
    made = sum(int(annotations.get(one) or 0) for one in (names.JOB_FAILURES, names.JOB_IGNORED_FAILURES))
    return made + int(pods.container_status(pod).get("restartCount") or 0)


def failed_for_good(pod: Raw) -> bool:
    """Whether it failed of what no restart can mend. Its Job does not know that, and may make another all the same."""
    return has_failed(pod) and is_permanent(pods.ending_of(pod, 0).why.reason)


def is_permanent(reason: str) -> bool:
    return reason in REASONS and REASONS[reason].permanent


def failures_of_pod(pod: Raw) -> int:
    return int((pod["metadata"].get("annotations") or {}).get(names.JOB_FAILURES) or 0)
