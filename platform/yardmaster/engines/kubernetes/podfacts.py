"""What one pod says about its task, in the vocabulary of `failures`. Pure: raw JSON in, values out.

Not here: whether a failed pod is made anew, and what no pod at all means (`facts`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from yardmaster.engines.kubernetes import names
from yardmaster.failures import REASONS, reason_of_exit
from yardmaster.quantity import format_bytes
from yardmaster.restarts import NO_TRACE, Trace

Raw = Mapping[str, Any]

_LONGEST_MESSAGE = 2000
_NOTE = re.compile(r"^yardmaster-runner: ([A-Za-z]+): (.*)\Z", re.MULTILINE | re.DOTALL)
"""The runner's last words on its stderr, which end the container's output."""
_SIGNATURE = re.compile(r"^yardmaster-runner: signature (\w{1,64}), reached (\d{1,18})$", re.MULTILINE)
"""What it says before those of a failure that can be compared with another."""
_IMAGE = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "ImageInspectError",
        "RegistryUnavailable",
    }
)
_START = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "PreCreateHookError"})
_BEFORE_ITS_BEGIN = frozenset({"FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox", "DNSConfigForming"})
_PASSING = re.compile(r"failed to sync (?:secret|configmap) cache")
"""A busy node says this of a new pod, and tries again half a second later. The event outlives that by an hour."""
_TAKEN_AWAY = {
    "PreemptionByScheduler": "It made room for a task of higher priority.",
    "DeletionByTaintManager": "Its node was marked as not to be used.",
    "EvictionByEvictionAPI": "Its node is being emptied.",
    "DeletionByPodGC": "Its node is gone.",
    "TerminationByKubelet": "Its node ran short of memory, disk or processes, or was shut down.",
}
_TOO_MUCH_WRITTEN = re.compile(
    r"ephemeral local storage usage exceeds|exceeded its local ephemeral storage limit|Usage of EmptyDir volume"
)
"""The kubelet's words (`pkg/kubelet/eviction/helpers.go`) where a pod has passed its own limits of disk."""
_DISK_IS_FULL = re.compile(r"low on resource: (?:ephemeral-storage|inodes)|had condition: \[[^]]*DiskPressure")
"""The same where the node's disk is full, whoever filled it."""
_NODE_SAYS = frozenset({"Evicted", "Preempting", "Terminated", "NodeShutdown", "NodeLost", "Shutdown"})
_NO_NAME = ("name or service not known", "temporary failure in name resolution", "no address associated with hostname")


@dataclass(frozen=True)
class Hindrance:
    """Why a task does not begin, or has ended badly. `reason` is a word of `failures`, or empty."""

    reason: str = ""
    message: str = ""


NOTHING = Hindrance()


@dataclass(frozen=True)
class Ending:
    """How a container's life ended."""

    exit_code: int | None
    why: Hindrance
    started_at: datetime | None = None
    finished_at: datetime | None = None
    trace: Trace = NO_TRACE


def container_status(pod: Raw, kind: str = "containerStatuses", name: str = names.CONTAINER) -> Raw:
    found = pod.get("status", {}).get(kind) or ()
    return next((one for one in found if one.get("name") == name), {})


def hindrance_of(pod: Raw, events: tuple[Raw, ...] = ()) -> Hindrance:
    """Why a pod that has not begun has not: its container's, its image's, the scheduler's or its node's word."""
    for kind, name in (("initContainerStatuses", "runner"), ("containerStatuses", names.CONTAINER)):
        waiting = container_status(pod, kind, name).get("state", {}).get("waiting") or {}
        word, message = waiting.get("reason", ""), _short(waiting.get("message", ""))
        if word in _IMAGE:
            return Hindrance("ImagePull", message)
        if word in _START:
            return Hindrance("StartFailed", f"{word}: {message}")
    scheduled = condition(pod, "PodScheduled")
    if scheduled.get("status") == "False":
        return Hindrance("Unschedulable", _short(scheduled.get("message", "")))
    if condition(pod, "PodReadyToStartContainers").get("status") == "True":
        return NOTHING  # what its events say of volumes and network has been overcome
    for event in events:
        message = event.get("message", "")
        if event.get("reason") in _BEFORE_ITS_BEGIN and not _PASSING.search(message):
            return Hindrance("StartFailed", _short(f"{event['reason']}: {message}"))
    return NOTHING


def was_taken_away(pod: Raw) -> bool:
    """Whether the cluster ended it for its own reasons, which costs the job no restart. What it wrote beyond its limit
    is no such reason."""
    return condition(pod, "DisruptionTarget").get("status") == "True" and not has_written_too_much(pod)


def has_written_too_much(pod: Raw) -> bool:
    """Whether its node evicted it because it wrote more to the disk than it may."""
    status = pod.get("status", {})
    return status.get("reason") in _NODE_SAYS and bool(_TOO_MUCH_WRITTEN.search(status.get("message") or ""))


def wrote_too_much_before(events: tuple[Raw, ...]) -> Hindrance:
    """What its node said of an earlier pod of the same name that wrote too much; nothing where none did."""
    said = (str(one.get("message", "")).strip() for one in events if one.get("reason") == "Evicted")
    found = next((message for message in said if _TOO_MUCH_WRITTEN.search(message)), "")
    return Hindrance("ScratchExceeded", _short(found)) if found else NOTHING


def ending_of(pod: Raw, memory_limit: int) -> Ending:
    """Of a pod whose phase is Failed."""
    terminated = container_status(pod).get("state", {}).get("terminated") or {}
    ending = ending_of_container(terminated, memory_limit)
    if was_taken_away(pod) or pod["status"].get("reason") in _NODE_SAYS:
        return Ending(ending.exit_code, _taken_away(pod), ending.started_at, ending.finished_at)
    if not terminated:
        status = pod["status"]
        message = _short(f"{status.get('reason', '')}: {status.get('message', '')}".strip(": "))
        return Ending(None, Hindrance("StartFailed" if message else "Lost", message))
    return ending


def ending_of_container(terminated: Raw, memory_limit: int) -> Ending:
    """From a container's `terminated` state; empty: nothing is known of how it ended."""
    if not terminated:
        return Ending(None, NOTHING)
    code = terminated.get("exitCode")
    times = (moment(terminated.get("startedAt")), moment(terminated.get("finishedAt")))
    if terminated.get("reason") == "OOMKilled":
        return Ending(code, Hindrance("OutOfMemory", f"Its limit is {format_bytes(memory_limit)}."), *times)
    if code == 0:
        return Ending(0, NOTHING, *times)
    if terminated.get("reason") in ("StartError", "ContainerCannotRun"):
        return Ending(code, Hindrance("StartFailed", _short(terminated.get("message", ""))), *times)
    output = terminated.get("message") or ""
    return Ending(code, _last_words(code, output), *times, _trace_in(output))


def condition(found: Raw, kind: str) -> Raw:
    """The condition of this type, of any object; empty where it has none."""
    return next((one for one in found.get("status", {}).get("conditions") or () if one.get("type") == kind), {})


def is_ending(live: Raw) -> bool:
    """Whether somebody has told it to go."""
    return "deletionTimestamp" in live["metadata"]


def moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _last_words(code: int | None, output: str) -> Hindrance:
    """What the runner said, where it came so far; else the end of what the container printed."""
    found = _NOTE.search(output)
    if found is None or found[1] not in REASONS:
        return Hindrance(reason_of_exit(code), _short(output.strip()[-300:]))
    message = _short(found[2].strip())
    if any(words in message.lower() for words in _NO_NAME):
        message += " The cluster's DNS does not know that name."
    return Hindrance(found[1], message)


def _trace_in(output: str) -> Trace:
    found = _SIGNATURE.search(output)
    return NO_TRACE if found is None else Trace(found[1], int(found[2]))


def _taken_away(pod: Raw) -> Hindrance:
    target = condition(pod, "DisruptionTarget")
    words = _TAKEN_AWAY.get(target.get("reason", ""), "")
    said = str(pod["status"].get("message") or target.get("message") or "").strip()
    if has_written_too_much(pod):
        return Hindrance("ScratchExceeded", _short(said))
    reason = "MachineDiskFull" if _DISK_IS_FULL.search(said) else "Evicted"
    return Hindrance(reason, _short(f"{words} {said}".strip()))


def _short(text: str) -> str:
    return text[:_LONGEST_MESSAGE]
