"""From what the API server shows of one role of a run to the states of its tasks. Pure.

A task is PENDING as long as its controller will (again) make a pod for it, FAILED when it will not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from yardmaster.engines.kubernetes import names
from yardmaster.engines.kubernetes import podfacts as pods
from yardmaster.engines.kubernetes.placing import (
    NOTHING,
    Hindrance,
    condition,
    has_failed,
    has_written_too_much,
    machine_of,
    moment,
    was_taken_away,
)
from yardmaster.engines.kubernetes.podfacts import Raw
from yardmaster.engines.kubernetes.shape import NEVER, Released, RunShape, Together
from yardmaster.engines.kubernetes.workloads import HOPELESS
from yardmaster.failures import REASONS
from yardmaster.phases import TaskPhase, TaskState
from yardmaster.placing_words import PLACE_MISSING
from yardmaster.restarts import SAME_FAILURE
from yardmaster.spec import Role
from yardmaster.success import STOPPED_OUTSIDE

_NO_ACCOUNT = "error looking up service account"
"""What admission says of a pod whose account is not in the namespace."""
OVERDUE = "The portal was away when its time was over; the cluster ended it."
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
    together: Together = NEVER
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
        return restarts_of_pod(pod) + (self.together.count if self.role is Role.PS else 0)


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
    for pod in sorted(found, key=lambda pod: (_failed_for_good(pod) or _name(pod) in repeated, _age(pod))):
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
                again.add(_name(pod))
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
    return restarts_of_pod(pod), pod["metadata"].get("creationTimestamp") or "", _name(pod)


def _name(pod: Raw) -> str:
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


def released_task(one: RoleSeen, index: int, released: Released) -> TaskState:
    """Ended before: as it was. Still there: as it is. Gone: released."""
    kept = released.tasks.get(index) or TaskState(one.role, index, TaskPhase.PENDING)
    pod = one.pods.get(index)
    if kept.phase.is_ended:
        return kept
    phase = (pod or {}).get("status", {}).get("phase", "Pending")
    if pod is not None and phase not in OVER:
        living = TaskPhase.PENDING if phase == "Pending" else TaskPhase.RUNNING
        return replace(kept, phase=living, started_at=_started(pod) or kept.started_at)
    return replace(kept, phase=TaskPhase.RELEASED, reason="", message="", exit_code=None, finished_at=released.at)


def task_of(one: RoleSeen, index: int) -> TaskState:
    pod = one.pods.get(index)
    if pod is None:
        return _without_pod(one, index)
    node = pod.get("spec", {}).get("nodeName") or ""
    state = TaskState(one.role, index, TaskPhase.PENDING, restarts=one.restarts_of(pod), node=node)
    phase = pod.get("status", {}).get("phase") or "Pending"
    if _is_removed(one, pod, phase):
        return replace(state, phase=TaskPhase.FAILED, reason=STOPPED_OUTSIDE)
    if phase == "Pending":
        before = pods.wrote_too_much_before(_events_of(one, pod, earlier=True)) if one.role is Role.PS else NOTHING
        if before.reason:  # a set's pods have one name: this one takes the place of that
            return replace(state, phase=TaskPhase.FAILED, reason=before.reason, message=before.message)
        why = pods.hindrance_of(pod, _events_of(one, pod))
        phase_now = TaskPhase.FAILED if _is_permanent(why.reason) else TaskPhase.PENDING
        return replace(state, phase=phase_now, reason=why.reason, message=why.message)
    if phase == "Succeeded":
        ending = pods.ending_of_container(_terminated(pod), one.memory)
        done = replace(state, phase=TaskPhase.SUCCEEDED, exit_code=0)
        return replace(done, started_at=ending.started_at, finished_at=ending.finished_at)
    return _failed_pod(one, pod, state) if phase == "Failed" else _living_pod(one, pod, state)


def _is_removed(one: RoleSeen, pod: Raw, phase: str) -> bool:
    """Whether its workload was deleted, which takes the pod along: how that ends says nothing of the task."""
    if one.workload is not None or was_taken_away(pod):
        return False
    return pods.ended_by_removal(pod, surely=phase == "Succeeded")


def _failed_pod(one: RoleSeen, pod: Raw, state: TaskState) -> TaskState:
    """FAILED where its controller makes no other; else PENDING, with what happened."""
    ending = pods.ending_of(pod, one.memory)
    if one.is_overdue and pods.is_ending(pod):
        overdue = replace(state, phase=TaskPhase.FAILED, reason="DeadlineExceeded", message=OVERDUE)
        return replace(overdue, started_at=ending.started_at, finished_at=ending.finished_at)
    reason = SAME_FAILURE if _name(pod) in one.repeated else ending.why.reason
    why = replace(state, reason=reason, message=ending.why.message)
    if not one.is_over and not was_taken_away(pod) and pods.ended_by_removal(pod):
        why = replace(state, reason=STOPPED_OUTSIDE, message="Its pod was deleted.")
    if one.workload is not None and _comes_again(one, pod, state.index, ending.exit_code):
        if pod["metadata"].get("uid") in one.together.stale:
            why = replace(state, message="It starts again together with the others.")
        return replace(why, restarts=state.restarts + 1)
    return _for_good(why, ending)


def _for_good(why: TaskState, ending: pods.Ending) -> TaskState:
    failed = replace(why, phase=TaskPhase.FAILED, exit_code=ending.exit_code)
    return replace(failed, started_at=ending.started_at, finished_at=ending.finished_at)


def _comes_again(one: RoleSeen, pod: Raw, index: int, exit_code: int | None) -> bool:
    """Whether its controller makes another, and that one counts."""
    if has_written_too_much(pod):
        return False
    if one.role is Role.PS:  # its set makes another, whatever it failed of
        return True
    if one.is_over or _name(pod) in one.repeated or index in one.failed:
        return False
    return was_taken_away(pod) or not (exit_code in HOPELESS or _failed_for_good(pod) or _is_spent(one, pod, index))


def _is_spent(one: RoleSeen, pod: Raw, index: int) -> bool:
    """The job's restarts are spent, or its Job makes no more of this index: its own limit is the same number."""
    return index in one.exhausted or failures_of_pod(pod) >= one.shape.retries


def _failed_for_good(pod: Raw) -> bool:
    """Whether it failed of what no restart can mend. Its Job does not know that, and may make another all the same."""
    return has_failed(pod) and _is_permanent(pods.ending_of(pod, 0).why.reason)


def _is_permanent(reason: str) -> bool:
    return reason in REASONS and REASONS[reason].permanent


def failures_of_pod(pod: Raw) -> int:
    return int((pod["metadata"].get("annotations") or {}).get(names.JOB_FAILURES) or 0)


def _living_pod(one: RoleSeen, pod: Raw, state: TaskState) -> TaskState:
    """Running, or between two starts of its container. What has been started too often has failed: the kubelet would
    go on for ever."""
    status = pods.container_status(pod)
    last = status.get("lastState", {}).get("terminated") or {}
    ending = pods.ending_of_container(last, one.memory)
    running = status.get("state", {}).get("running")
    why = replace(state, reason=ending.why.reason, message=ending.why.message)
    if last and ending.exit_code != 0 and (_is_permanent(ending.why.reason) or state.index in one.exhausted):
        return _for_good(why, ending)
    if running is None and status.get("state", {}).get("waiting"):
        return why
    machine = NOTHING if pod["metadata"].get("uid") in one.together.stale else machine_of(pod)
    running_now = replace(state, phase=TaskPhase.RUNNING, started_at=_started(pod))
    return replace(running_now, reason=machine.reason, message=machine.message)


def _without_pod(one: RoleSeen, index: int) -> TaskState:
    """Not made yet, or refused; or its end was noted by its Job; or it was removed from outside."""
    state = TaskState(one.role, index, TaskPhase.PENDING)
    if one.workload is None:
        return replace(state, phase=TaskPhase.FAILED, reason=STOPPED_OUTSIDE)
    if index in one.completed:
        return replace(state, phase=TaskPhase.SUCCEEDED, exit_code=0)
    if index in one.failed or one.is_over:
        reason, message = ("DeadlineExceeded", OVERDUE) if one.is_overdue else ("Lost", "Its pod was removed.")
        return replace(state, phase=TaskPhase.FAILED, reason=reason, message=message)
    why = _refused(_events_of(one, one.workload))
    return replace(state, reason=why.reason, message=why.message)


def _refused(events: Iterable[Raw]) -> Hindrance:
    """Why a controller could not make pods."""
    for event in events:
        if event.get("reason") == "FailedCreate":
            message = str(event.get("message", ""))[:1000]
            if "exceeded quota" in message:
                return Hindrance("QuotaRefused", message)
            return Hindrance(PLACE_MISSING if _NO_ACCOUNT in message else "StartFailed", message)
    return NOTHING


def _events_of(one: RoleSeen, found: Raw, *, earlier: bool = False) -> tuple[Raw, ...]:
    """The events about this object, newest first; with `earlier` also those about one that had its name before."""
    uid = found["metadata"].get("uid", "")
    about = [(event, event.get("involvedObject") or {}) for event in one.events]
    named = [(event, of.get("uid", "")) for event, of in about if of.get("name") == _name(found)]
    mine = [event for event, of in named if earlier or of in ("", uid)]
    return tuple(sorted(mine, key=_event_time, reverse=True))


def _event_time(event: Raw) -> str:
    times: list[Any] = [event.get("lastTimestamp"), event.get("eventTime"), event["metadata"].get("creationTimestamp")]
    return str(next((one for one in times if one), ""))


def _terminated(pod: Raw) -> Raw:
    return pods.container_status(pod).get("state", {}).get("terminated") or {}


def _started(pod: Raw) -> Any:
    """When its container began: also of one that has ended a moment ago, which its pod does not say yet."""
    state = pods.container_status(pod).get("state", {})
    begun = state.get("running") or state.get("terminated") or {}
    return moment(begun.get("startedAt") or pod.get("status", {}).get("startTime"))
