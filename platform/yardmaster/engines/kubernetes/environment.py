"""A task's environment, exactly what `yardmaster_runner.settings` reads. One template serves all tasks of a role, so
that the number of objects does not grow with them: who a task is, is told by its pod through the downward API.

`YARDMASTER_RESTART` is known where an Indexed Job made the pod: the Job counts the failures of each index in an
annotation of the next pod. A parameter server is started again within its pod, by the kubelet, which tells the
container no number: there the variable is absent, and the runner counts from 0.

No text of a user is here: arguments and variables reach the script in the order that the runner fetches.
"""

from __future__ import annotations

import math
from typing import Any

from yardmaster.accelerators import asks_for_one
from yardmaster.engines.kubernetes import names, peers
from yardmaster.engines.kubernetes.options import TaskOptions
from yardmaster.ids import JobKey
from yardmaster.spec import Role, TrainingSpec

WORK_DIR = "/yardmaster/work"
TOKEN_DIR = "/yardmaster/token"
TOKEN_KEY = "token"
RUNNER_DIR = "/yardmaster/runner"


def task_environment(
    spec: TrainingSpec, key: JobKey, role: Role, portal_url: str, options: TaskOptions
) -> list[dict[str, Any]]:
    """The container's `env`, in a fixed order."""
    asked = spec.roles[role].resources
    threads = str(max(1, math.ceil(asked.cpu)))
    plain = {
        "HOME": WORK_DIR,
        "OMP_NUM_THREADS": threads,
        "TF_NUM_INTRAOP_THREADS": threads,
        # Some images show every GPU of the node to a task that asks for none; a slice, or another maker's, is one too.
        **(
            {} if asks_for_one(asked.as_amounts()) else {"CUDA_VISIBLE_DEVICES": "-1", "NVIDIA_VISIBLE_DEVICES": "void"}
        ),
        **_search_path(options),
        "YARDMASTER_URL": portal_url,
        "YARDMASTER_TOKEN_FILE": f"{TOKEN_DIR}/{TOKEN_KEY}",
        "YARDMASTER_ROLE": role.value,
        peers.CLUSTER: peers.cluster_variable(spec, key, options),
        "YARDMASTER_WORK_DIR": WORK_DIR,
    }
    literal = [{"name": name, "value": _literal(value)} for name, value in plain.items()]
    return literal + (_of_a_set() if role is Role.PS else _of_a_job())


def _search_path(options: TaskOptions) -> dict[str, str]:
    folder = RUNNER_DIR if options.runner_image else options.runner_path
    return {"PYTHONPATH": folder} if folder else {}


def _literal(value: str) -> str:
    """`$(NAME)` is replaced in values, `$$` is how a dollar is written there."""
    return value.replace("$", "$$")


def _of_a_job() -> list[dict[str, Any]]:
    return [
        _from_field("YARDMASTER_INDEX", f"metadata.annotations['{names.JOB_INDEX}']"),
        _from_field("YARDMASTER_RESTART", f"metadata.annotations['{names.JOB_FAILURES}']"),
    ]


def _of_a_set() -> list[dict[str, Any]]:
    return [_from_field("YARDMASTER_INDEX", f"metadata.labels['{names.SET_INDEX}']")]


def _from_field(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
