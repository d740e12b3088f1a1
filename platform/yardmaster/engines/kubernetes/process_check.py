"""Does the cluster bound how many processes and threads a pod may have? Tried in a pod, for nothing shows it.

The bound (`podPidsLimit`) is the kubelet's: it stands in no object, the kubelet tells it only to those who may reach
every node, and within a pod its control group is not to be seen, only the container's below it, which has none. So a
pod of the tasks' own kind begins threads until it may not, or until it has `MOST`, and says which. It ends by itself.

Not here: when it is asked (`manage.py doctor`).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from typing import Any

from yardmaster.engines.base import Examined
from yardmaster.engines.kubernetes import podfacts as pods
from yardmaster.engines.kubernetes.api import Api
from yardmaster.engines.kubernetes.options import TaskOptions
from yardmaster.engines.kubernetes.pods import bare_pod
from yardmaster.errors import YardmasterError

MOST = 5000
"""More than what is usual as a bound (1,024 to 4,096), and little enough for a node that has none."""
BOUNDED, UNBOUNDED = 0, 3
CHECK = "yardmaster/check"
"""The label of its pod. Not those of what the portal's watches follow: it is no run."""
PATIENCE = 120.0
PROGRAM = f"""
import os, sys, threading
threading.stack_size(65536)
gate, begun = threading.Event(), 0
try:
    while begun < {MOST}:
        threading.Thread(target=gate.wait, daemon=True).start()
        begun += 1
except RuntimeError:
    pass
with open("/dev/termination-log", "w") as file:
    file.write(str(begun))
os._exit({UNBOUNDED} if begun >= {MOST} else {BOUNDED})
"""
_REMEDY = (
    "Ask the cluster's administrators to set podPidsLimit (4096, say) in the kubelets' configuration: "
    "docs/kubernetes.md, section Disk and processes."
)


def job(name: str, namespace: str, options: TaskOptions) -> dict[str, Any]:
    """One pod, tried once, that is gone some minutes later whatever becomes of who asked."""
    resources = {"cpu": "200m", "memory": "512Mi"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace, "labels": {CHECK: name}},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": int(PATIENCE),
            "ttlSecondsAfterFinished": 300,
            "template": {
                "metadata": {"labels": {CHECK: name}},
                "spec": bare_pod([options.python, "-c", PROGRAM], resources, options),
            },
        },
    }


def outcome_of(found: Sequence[pods.Raw]) -> Examined | None:
    """What the pod has told, or why it never will; None: it may yet."""
    for pod in found:
        ended = pods.container_status(pod).get("state", {}).get("terminated") or {}
        begun = str(ended.get("message", "")).strip()[:20]
        if ended.get("exitCode") == BOUNDED:
            return Examined(True, f"A pod may have no more than about {begun} threads and processes.")
        if ended.get("exitCode") == UNBOUNDED:
            return Examined(
                False,
                f"A pod began {begun} threads and nothing stopped it: one task can take all processes of its node.",
                _REMEDY,
            )
        if ended or pod.get("status", {}).get("phase") == "Failed":
            said = pods.ending_of_container(ended, 0).why.message or pod["status"].get("message") or "nothing says why"
            return _unknown(f"its pod ended with {ended.get('exitCode')}: {said}")
        why = pods.hindrance_of(pod)
        if why.reason in ("ImagePull", "StartFailed"):
            return _unknown(f"its pod could not begin: {why.message}")
    return None


def examine(api: Api, namespace: str, options: TaskOptions, patience: float = PATIENCE) -> Examined:
    """Make the pod, wait for its word, and remove it. A cluster that does not answer is a finding too."""
    name = f"yardmaster-check-{secrets.token_hex(4)}"
    try:
        api.apply(job(name, namespace, options))
        try:
            return _wait(api, namespace, name, patience)
        finally:
            api.delete("Job", namespace, name)
    except YardmasterError as error:
        return _unknown(f"{error.message} {error.remedy}".strip())


def _wait(api: Api, namespace: str, name: str, patience: float) -> Examined:
    until = time.monotonic() + patience
    while True:
        found = api.find("Pod", namespace, f"{CHECK}={name}")
        outcome = outcome_of(found)
        if outcome is not None:
            return outcome
        if time.monotonic() >= until:
            why = next((pods.hindrance_of(pod).message for pod in found), "") or "the quota may have no room for it"
            return _unknown(f"its pod has not ended within {patience:g} s: {why}")
        time.sleep(0.5)


def _unknown(why: str) -> Examined:
    return Examined(
        False,
        f"Whether a pod may have any number of processes is not known: {why}",
        "On a node: kubectl get --raw /api/v1/nodes/NODE/proxy/configz, as an administrator; podPidsLimit is above 0.",
    )
