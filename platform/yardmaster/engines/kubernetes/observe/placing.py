"""What the cluster says of a pod that it has not placed, or takes from its machine, in the words of `failures`. Pure.
The one place for the words of schedulers, autoscalers, drains and evictions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from yardmaster.engines.kubernetes.client.objects import Raw, condition, moment
from yardmaster.engines.kubernetes.render.volumes import event_words, why_pending
from yardmaster.lifecycle.placing_words import NODE_DRAINED, NODE_NOT_READY, SCALING_UP, VOLUME_PENDING
from yardmaster.lifecycle.success import UNSCHEDULABLE

GROWTH_EVENTS = ("TriggeredScaleUp", "NotTriggerScaleUp", "Nominated")
"""Reasons of events by which autoscalers (of the cluster, Karpenter) say of a pod whether they add a node for it."""
_NO_GROWTH = "NotTriggerScaleUp"
_TAKEN_AWAY = {
    "PreemptionByScheduler": "It was preempted by a task of higher priority.",
    "DeletionByTaintManager": "Its node was cordoned.",
    "EvictionByEvictionAPI": "Its node is being drained.",
    "DeletionByPodGC": "Its node was removed.",
    "TerminationByKubelet": "Its node ran short of memory, disk or processes, or was shut down.",
}
NODE_SAYS = frozenset({"Evicted", "Preempting", "Terminated", "NodeShutdown", "NodeLost", "Shutdown"})
"""Reasons of a pod's status by which its node says that it ended the pod."""
TOO_MUCH_WRITTEN = re.compile(
    r"ephemeral local storage usage exceeds|exceeded its local ephemeral storage limit|Usage of EmptyDir volume"
)
"""The kubelet's words (`pkg/kubelet/eviction/helpers.go`) where a pod has passed its own limits of disk."""
DISK_IS_FULL = re.compile(r"low on resource: (?:ephemeral-storage|inodes)|had condition: \[[^]]*DiskPressure")
"""The same where the node's disk is full, whatever filled it."""
_MEANING = (
    ("were unschedulable", "An unschedulable node is cordoned or being drained: it takes no new tasks."),
    ("node.kubernetes.io/not-ready", "A node that is not ready takes no tasks."),
    ("node.kubernetes.io/unreachable", "A node that does not answer takes no tasks."),
)
_NO_VOLUME = re.compile(r"persistentvolumeclaim|persistent volumes to bind", re.IGNORECASE)
"""The scheduler's words where a claim of the pod has no volume, or is not there."""
_LONGEST_MESSAGE = 2000


@dataclass(frozen=True)
class Cause:
    """Why a task does not begin, or has ended badly. `reason` is a word of `failures`, or empty."""

    reason: str = ""
    message: str = ""


NOTHING = Cause()


def has_written_too_much(pod: Raw) -> bool:
    """Whether its node evicted it because it wrote more to the disk than it may."""
    status = pod.get("status", {})
    return status.get("reason") in NODE_SAYS and bool(TOO_MUCH_WRITTEN.search(status.get("message") or ""))


def was_taken_away(pod: Raw) -> bool:
    """Whether the cluster ended it for its own reasons, which costs the job no restart. What it wrote beyond its limit
    is no such reason."""
    return condition(pod, "DisruptionTarget").get("status") == "True" and not has_written_too_much(pod)


def has_failed(pod: Raw) -> bool:
    """Whether it failed, and not because the cluster took it away."""
    return pod.get("status", {}).get("phase") == "Failed" and not was_taken_away(pod)


def placing_of(pod: Raw, events: Sequence[Raw], claims: Sequence[Raw] = ()) -> Cause:
    """Of a pod without a node: why the scheduler has none for it, and whether there is one to come. `events` are those
    about the pod, newest first, and `claims` those about the volumes of its namespace."""
    scheduled = condition(pod, "PodScheduled")
    if scheduled.get("status") != "False":
        return _volume_to_come(pod, claims)
    said = short(scheduled.get("message", ""))
    if _NO_VOLUME.search(said):
        return Cause(VOLUME_PENDING, f"{said} {why_pending(claims)}" if claims else said)
    node = pod["status"].get("nominatedNodeName")
    if node:
        return Cause(SCALING_UP, f"Tasks of lower priority are evicted from {node} for it. {said}".strip())
    grown = next((one for one in events if one.get("reason") in GROWTH_EVENTS), None)
    words = "" if grown is None else short(str(grown.get("message", "")))
    if grown is not None and grown["reason"] != _NO_GROWTH:
        return Cause(SCALING_UP, f"The cluster is adding a machine: {words}")
    meant = [meaning for tell_tale, meaning in _MEANING if tell_tale in said]
    if grown is not None:
        meant.append(f"The cluster adds no machine: {words}")
    return Cause(UNSCHEDULABLE, " ".join((said, *meant)) if said else " ".join(meant))


def _volume_to_come(pod: Raw, claims: Sequence[Raw]) -> Cause:
    """Some classes make a volume when the scheduler has chosen a node, and until then nothing is said of the pod."""
    has_node = condition(pod, "PodScheduled") or pod.get("spec", {}).get("nodeName")
    failed = None if has_node else next((one for one in claims if one.get("type") == "Warning"), None)
    return NOTHING if failed is None else Cause(VOLUME_PENDING, event_words(failed))


def refused_since(pod: Raw) -> datetime | None:
    """Since when the scheduler has had no node for the pod; None where it has, or where the pod is held back on purpose
    (`schedulingGates`)."""
    scheduled = condition(pod, "PodScheduled")
    if scheduled.get("status") != "False" or scheduled.get("reason") == "SchedulingGated":
        return None
    return moment(scheduled.get("lastTransitionTime") or pod["metadata"].get("creationTimestamp"))


def machine_of(pod: Raw) -> Cause:
    """What becomes of a living pod's machine: it is being emptied, or does not answer. A cordoned machine, on which it
    continues, is no trouble."""
    node = pod.get("spec", {}).get("nodeName") or "its node"
    if was_taken_away(pod):
        why = condition(pod, "DisruptionTarget").get("reason", "")
        is_drained = why == "EvictionByEvictionAPI"
        return Cause(NODE_DRAINED if is_drained else "Evicted", f"It is being evicted from {node}. {taken_words(pod)}")
    # Nothing looks whether a task is ready, so that it is as soon as its container runs: the cluster alone takes that
    # back, when the node has not been heard of, and leaves the word of the containers as it was.
    is_ready, containers = (condition(pod, kind).get("status") for kind in ("Ready", "ContainersReady"))
    if (is_ready == "False" and containers == "True") or pod["status"].get("phase") == "Unknown":
        return Cause(NODE_NOT_READY, f"The machine {node} is not ready, or does not answer.")
    return NOTHING


def taken_words(pod: Raw) -> str:
    """Why the cluster takes the pod away, where it says."""
    return _TAKEN_AWAY.get(condition(pod, "DisruptionTarget").get("reason", ""), "")


def short(text: str) -> str:
    return text[:_LONGEST_MESSAGE]
