"""How the tasks of a run find each other: their DNS names, and whether the list of all fits into one variable. Pure.

Two variables hold it: `YARDMASTER_CLUSTER`, which the container begins with, and `TF_CONFIG`, which the runner makes of
it for the script. Linux bounds the length of each: a container with more than that never begins, so such a job is
refused before it is made.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from yardmaster.engines.kubernetes.render import names
from yardmaster.engines.kubernetes.render.options import TaskOptions
from yardmaster.errors import Problem
from yardmaster.ids import JobKey
from yardmaster.job.spec import Role, TrainingSpec
from yardmaster.job.strategy import server_roles
from yardmaster.job.tf_config import TF_CONFIG, task_environment

LONGEST = (32 << 12) - 1
"""Bytes of `NAME=value`: Linux's MAX_ARG_STRLEN, less the zero at the end."""
CLUSTER = "YARDMASTER_CLUSTER"
_LAST_ATTEMPT = 999
"""The attempt is in each address: a job must not exceed the bound by being tried again."""

ClusterMap = Mapping[str, Sequence[str]]


def cluster_map(spec: TrainingSpec, key: JobKey, options: TaskOptions) -> dict[str, list[str]]:
    """`YARDMASTER_CLUSTER`: every role with a server, in order of index."""
    return {
        role.value: [
            f"{names.host_name(key, role, index, options)}:{options.port}" for index in range(spec.replicas(role))
        ]
        for role in server_roles(spec)
    }


def cluster_variable(cluster: ClusterMap) -> str:
    """The value of `YARDMASTER_CLUSTER`."""
    return json.dumps(cluster, separators=(",", ":"))


def too_many_peers(spec: TrainingSpec, key: JobKey, options: TaskOptions, cluster: ClusterMap) -> list[Problem]:
    """The problem of the role with the most tasks, where all their addresses do not fit into one variable."""
    length = longest_variable(spec, key, cluster)
    if length <= LONGEST:
        return []
    role = max(server_roles(spec), key=spec.replicas)
    most = _most_of(role, spec, key, options)
    message = (
        f"The addresses of the job's tasks are {length:,} bytes long on this cluster, and Linux takes {LONGEST:,} in "
        "one variable: no task could start."
    )
    remedy = f"Request at most {most}." if most else "Request fewer tasks."
    if options.service_domain:
        remedy += " An administrator can allow more by removing service_domain."
    return [Problem(f"roles.{role.value}.replicas", "too_many_tasks", message, remedy, str(spec.replicas(role)))]


def longest_variable(spec: TrainingSpec, key: JobKey, cluster: ClusterMap) -> int:
    """Bytes of the longer of the two, of the task for which it is longest, in the job's last attempt."""
    variables = [f"{CLUSTER}={cluster_variable(cluster)}"]
    for role, one in spec.roles.items():
        value = task_environment(spec, role, one.replicas - 1, cluster).get(TF_CONFIG, "")
        variables.append(f"{TF_CONFIG}={value}")
    last = replace(key, attempt=max(key.attempt, _LAST_ATTEMPT))
    return max(len(one.replace(f"{key.name}-", f"{last.name}-").encode()) for one in variables)


def _most_of(role: Role, spec: TrainingSpec, key: JobKey, options: TaskOptions) -> int:
    """The largest number of this role's tasks that fits beside the others; 0 where none does."""
    fits, too_many = 0, spec.replicas(role)
    while too_many - fits > 1:
        half = (fits + too_many) // 2
        smaller = replace(spec, roles={**spec.roles, role: replace(spec.roles[role], replicas=half)})
        if longest_variable(smaller, key, cluster_map(smaller, key, options)) <= LONGEST:
            fits = half
        else:
            too_many = half
    return fits
