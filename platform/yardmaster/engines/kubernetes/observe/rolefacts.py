"""From what the API server shows of one role of a run to the states of its tasks. Pure.

A task is PENDING as long as its controller will (again) make a pod for it, FAILED when it will not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from yardmaster.engines.kubernetes.client.objects import Raw, is_ending, moment, newest_first
from yardmaster.engines.kubernetes.observe import podfacts as pods
from yardmaster.engines.kubernetes.observe.placing import (
    NOTHING,
    Cause,
    has_written_too_much,
    machine_of,
    was_taken_away,
)
from yardmaster.engines.kubernetes.observe.roles import (
    OVER,
    RoleSeen,
    failed_for_good,
    failures_of_pod,
    is_permanent,
    name_of,
)
from yardmaster.engines.kubernetes.render import names
from yardmaster.engines.kubernetes.render.manifests import HOPELESS
from yardmaster.engines.kubernetes.render.record import Released
from yardmaster.engines.kubernetes.render.volumes import claim_name, is_of_claim
from yardmaster.job.spec import Role
from yardmaster.job.volumes import VolumeKind
from yardmaster.lifecycle.phases import TaskPhase, TaskState
from yardmaster.lifecycle.placing_words import NAMESPACE_INCOMPLETE
from yardmaster.lifecycle.restarts import SAME_FAILURE
from yardmaster.lifecycle.success import STOPPED_OUTSIDE

_NO_ACCOUNT = "error looking up service account"
"""What admission says of a pod whose account is not in the namespace."""
OVERDUE = "The cluster enforced the time limit while the portal was unavailable."


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
        why = pods.hindrance_of(pod, _events_of(one, pod), _events_of_claims(one, pod))
        phase_now = TaskPhase.FAILED if is_permanent(why.reason) else TaskPhase.PENDING
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
    if one.is_overdue and is_ending(pod):
        overdue = replace(state, phase=TaskPhase.FAILED, reason="DeadlineExceeded", message=OVERDUE)
        return replace(overdue, started_at=ending.started_at, finished_at=ending.finished_at)
    reason = SAME_FAILURE if name_of(pod) in one.repeated else ending.why.reason
    why = replace(state, reason=reason, message=ending.why.message)
    if not one.is_over and not was_taken_away(pod) and pods.ended_by_removal(pod):
        why = replace(state, reason=STOPPED_OUTSIDE, message="Its pod was deleted.")
    if one.workload is not None and _comes_again(one, pod, state.index, ending.exit_code):
        if pod["metadata"].get("uid") in one.gang_restarts.stale:
            why = replace(state, message="It restarts together with the other tasks.")
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
    if one.is_over or name_of(pod) in one.repeated or index in one.failed:
        return False
    return was_taken_away(pod) or not (exit_code in HOPELESS or failed_for_good(pod) or _is_spent(one, pod, index))


def _is_spent(one: RoleSeen, pod: Raw, index: int) -> bool:
    """No restarts are left, or its Job makes no more of this index: its own limit is the same number."""
    return index in one.exhausted or failures_of_pod(pod) >= one.shape.retries


def _living_pod(one: RoleSeen, pod: Raw, state: TaskState) -> TaskState:
    """Running, or between two starts of its container. What has been started too often has failed: the kubelet would
    continue for ever."""
    status = pods.container_status(pod)
    last = status.get("lastState", {}).get("terminated") or {}
    ending = pods.ending_of_container(last, one.memory, pod)
    running = status.get("state", {}).get("running")
    why = replace(state, reason=ending.why.reason, message=ending.why.message)
    if last and ending.exit_code != 0 and (is_permanent(ending.why.reason) or state.index in one.exhausted):
        return _for_good(why, ending)
    if running is None and status.get("state", {}).get("waiting"):
        return why
    machine = NOTHING if pod["metadata"].get("uid") in one.gang_restarts.stale else machine_of(pod)
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


def _refused(events: Iterable[Raw]) -> Cause:
    """Why a controller could not make pods."""
    for event in events:
        if event.get("reason") == "FailedCreate":
            message = str(event.get("message", ""))[:1000]
            if "exceeded quota" in message:
                return Cause("QuotaRefused", message)
            return Cause(NAMESPACE_INCOMPLETE if _NO_ACCOUNT in message else "StartFailed", message)
    return NOTHING


def _events_of(one: RoleSeen, found: Raw, *, earlier: bool = False) -> tuple[Raw, ...]:
    """The events about this object, newest first; with `earlier` also those about one that had its name before."""
    uid = found["metadata"].get("uid", "")
    about = [(event, event.get("involvedObject") or {}) for event in one.events]
    named = [(event, of.get("uid", "")) for event, of in about if of.get("name") == name_of(found)]
    mine = [event for event, of in named if earlier or of in ("", uid)]
    return newest_first(mine)


def _events_of_claims(one: RoleSeen, pod: Raw) -> tuple[Raw, ...]:
    """The events about the home that the pod mounts, else about the volumes of the namespace, newest first."""
    home = (pod["metadata"].get("labels") or {}).get(names.HOME)
    wanted = {home} if home else {claim_name(kind) for kind in VolumeKind}
    return newest_first(
        event for event in one.events if is_of_claim(event) and event["involvedObject"].get("name") in wanted
    )


def _terminated(pod: Raw) -> Raw:
    return pods.container_status(pod).get("state", {}).get("terminated") or {}


def _started(pod: Raw) -> Any:
    """When its container began: also of one that has ended a moment ago, which its pod does not say yet."""
    state = pods.container_status(pod).get("state", {})
    begun = state.get("running") or state.get("terminated") or {}
    return moment(begun.get("startedAt") or pod.get("status", {}).get("startTime"))
