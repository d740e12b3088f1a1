"""What one pod says about its task, in the vocabulary of `failures`. Pure: raw JSON in, values out.

Not here: whether a failed pod is made again, and what no pod at all means (`facts`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from yardmaster.engines.kubernetes.client.objects import Raw, condition, is_ending, moment
from yardmaster.engines.kubernetes.observe.imagefacts import PULL_WORDS, is_for_others, start_failure, why_not_pulled
from yardmaster.engines.kubernetes.observe.placing import (
    DISK_IS_FULL,
    NODE_SAYS,
    NOTHING,
    TOO_MUCH_WRITTEN,
    Cause,
    has_written_too_much,
    placing_of,
    short,
    taken_words,
    was_taken_away,
)
from yardmaster.engines.kubernetes.render import names
from yardmaster.lifecycle.failures import REASONS, reason_of_exit
from yardmaster.lifecycle.restarts import NO_TRACE, Trace
from yardmaster.quantity import format_bytes

_NOTE = re.compile(r"^yardmaster-runner: ([A-Za-z]+): (.*)\Z", re.MULTILINE | re.DOTALL)
"""The runner's last words on its stderr, which end the container's output."""
_SIGNATURE = re.compile(r"^yardmaster-runner: signature (\w{1,64}), reached (\d{1,18})$", re.MULTILINE)
"""What it says before those of a failure that can be compared with another."""
_START = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "PreCreateHookError"})
_BEFORE_ITS_BEGIN = frozenset({"FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox", "DNSConfigForming"})
_PASSING = re.compile(r"failed to sync (?:secret|configmap) cache")
"""A busy node says this of a new pod, and tries again half a second later. The event outlives that by an hour."""
_NO_NAME = ("name or service not known", "temporary failure in name resolution", "no address associated with hostname")


@dataclass(frozen=True)
class Ending:
    """How a container's life ended."""

    exit_code: int | None
    why: Cause
    started_at: datetime | None = None
    finished_at: datetime | None = None
    trace: Trace = NO_TRACE


def container_status(pod: Raw, kind: str = "containerStatuses", name: str = names.CONTAINER) -> Raw:
    found = pod.get("status", {}).get(kind) or ()
    return next((one for one in found if one.get("name") == name), {})


def hindrance_of(pod: Raw, events: tuple[Raw, ...] = (), claims: tuple[Raw, ...] = ()) -> Cause:
    """Why a pod that has not begun has not: its container's, its image's, the scheduler's or its node's word. `claims`
    are the events about the volumes of its namespace."""
    for kind, name in (("initContainerStatuses", "runner"), ("containerStatuses", names.CONTAINER)):
        waiting = container_status(pod, kind, name).get("state", {}).get("waiting") or {}
        word, message = waiting.get("reason", ""), short(waiting.get("message", ""))
        if word == "InvalidImageName":
            return Cause("ImageInvalid", message)
        if word in PULL_WORDS:
            return why_not_pulled(pod, message, events)
        if word in _START:
            return start_failure(pod, f"{word}: {message}")
    placing = placing_of(pod, events, claims)
    if placing.reason:
        return placing
    if condition(pod, "PodReadyToStartContainers").get("status") == "True":
        return NOTHING  # what its events say of volumes and network has been overcome
    for event in events:
        message = event.get("message", "")
        if event.get("reason") in _BEFORE_ITS_BEGIN and not _PASSING.search(message):
            return Cause("StartFailed", short(f"{event['reason']}: {message}"))
    return NOTHING


def wrote_too_much_before(events: tuple[Raw, ...]) -> Cause:
    """What its node said of an earlier pod of the same name that wrote too much; nothing where none did."""
    said = (str(one.get("message", "")).strip() for one in events if one.get("reason") == "Evicted")
    found = next((message for message in said if TOO_MUCH_WRITTEN.search(message)), "")
    return Cause("ScratchExceeded", short(found)) if found else NOTHING


def ending_of(pod: Raw, memory_limit: int) -> Ending:
    """Of a pod whose phase is Failed."""
    terminated = container_status(pod).get("state", {}).get("terminated") or {}
    ending = ending_of_container(terminated, memory_limit, pod)
    if was_taken_away(pod) or pod["status"].get("reason") in NODE_SAYS:
        return Ending(ending.exit_code, _taken_away(pod), ending.started_at, ending.finished_at)
    if not terminated:
        status = pod["status"]
        message = short(f"{status.get('reason', '')}: {status.get('message', '')}".strip(": "))
        return Ending(None, Cause("StartFailed" if message else "Lost", message))
    return ending


def ending_of_container(terminated: Raw, memory_limit: int, pod: Raw | None = None) -> Ending:
    """From a container's `terminated` state; empty: nothing is known of how it ended. `pod` tells its image."""
    if not terminated:
        return Ending(None, NOTHING)
    code = terminated.get("exitCode")
    times = (moment(terminated.get("startedAt")), moment(terminated.get("finishedAt")))
    if terminated.get("reason") == "OOMKilled":
        return Ending(code, Cause("OutOfMemory", f"Its limit is {format_bytes(memory_limit)}."), *times)
    if code == 0:
        return Ending(0, NOTHING, *times)
    if terminated.get("reason") in ("StartError", "ContainerCannotRun"):
        return Ending(code, start_failure(pod or {}, terminated.get("message", "")), *times)
    output = terminated.get("message") or ""
    if is_for_others(output):
        return Ending(code, start_failure(pod or {}, output), *times)
    return Ending(code, _last_words(code, output), *times, _trace_in(output))


def ended_by_removal(pod: Raw, *, surely: bool = False) -> bool:
    """Whether the pod was deleted, and its container ended of that: not before, nor, `surely`, in the second in
    which it was deleted."""
    if not is_ending(pod):
        return False
    metadata = pod["metadata"]
    grace = timedelta(seconds=int(metadata.get("deletionGracePeriodSeconds") or 0))
    terminated = container_status(pod).get("state", {}).get("terminated") or {}
    deleted, ended = moment(metadata["deletionTimestamp"]), moment(terminated.get("finishedAt"))
    if deleted is None or ended is None:
        return not surely
    return ended > deleted - grace if surely else ended >= deleted - grace


def _last_words(code: int | None, output: str) -> Cause:
    """What the runner said, where it came so far; else the end of what the container printed."""
    found = _NOTE.search(output)
    if found is None or found[1] not in REASONS:
        return Cause(reason_of_exit(code), short(output.strip()[-300:]))
    message = short(found[2].strip())
    if any(words in message.lower() for words in _NO_NAME):
        message += " The cluster's DNS does not know that name."
    return Cause(found[1], message)


def _trace_in(output: str) -> Trace:
    found = _SIGNATURE.search(output)
    return NO_TRACE if found is None else Trace(found[1], int(found[2]))


def _taken_away(pod: Raw) -> Cause:
    target = condition(pod, "DisruptionTarget")
    said = str(pod["status"].get("message") or target.get("message") or "").strip()
    if has_written_too_much(pod):
        return Cause("ScratchExceeded", short(said))
    reason = "MachineDiskFull" if DISK_IS_FULL.search(said) else "Evicted"
    return Cause(reason, short(f"{taken_words(pod)} {said}".strip()))
