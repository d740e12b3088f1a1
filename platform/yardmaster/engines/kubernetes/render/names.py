"""What everything on the cluster is called: from ids alone, so that a repeated verb meets its own objects and no user
text is ever a name, a label or a selector.

Names are DNS labels: `<prefix><namespace>` for a namespace, `j<job>-<attempt>` for the run, `…-<role>` for the workload
of a role, `…-<role>-<index>` for the host name of a task, which both controllers form in the same way, below the one
service of the namespace.

The tasks of a run find each other by these names. Two variables hold the list of all: `YARDMASTER_CLUSTER`, which the
container begins with, and `TF_CONFIG`, which the runner makes of it for the script. Linux bounds the length of each: a
container with more than that never begins, so such a job is refused before it is made.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from yardmaster.engines.kubernetes.render.options import TaskOptions
from yardmaster.errors import Problem
from yardmaster.ids import JobKey, short
from yardmaster.job.spec import Role, TrainingSpec
from yardmaster.job.strategy import TF_CONFIG, server_roles, task_environment

MANAGED_BY = "app.kubernetes.io/managed-by"
US = "yardmaster"
NAME, INSTANCE, COMPONENT, PART_OF = (
    f"app.kubernetes.io/{word}" for word in ("name", "instance", "component", "part-of")
)
APPLICATION = "training"
"""What a run is an instance of, in the recommended labels."""
RUN = "yardmaster/run"
NAMESPACE_ID = "yardmaster/namespace"
INSTALLATION = "yardmaster/installation"
"""Of a namespace: which portal made it. Ids tell nothing, where one portal's database is a copy of another's."""
JOB_ID = "yardmaster/job"
ATTEMPT = "yardmaster/attempt"
USER = "yardmaster/user"
"""The id of who launched the job."""
ROLE = "yardmaster/role"
STRATEGY = "yardmaster/strategy"
PROGRAM = "yardmaster/program"
"""Of a pod that runs a program of the portal's own: which."""
HOME = "yardmaster/home"
"""Of the claim of a user's home and the pods that mount it: its name."""
NAMED = "yardmaster/named"
"""Of a pod that has a DNS name: the service below which."""
OWNER = "yardmaster/owner"
"""The uid of the run's owner object: tells what belongs to this submission from what is left of an earlier one."""

IMAGE = "yardmaster/image"
"""The annotation of a pod that runs an image of the portal's catalogue: its name there."""

JOB_INDEX = "batch.kubernetes.io/job-completion-index"
JOB_FAILURES = "batch.kubernetes.io/job-index-failure-count"
JOB_IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"
SET_INDEX = "apps.kubernetes.io/pod-index"

CONTAINER = "task"
ACCOUNT = "tasks"
"""The service account that pods run as."""
SERVICE = "tasks"
"""The headless service of a namespace, below which the pods of tasks with a server have their DNS names."""


def namespace_name(namespace_id: uuid.UUID, options: TaskOptions) -> str:
    """The cluster's namespace for one of the portal."""
    return options.namespace_prefix + short(namespace_id)


def workload_name(key: JobKey, role: Role) -> str:
    return f"{key.name}-{role.value}"


def token_name(key: JobKey) -> str:
    return f"{key.name}-token"


def pull_secret_name(key: JobKey, number: int) -> str:
    """Of the run's own copy of a secret to pull images with."""
    return f"{key.name}-pull-{number}"


def host_name(key: JobKey, role: Role, index: int, options: TaskOptions) -> str:
    """A task's DNS name, for as long as the run is there, whichever pod it is by now."""
    name = f"{workload_name(key, role)}-{index}.{SERVICE}"
    if not options.service_domain:
        return name
    return f"{name}.{namespace_name(key.namespace_id, options)}.svc.{options.service_domain}"


def labels(key: JobKey) -> dict[str, str]:
    """On every object of a run, and enough to know its key again."""
    return {
        MANAGED_BY: US,
        PART_OF: US,
        NAME: APPLICATION,
        INSTANCE: key.name,
        RUN: key.name,
        NAMESPACE_ID: str(key.namespace_id),
        JOB_ID: str(key.job_id),
        ATTEMPT: str(key.attempt),
    }


def labels_of_role(spec: TrainingSpec, role: Role, user: uuid.UUID | None) -> dict[str, str]:
    """On the workload of a role and its pods, besides."""
    found = {ROLE: role.value, COMPONENT: role.value, STRATEGY: spec.strategy.value}
    if spec.program:
        found[PROGRAM] = spec.program
    return {**found, **({USER: str(user)} if user else {})}


def metadata(name: str, key: JobKey, options: TaskOptions) -> dict[str, Any]:
    """Of an object of this run."""
    return {"name": name, "namespace": namespace_name(key.namespace_id, options), "labels": labels(key)}


def reference(kind: str, name: str, uid: str) -> dict[str, Any]:
    """In `ownerReferences`: what an object belongs to."""
    # A run that is deleted as a whole is there until its last pod has ended.
    lasts = {"controller": True, "blockOwnerDeletion": True}
    return {"apiVersion": "v1", "kind": kind, "name": name, "uid": uid, **lasts}


def key_from_labels(found: Mapping[str, str]) -> JobKey | None:
    """The run that an object belongs to; None where it is none of ours."""
    try:
        return _key(found[NAMESPACE_ID], found[JOB_ID], found[ATTEMPT])
    except (KeyError, ValueError):
        return None


@lru_cache(maxsize=8192)
def _key(namespace_id: str, job_id: str, attempt: str) -> JobKey:
    """The pods of a run, and the events of a pod, all say the same."""
    return JobKey(uuid.UUID(namespace_id), uuid.UUID(job_id), int(attempt))


def selector(keys: Collection[JobKey]) -> str:
    """Of all objects of these runs, in any namespace."""
    return f"{RUN} in ({','.join(sorted(key.name for key in keys))})"


def ours() -> str:
    """The selector of everything that any portal made."""
    return f"{MANAGED_BY}={US}"


LONGEST = (32 << 12) - 1
"""Bytes of `NAME=value`: Linux's MAX_ARG_STRLEN, less the zero at the end."""
CLUSTER = "YARDMASTER_CLUSTER"
_LAST_ATTEMPT = 999
"""The attempt is in each address: a job must not exceed the bound by being tried again."""

ClusterMap = Mapping[str, Sequence[str]]


def cluster_map(spec: TrainingSpec, key: JobKey, options: TaskOptions) -> dict[str, list[str]]:
    """`YARDMASTER_CLUSTER`: every role with a server, in order of index."""
    return {
        role.value: [f"{host_name(key, role, index, options)}:{options.port}" for index in range(spec.replicas(role))]
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
