"""A short-lived pod that tries addresses from where tasks run: its objects, and what is read from it. Pure.

It lives in a namespace of its own that is shaped as every namespace of the portal is, so that it is held to the same
policies, and it runs the tasks' image. What it saw stands in its termination message: reading it takes no right that
the portal lacks. Not here: making and removing it (`probing`).
"""

from __future__ import annotations

import ipaddress
import json
import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from yardmaster.engines.base import Reach
from yardmaster.engines.kubernetes import names
from yardmaster.engines.kubernetes.options import TaskOptions

CONTAINER = "probe"
PROBE = "yardmaster/probe"
"""The label of the Job and its pod. Not that of what the portal's watches follow: a probe is no run."""
ASKED = "/api/v1/task/order/?role=worker&index=0"
"""What a runner asks first. Without a token the portal refuses it, in words that nothing else answers with."""
PROBLEM_TYPE = "application/problem+json"
SECONDS = 12.0
"""How long the pod tries: a network may take some seconds to let a new pod through."""
_FIRST = uuid.UUID("00000000-0000-8000-8000-000000000000").int
_MOST_TEXT = 300
_HOPELESS = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError",
             "CreateContainerError", "RunContainerError")  # fmt: skip

SCRIPT = """
import json, sys, threading, time, urllib.error, urllib.request

TRIES_FOR = float(sys.argv[1])
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
found = {}

def ask(url):
    try:
        try:
            answer = opener.open(url, timeout=4)
        except urllib.error.HTTPError as error:
            answer = error
        text = answer.read(80).decode("ascii", "replace")
        return {"status": answer.code, "type": answer.headers.get("Content-Type") or "", "text": text}
    except Exception as error:
        return {"error": str(getattr(error, "reason", error))[:150] or type(error).__name__}

def keep_asking(name, url):
    end = time.time() + TRIES_FOR
    while True:
        found[name] = ask(url)
        if "status" in found[name] or time.time() > end:
            return
        time.sleep(0.5)

threads = [threading.Thread(target=keep_asking, args=(str(n), url)) for n, url in enumerate(sys.argv[2:])]
for one in threads:
    one.daemon = True
    one.start()
for one in threads:
    one.join(TRIES_FOR + 6)
with open("/dev/termination-log", "w") as log:
    log.write(json.dumps(found))
"""


@dataclass(frozen=True)
class Seen:
    """What came of one address, as the pod saw it: an answer, or why there was none."""

    status: int = 0
    content_type: str = ""
    text: str = ""
    error: str = ""


@dataclass(frozen=True)
class Found:
    """What came of a probe. With a `problem` the pod told nothing: nothing is known of any address."""

    seen: Mapping[str, Seen]
    """By URL of the portal."""
    problem: str = ""


def new_probe_id() -> uuid.UUID:
    """What stands for a namespace of the portal. No other id has its first half, and no two probes have the same."""
    return uuid.UUID(int=_FIRST | int.from_bytes(os.urandom(7), "big"))


def is_probe_id(value: str) -> bool:
    """Whether a namespace with this id was made for a probe."""
    return value.startswith(str(uuid.UUID(int=_FIRST))[:19])


def job(probe_id: uuid.UUID, urls: Sequence[str], options: TaskOptions) -> dict[str, Any]:
    """The Job whose one pod tries these addresses of a portal. It ends by itself, whatever becomes of who asked."""
    labels = {PROBE: str(probe_id)}
    amounts = {"cpu": "100m", "memory": "96Mi"}
    container = {
        "name": CONTAINER,
        "image": options.image,
        "imagePullPolicy": options.image_pull_policy,
        "command": [options.python, "-c", SCRIPT, str(SECONDS - 4), *(url.rstrip("/") + ASKED for url in urls)],
        "workingDir": "/",
        "resources": {"requests": amounts, "limits": dict(amounts)},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "privileged": False,
            "readOnlyRootFilesystem": True,
        },
    }
    pod: dict[str, Any] = {
        "serviceAccountName": names.ACCOUNT,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": options.user,
            "runAsGroup": options.user,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
    }
    if options.node_selector:
        pod["nodeSelector"] = dict(options.node_selector)
    if options.tolerations:
        pod["tolerations"] = [dict(one) for one in options.tolerations]
    if options.image_pull_secrets:
        pod["imagePullSecrets"] = [{"name": name} for name in options.image_pull_secrets]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": CONTAINER, "namespace": names.namespace_name(probe_id, options), "labels": dict(labels)},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": 600,
            "ttlSecondsAfterFinished": 60,
            "template": {"metadata": {"labels": dict(labels)}, "spec": pod},
        },
    }


def found_in(pods: Sequence[Mapping[str, Any]], urls: Sequence[str]) -> Found | None:
    """What the pod has told, or why it never will; None: it may yet."""
    for pod in pods:
        status = pod.get("status") or {}
        for one in status.get("containerStatuses") or ():
            state = one.get("state") or {}
            if ended := state.get("terminated"):
                return _told(str(ended.get("message") or ""), ended, urls)
            waiting = state.get("waiting") or {}
            if waiting.get("reason") in _HOPELESS:
                said = f"{waiting['reason']}: {waiting.get('message', '')}".strip(": ")
                return Found({}, f"The pod that was to try it could not begin. {said[:_MOST_TEXT]}")
        if status.get("phase") == "Failed":
            said = f"{status.get('reason', '')} {status.get('message', '')}".strip()
            return Found({}, f"The pod that was to try it failed: {said[:_MOST_TEXT] or 'nothing says why'}.")
    return None


def why_late(pods: Sequence[Mapping[str, Any]], seconds: float) -> Found:
    """What is known of a probe that has not told anything in time."""
    if not pods:
        return Found({}, f"The cluster has made no pod to try it with within {seconds:g} s.")
    conditions = (pods[0].get("status") or {}).get("conditions") or ()
    said = next((str(one["message"]) for one in conditions if one["status"] == "False" and one.get("message")), "")
    return Found({}, f"The pod that was to try it has not ended within {seconds:g} s. {said[:_MOST_TEXT]}".strip())


def is_the_portal(seen: Seen) -> bool:
    """Whether what answered is the task API of a portal that lets this address in."""
    return seen.status == 401 and seen.content_type.startswith(PROBLEM_TYPE)


def reach_of(found: Found, url: str, options: TaskOptions) -> Reach:
    """Whether tasks reach the portal at this address, in words for people. Where nothing is known, nothing is said
    against it."""
    seen = found.seen.get(url)
    if seen is None:
        return Reach(None, f"It is not known whether pods reach the portal at {url}. {found.problem}".strip())
    if is_the_portal(seen):
        return Reach(True, f"Pods reach the portal at {url}.")
    if seen.status == 429 or seen.status >= 500:
        return Reach(None, f"It is not known whether pods reach the portal at {url}: it answered {seen.status}.")
    host = urlsplit(url).hostname or ""
    if not seen.status:
        message = f"Pods do not reach the portal at {url}: {seen.error}."
        return Reach(False, message, _how_to_be_reached(host, options))
    message = f"What pods find at {url} is not this portal's task API: it answered {seen.status}."
    if seen.status == 400 and seen.content_type.startswith(PROBLEM_TYPE):
        message = f"The portal refuses what pods ask it at {url}: it does not know itself as {host}."
        return Reach(False, message, f"Add {host} to YARDMASTER_ALLOWED_HOSTS.")
    return Reach(False, message, "Set YARDMASTER_TASK_URL to the portal's address as pods reach it.")


def _how_to_be_reached(host: str, options: TaskOptions) -> str:
    if is_loopback(host):
        return (
            f"For a pod {host} is the pod itself: let the portal listen at an address of its machine that pods reach "
            "(YARDMASTER_HOST), and set YARDMASTER_TASK_URL to it."
        )
    return (
        f"Let the portal listen at {host} (YARDMASTER_HOST), or set YARDMASTER_TASK_URL to where pods reach it; look "
        "at firewalls on the way and, in YARDMASTER_KUBERNETES_TASKS, at portal_cidrs and portal_port."
    )


def is_loopback(host: str) -> bool:
    """Whether this means the asking machine itself, wherever it is asked."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _told(message: str, ended: Mapping[str, Any], urls: Sequence[str]) -> Found:
    try:
        told = dict(json.loads(message))
        return Found({url: _seen(told[str(n)]) for n, url in enumerate(urls) if str(n) in told})
    except (ValueError, TypeError, AttributeError, KeyError):
        said = message[-_MOST_TEXT:] or ended.get("reason") or ""
        return Found({}, f"The pod that was to try it ended with {ended.get('exitCode')}: {said}")


def _seen(told: Mapping[str, Any]) -> Seen:
    return Seen(
        status=int(told.get("status") or 0),
        content_type=str(told.get("type") or ""),
        text=str(told.get("text") or ""),
        error=str(told.get("error") or ""),
    )
