"""The pod of a task and its environment. The pod is what Pod Security `restricted` asks for, whatever the spec and the
options say; the environment is what `yardmaster_runner.settings` reads.

One template serves all tasks of a role, so that the number of objects does not grow with them: a pod gets its task's
index through the downward API. `YARDMASTER_RESTART` is known where an Indexed Job made the pod: the Job counts the
failures of each index in an annotation of the next pod. The kubelet restarts a parameter server within its pod and
passes no number: there the variable is absent, and the runner counts from 0. No text of a user is here: arguments and
variables reach the script in the order that the runner fetches.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from yardmaster.engines.kubernetes.render import names
from yardmaster.engines.kubernetes.render.images import COPY, RUNNER_DIR, SEARCH_PATH, run_in
from yardmaster.engines.kubernetes.render.names import CLUSTER
from yardmaster.engines.kubernetes.render.node_pools import NodePool
from yardmaster.engines.kubernetes.render.notebooks import equip
from yardmaster.engines.kubernetes.render.options import TaskOptions
from yardmaster.engines.kubernetes.render.volumes import claim_mounts, claim_volumes, volume_variables
from yardmaster.ids import JobKey
from yardmaster.job.spec import Resources, Role, TrainingSpec
from yardmaster.job.strategy import server_roles
from yardmaster.job.volumes import mounts_of
from yardmaster.quantity import format_cpu
from yardmaster.queueing.resources import asks_for_one

EPHEMERAL = "ephemeral-storage"
_LOCKED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "privileged": False,
    "readOnlyRootFilesystem": True,
}


_LAST_WORDS = "FallbackToLogsOnError"
"""The end of its output is the container's message: that is how a failure says why."""


def pod_template(
    spec: TrainingSpec,
    key: JobKey,
    role: Role,
    portal_url: str,
    options: TaskOptions,
    labels: Mapping[str, str],
    cluster: str,
) -> dict[str, Any]:
    """The template of all pods of a role. `cluster` is the value of `YARDMASTER_CLUSTER`."""
    is_named, asked = bool(server_roles(spec)), spec.roles[role].resources
    pool = options.pool_for(spec, role)
    image, command = options.image_for(spec, pool), [options.python, "-m", "yardmaster_runner"]
    pinned = spec.image_of(role)
    has_copy = pinned is not None or bool(options.runner_image)
    bounds = _bounds(options)
    bounds["securityContext"] |= {"fsGroup": options.user, "fsGroupChangePolicy": "OnRootMismatch"}
    pod: dict[str, Any] = {
        **bounds,
        **({"subdomain": names.SERVICE} if is_named else {}),
        "restartPolicy": "Always" if role is Role.PS else "Never",
        # A pod told to end in 0 s would vanish from the API before its containers have ended.
        "terminationGracePeriodSeconds": max(1, int(_time_to_end(spec, role).total_seconds())),
        "containers": [
            {
                **_container(names.CONTAINER, image, command, resources(asked, options), options),
                **_of_a_task(task_environment(spec, role, portal_url, options, cluster), options, has_copy),
            }
        ],
        "volumes": _volumes(key, options, has_copy),
        **_placement(key, pool, options),
    }
    mounts = mounts_of(spec, key)
    if mounts:
        container, variables = pod["containers"][0], volume_variables(spec, mounts)
        container["volumeMounts"] += claim_mounts(mounts)
        container["env"] += [{"name": name, "value": value} for name, value in variables.items()]
        pod["volumes"] += claim_volumes(mounts)
    equip(pod, spec, options)
    if has_copy:
        pod["initContainers"] = [_runner_copy(image, asked, options)]
    made = {"metadata": {"labels": {**labels, **({names.NAMED: names.SERVICE} if is_named else {})}}, "spec": pod}
    if pinned is not None:
        run_in(pinned, made, spec, key, options)
    return made


def bare_pod(command: list[str], amounts: dict[str, str], options: TaskOptions) -> dict[str, Any]:
    """A pod of the tasks' image that runs this once, where tasks run and as restricted as they are; of no job."""
    once = _container(names.CONTAINER, options.image, command, _with_disk(amounts, options), options)
    return {
        **_bounds(options),
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "containers": [{**once, "workingDir": "/", "terminationMessagePolicy": _LAST_WORDS}],
        **_where(None, options),
    }


def _bounds(options: TaskOptions) -> dict[str, Any]:
    """Of every pod: it has no token of the cluster's, and is nothing that a node or its kernel knows."""
    return {
        "serviceAccountName": names.ACCOUNT,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": options.user,
            "runAsGroup": options.user,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }


def _container(
    name: str, image: str, command: list[str], amounts: Mapping[str, Any], options: TaskOptions
) -> dict[str, Any]:
    """What every container has."""
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": options.image_pull_policy,
        "command": command,
        "resources": amounts,
        "securityContext": _LOCKED,
    }


def _of_a_task(variables: list[dict[str, Any]], options: TaskOptions, has_copy: bool) -> dict[str, Any]:
    """What a task's container has besides."""
    return {
        "workingDir": WORK_DIR,
        "env": variables,
        "ports": [{"name": "tensorflow", "containerPort": options.port, "protocol": "TCP"}],
        "terminationMessagePolicy": _LAST_WORDS,
        "volumeMounts": [
            {"name": "work", "mountPath": WORK_DIR},
            {"name": "tmp", "mountPath": "/tmp"},
            {"name": "shm", "mountPath": "/dev/shm"},
            {"name": "token", "mountPath": TOKEN_DIR, "readOnly": True},
            *([{"name": "runner", "mountPath": RUNNER_DIR, "readOnly": True}] if has_copy else []),
        ],
    }


def resources(asked: Resources, options: TaskOptions) -> dict[str, Any]:
    """Requests equal limits: what was admitted is what a task has, no more and no less. But of disk it asks for little
    and may write much (`_with_disk`)."""
    amounts = {"cpu": format_cpu(asked.cpu), "memory": str(asked.memory)}
    if asked.gpus:
        amounts[options.gpu_resource] = str(asked.gpus)
    for name, amount in asked.extended.items():
        device = options.device(name)
        amounts[device.resource if device else name] = str(amount)
    return _with_disk(amounts, options)


def _with_disk(amounts: dict[str, str], options: TaskOptions) -> dict[str, Any]:
    """Requests and limits. The portal's ledger counts no disk: what a task asks for of it only keeps it off nodes that
    are nearly full, and its limit keeps it from filling one."""
    disk = options.scratch_bytes()
    if disk is None:
        return {"requests": amounts, "limits": dict(amounts)}
    least, most = ({EPHEMERAL: str(one)} for one in disk)
    return {"requests": {**amounts, **least}, "limits": {**amounts, **most}}


def _volumes(key: JobKey, options: TaskOptions, has_copy: bool) -> list[dict[str, Any]]:
    disk = options.scratch_bytes()
    limit = {} if disk is None else {"sizeLimit": str(disk[1])}
    volumes: list[dict[str, Any]] = [
        {"name": "work", "emptyDir": dict(limit)},
        {"name": "tmp", "emptyDir": dict(limit)},
        {"name": "shm", "emptyDir": {"medium": "Memory"}},
        {"name": "token", "secret": {"secretName": names.token_name(key), "defaultMode": 0o440}},
    ]
    return [*volumes, {"name": "runner", "emptyDir": {}}] if has_copy else volumes


def _runner_copy(image: str, asked: Resources, options: TaskOptions) -> dict[str, Any]:
    """Brings the runner into a pod whose image lacks it: from `runner_image`, else from the operator's image for such
    tasks, whose Python finds it. Never asks for more than the task: a pod counts as much as
    the larger of the two, and the portal's ledger counts the task."""
    small = {"cpu": format_cpu(min(0.1, asked.cpu)), "memory": str(min(64 << 20, asked.memory))}
    found = {SEARCH_PATH: options.runner_path} if options.runner_path and not options.runner_image else {}
    command = [options.python, "-c", COPY]
    if options.runner_image:
        image, command = options.runner_image, ["cp", "-R", f"{options.runner_path.rstrip('/')}/.", RUNNER_DIR]
    return {
        **_container("runner", image, command, _with_disk(small, options), options),
        "env": [{"name": name, "value": value} for name, value in found.items()],
        "volumeMounts": [{"name": "runner", "mountPath": RUNNER_DIR}],
    }


def _time_to_end(spec: TrainingSpec, role: Role) -> timedelta:
    """A parameter server uploads nothing. Its pod goes at the end of the grace period: until then nothing can take its
    place, and the other tasks wait for it."""
    return spec.grace_period if role is Role.PS else spec.time_to_end


def _placement(key: JobKey, pool: NodePool | None, options: TaskOptions) -> dict[str, Any]:
    found = _where(pool, options)
    if options.topology_key:
        found["affinity"] = {"podAffinity": _near_each_other(key, options)}
    return found


def _where(pool: NodePool | None, options: TaskOptions) -> dict[str, Any]:
    """What the operator chose for all pods of a pool; None: for those that no pool is for."""
    found: dict[str, Any] = {}
    selector, tolerations = options.chosen(pool)
    priority = (pool.priority_class if pool else "") or options.priority_class
    if selector:
        found["nodeSelector"] = dict(selector)
    if tolerations:
        found["tolerations"] = [dict(one) for one in tolerations]
    if priority:
        found["priorityClassName"] = priority
    if options.image_pull_secrets:
        found["imagePullSecrets"] = [{"name": name} for name in options.image_pull_secrets]
    return found


def _near_each_other(key: JobKey, options: TaskOptions) -> dict[str, Any]:
    """Tasks of one run speak to each other all the time. A wish and no demand: where they do not fit, they go apart."""
    term = {"topologyKey": options.topology_key, "labelSelector": {"matchLabels": {names.RUN: key.name}}}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]}


# --- the environment of a task ---------------------------------------------------------------------------------------

WORK_DIR = "/yardmaster/work"
TOKEN_DIR = "/yardmaster/token"
TOKEN_KEY = "token"


def task_environment(
    spec: TrainingSpec, role: Role, portal_url: str, options: TaskOptions, cluster: str
) -> list[dict[str, Any]]:
    """The container's `env`, in a fixed order. `cluster` is the value of `YARDMASTER_CLUSTER`."""
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
        CLUSTER: cluster,
        "YARDMASTER_WORK_DIR": WORK_DIR,
    }
    literal = [{"name": name, "value": _literal(value)} for name, value in plain.items()]
    # Executors of a registered Spark cluster know no names of this cluster's DNS.
    own = [] if spec.spark is None else [_from_field("YARDMASTER_LISTEN_ADDRESS", "status.podIP")]
    return literal + own + (_of_a_set() if role is Role.PS else _of_a_job())


def _search_path(options: TaskOptions) -> dict[str, str]:
    folder = RUNNER_DIR if options.runner_image else options.runner_path
    return {SEARCH_PATH: folder} if folder else {}


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
