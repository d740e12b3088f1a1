"""The Job of a probe, and what is read from its pod. Pure.

It runs in a namespace of its own that is shaped as every namespace of the portal is, so that it is held to the same
bounds, and it runs the tasks' image. What it saw stands in its termination message: reading it takes no right that the
portal lacks. Not here: making and removing it (`prober`).
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from yardmaster.engines.kubernetes.observe.placing import short
from yardmaster.engines.kubernetes.observe.podfacts import container_status, ending_of_container, hindrance_of
from yardmaster.engines.kubernetes.render import names
from yardmaster.engines.kubernetes.render.options import TaskOptions
from yardmaster.engines.kubernetes.render.pods import bare_pod
from yardmaster.lifecycle.image_words import IMAGES

PROBE = "yardmaster/probe"
"""The label of a Job and its pod. Not that of what the portal's watches follow: a probe is no run."""
SMALL: Mapping[str, str] = {"cpu": "100m", "memory": "96Mi"}
_FIRST = uuid.UUID("00000000-0000-8000-8000-000000000000").int
_CANNOT_BEGIN = frozenset({*IMAGES, "StartFailed"})


@dataclass(frozen=True)
class ProbeAnswer:
    """How a pod ended. With a `problem` its output cannot be trusted."""

    message: str = ""
    exit_code: int | None = None
    problem: str = ""

    def table(self) -> dict[str, Any]:
        """Its words, where they are a table in JSON; else empty."""
        try:
            return {} if self.problem else dict(json.loads(self.message))
        except (ValueError, TypeError):
            return {}


def new_probe_id() -> uuid.UUID:
    """What stands for a namespace of the portal. No other id has its first half, and no two probes have the same."""
    return uuid.UUID(int=_FIRST | int.from_bytes(os.urandom(7), "big"))


def is_probe_id(value: str) -> bool:
    """Whether a namespace with this id was made for a probe."""
    return value.startswith(str(uuid.UUID(int=_FIRST))[:19])


def metadata(name: str, probe_id: uuid.UUID, options: TaskOptions) -> dict[str, Any]:
    """Of an object of this probe; `labels` is what selects the pod of the Job of this name."""
    return {"name": name, "namespace": names.namespace_name(probe_id, options), "labels": {PROBE: name}}


def job(
    name: str, probe_id: uuid.UUID, command: Sequence[str], options: TaskOptions, amounts: Mapping[str, str] = SMALL
) -> dict[str, Any]:
    """Its one pod runs Python with these arguments, once. It ends by itself, whatever becomes of who asked."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(name, probe_id, options),
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": 600,
            "ttlSecondsAfterFinished": 60,
            "template": {
                "metadata": {"labels": {PROBE: name}},
                "spec": bare_pod([options.python, *command], dict(amounts), options),
            },
        },
    }


def answer_of(pods: Sequence[Mapping[str, Any]]) -> ProbeAnswer | None:
    """What the Job's pod printed, or why it never will; None: it may yet."""
    for pod in pods:
        ended = container_status(pod).get("state", {}).get("terminated") or {}
        if ended:
            said = str(ended.get("message") or "")
            return ProbeAnswer(said, ended.get("exitCode"), "" if said else _ended_without_output(ended))
        status = pod.get("status") or {}
        if status.get("phase") == "Failed":
            said = f"{status.get('reason', '')} {status.get('message', '')}".strip()
            return ProbeAnswer(problem=f"The pod that was to try it failed: {short(said) or 'nothing says why'}.")
        why = hindrance_of(pod)
        if why.reason in _CANNOT_BEGIN:
            return ProbeAnswer(problem=f"The pod that was to try it could not begin: {why.message}")
    return None


def address_in(pods: Sequence[Mapping[str, Any]]) -> ProbeAnswer | None:
    """Of a Job whose pod is to stay: where it runs, as the message, or why it does not; None: it may yet."""
    ended = answer_of(pods)
    if ended is not None:
        return ProbeAnswer(problem=nonsense(ended))
    running = (one["status"] for one in pods if (one.get("status") or {}).get("phase") == "Running")
    return next((ProbeAnswer(status["podIP"]) for status in running if status.get("podIP")), None)


def nonsense(answer: ProbeAnswer) -> str:
    """What is said of a pod that ended with words that are not its program's."""
    return answer.problem or f"The pod that was to try it ended with {answer.exit_code}: {short(answer.message)}"


def why_late(pods: Sequence[Mapping[str, Any]], seconds: float) -> str:
    """What is known of a probe that has not told anything in time."""
    if not pods:
        return f"The cluster has made no pod to try it with within {seconds:g} s."
    why = hindrance_of(pods[0]).message
    return f"The pod that was to try it has not ended within {seconds:g} s. {why}".strip()


def _ended_without_output(ended: Mapping[str, Any]) -> str:
    why = ending_of_container(ended, 0).why.message or ended.get("reason") or "nothing says why"
    return f"The pod that was to try it ended with {ended.get('exitCode')}: {short(str(why))}"
