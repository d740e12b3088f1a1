"""Whether a task can be told who its peers are: one variable names them all, and Linux bounds its length. Pure.

Two variables do: `YARDMASTER_CLUSTER`, which the container begins with, and `TF_CONFIG`, which the runner makes of it
for the script. A container with more than that in either never begins, so such a job is refused before it is made.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import replace

from yardmaster.engines.kubernetes import names
from yardmaster.engines.kubernetes.options import TaskOptions
from yardmaster.errors import Problem
from yardmaster.ids import JobKey
from yardmaster.spec import Role, TrainingSpec
from yardmaster.strategy import server_roles
from yardmaster.tf_config import TF_CONFIG, task_environment

LONGEST = (32 << 12) - 1
"""Bytes of `NAME=value`: Linux's MAX_ARG_STRLEN, less the zero at the end."""
CLUSTER = "YARDMASTER_CLUSTER"
_ANY_KEY = JobKey(uuid.UUID(int=0), uuid.UUID(int=0), 999)
"""All ids are equally long. The attempt is in each name: a job must not outgrow the bound by being tried again."""


def cluster_variable(spec: TrainingSpec, key: JobKey, options: TaskOptions) -> str:
    """The value of `YARDMASTER_CLUSTER`."""
    return json.dumps(names.cluster_map(spec, key, options), separators=(",", ":"))


def too_many_peers(spec: TrainingSpec, options: TaskOptions) -> list[Problem]:
    """The problem of the role with the most tasks, where all their addresses do not fit into one variable."""
    length = longest_variable(spec, options)
    if length <= LONGEST:
        return []
    role = max(server_roles(spec), key=spec.replicas)
    most = _most_of(role, spec, options)
    message = (
        f"The addresses of the job's tasks are {length:,} bytes long on this cluster, and Linux takes {LONGEST:,} in "
        "one variable: no task could begin."
    )
    remedy = f"Ask for at most {most}." if most else "Ask for fewer tasks."
    if options.service_domain:
        remedy += " An administrator makes room for more by leaving service_domain out."
    return [Problem(f"roles.{role.value}.replicas", "too_many_tasks", message, remedy, str(spec.replicas(role)))]


def longest_variable(spec: TrainingSpec, options: TaskOptions) -> int:
    """Bytes of the longer of the two, of the task for which it is longest."""
    found = names.cluster_map(spec, _ANY_KEY, options)
    told = [f"{CLUSTER}={cluster_variable(spec, _ANY_KEY, options)}"]
    for role, one in spec.roles.items():
        value = task_environment(spec, role, one.replicas - 1, found).get(TF_CONFIG, "")
        told.append(f"{TF_CONFIG}={value}")
    return max(len(one.encode()) for one in told)


def _most_of(role: Role, spec: TrainingSpec, options: TaskOptions) -> int:
    """The largest number of this role's tasks that fits beside the others; 0 where none does."""
    fits, too_many = 0, spec.replicas(role)
    while too_many - fits > 1:
        half = (fits + too_many) // 2
        roles = {**spec.roles, role: replace(spec.roles[role], replicas=half)}
        if longest_variable(replace(spec, roles=roles), options) <= LONGEST:
            fits = half
        else:
            too_many = half
    return fits
