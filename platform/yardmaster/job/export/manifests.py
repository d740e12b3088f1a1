"""All objects of an exported job, and what is to be known before they are applied.

A Job for each role makes its pods, `NAME-ROLE-INDEX`, whose addresses below one headless Service are the job's cluster.
Tasks that never end by themselves run under `tools/until_done.py`, those who decide under `tools/report_done.py`, which
says to the servers that its task has ended well: `reclaim_delay` after the last of them the servers end, too. So every
Job completes, without anything that watches from outside, and without a right on the cluster.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yardmaster.errors import Problem, SpecRejected
from yardmaster.job.export import tasks
from yardmaster.job.export.code import Code, config_map
from yardmaster.job.export.pods import Pods
from yardmaster.job.spec import InputMode, InputShare, Role, Strategy, SuccessRule, TrainingSpec
from yardmaster.job.spec_limits import shorten
from yardmaster.job.strategy import never_ending_roles, server_roles
from yardmaster_runner.entry_point import module_of

Manifest = dict[str, Any]
PORT = 2222
LONGEST_NAME = 40
MOST_APPLIED = 180_000
"""Bytes of one object. `kubectl apply` keeps a copy of it in an annotation, which has at most 256 KiB."""
_TOOLS = Path(__file__).with_name("tools")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,500}")
_CLAIM = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")


@dataclass(frozen=True)
class Target:
    """Where it is to run. `claim`: a PersistentVolumeClaim for data, logs and models; empty: what tasks write goes with
    their pods."""

    image: str
    claim: str = ""
    python: str = "python3"
    gpu_resource: str = "nvidia.com/gpu"
    is_chosen: bool = False
    """Whether the image is for all tasks, also where the job names others."""

    def problems(self) -> list[Problem]:
        found = []
        if not _IMAGE.fullmatch(self.image):
            message = "An image is written as Docker does, such as registry.example/team/image:tag."
            found.append(Problem("image", "bad_value", message, "Correct it.", shorten(self.image)))
        if self.claim and not _CLAIM.fullmatch(self.claim):
            message = "A claim is the name of a PersistentVolumeClaim: lower-case letters, digits and dashes."
            found.append(Problem("claim", "bad_value", message, "Correct it.", shorten(self.claim)))
        return found


@dataclass(frozen=True)
class Export:
    """The objects in the order in which they are applied, and the lines that stand above them."""

    objects: list[Manifest]
    head: list[str]


def export_of(spec: TrainingSpec, code: Code, inputs: Mapping[str, str], target: Target) -> Export:
    """The job. `inputs`: what the datasets and models are called, by the names of the job's inputs. Raises
    `SpecRejected` where it can only run in the portal."""
    if problems := [*tasks.refusals(spec), *target.problems()]:
        raise SpecRejected(problems)
    name = name_of(spec)
    labels = {"app.kubernetes.io/name": "training", "app.kubernetes.io/instance": name}
    pods = Pods(
        spec,
        name,
        code,
        target.image,
        target.claim,
        target.python,
        target.is_chosen,
        target.gpu_resource,
        cluster_of(spec, name),
    )
    objects = [config_map(_metadata(f"{name}-tools", labels), _tools(spec))]
    if code.files:
        objects.append(config_map(_metadata(f"{name}-code", labels), code.files))
    if server_roles(spec):
        objects.append(_service(name, labels))
    objects += [_job(spec, role, name, labels, pods) for role in spec.roles]
    return Export(objects, _head(spec, name, code, inputs, target, objects))


def name_of(spec: TrainingSpec) -> str:
    """What all objects are called after: the job's name as a DNS label."""
    plain = re.sub(r"[^a-z0-9]+", "-", spec.name.lower()).strip("-")[:LONGEST_NAME].strip("-")
    return plain if plain[:1].isalpha() else f"job-{plain}"[:LONGEST_NAME].strip("-")


def cluster_of(spec: TrainingSpec, name: str) -> dict[str, list[str]]:
    """The addresses of the tasks with a server, by role."""
    return {
        role.value: [f"{host_of(name, role, index)}:{PORT}" for index in range(spec.replicas(role))]
        for role in server_roles(spec)
    }


def host_of(name: str, role: Role, index: int) -> str:
    return f"{name}-{role.value}-{index}.{name}"


def _tools(spec: TrainingSpec) -> dict[str, bytes]:
    used = ["prepare.py", *(["report_done.py", "until_done.py"] if _servers(spec) else [])]
    return {name: (_TOOLS / name).read_bytes() for name in used}


def _servers(spec: TrainingSpec) -> list[Role]:
    """The roles whose tasks do not end by themselves."""
    return [role for role in spec.roles if role in never_ending_roles(spec.strategy)]


def _metadata(name: str, labels: Mapping[str, str]) -> Manifest:
    return {"name": name, "labels": dict(labels)}


def _service(name: str, labels: Mapping[str, str]) -> Manifest:
    """Each pod has a name below it from the moment it has an address: tasks look for each other while they start."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(name, labels),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": dict(labels),
            "ports": [{"name": "tensorflow", "port": PORT}],
        },
    }


def _job(spec: TrainingSpec, role: Role, name: str, labels: Mapping[str, str], pods: Pods) -> Manifest:
    own = {**labels, "app.kubernetes.io/component": role.value}
    body: Manifest = {
        "completionMode": "Indexed",
        "completions": spec.replicas(role),
        "parallelism": spec.replicas(role),
        "backoffLimit": spec.retries,
    }
    if spec.max_runtime is not None:
        body["activeDeadlineSeconds"] = int(spec.max_runtime.total_seconds())
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(f"{name}-{role.value}", own),
        "spec": {**body, "template": {"metadata": {"labels": own}, "spec": pods.pod(role, _around(spec, role, name))}},
    }


def _deciders(spec: TrainingSpec) -> dict[Role, int]:
    """The roles whose end is the end of the servers, with their tasks: the leading one, or all that train."""
    trains = [role for role in (Role.CHIEF, Role.WORKER) if role in spec.roles and role not in _servers(spec)]
    if spec.success_rule is SuccessRule.CHIEF:
        return {trains[0]: 1}
    return {role: spec.replicas(role) for role in trains}


def _around(spec: TrainingSpec, role: Role, name: str) -> list[str]:
    """What starts the task's command: nothing, where no server waits for its end."""
    servers, deciders = _servers(spec), _deciders(spec)
    if role in servers:
        awaited = [f"{one.value}-{index}" for one, count in deciders.items() for index in range(count)]
        return ["until_done.py", str(int(spec.reclaim_delay.total_seconds())), ",".join(awaited)]
    if servers and role in deciders:
        hosts = [host_of(name, one, index) for one in servers for index in range(spec.replicas(one))]
        return ["report_done.py", f"{role.value}-$({tasks.INDEX})", ",".join(hosts)]
    return []


# --- what is to be known --------------------------------------------------------------------------------------------


def _head(
    spec: TrainingSpec, name: str, code: Code, inputs: Mapping[str, str], target: Target, objects: list[Manifest]
) -> list[str]:
    large = any(len(str(one)) > MOST_APPLIED for one in objects)
    apply = "kubectl apply --server-side -f FILE" if large else "kubectl apply -f FILE"
    leading = f"{name}-{(Role.CHIEF if Role.CHIEF in spec.roles else Role.WORKER).value}"
    lines = [
        f"The job {shorten(spec.name)}, for any cluster: {apply}",
        f"Its end: kubectl wait --for=condition=complete --timeout=24h job/{leading}",
        f"Its log: kubectl logs -f job/{leading}",
        "Its removal: kubectl delete -f FILE",
        f"Image: {_images(spec, target)}. It needs Python 3.8 or newer"
        + (", TensorFlow and pip." if _installs(spec, code) else " and TensorFlow."),
    ]
    lines += _of_the_portal(spec)
    for part in (_of_code(spec, code, target), _of_volumes(spec, name, inputs, target), _of_secrets(spec, name)):
        lines += part
    if _servers(spec):
        roles = " and ".join(role.value for role in _servers(spec))
        seconds = int(spec.reclaim_delay.total_seconds())
        lines.append(
            f"Tasks of the role {roles} end {seconds} seconds after those that decide; after a failure, delete them."
        )
    if spec.strategy is Strategy.MULTI_WORKER_MIRRORED and spec.retries:
        lines.append("A worker that fails is started again; the others then fail, too, and are started again as well.")
    return lines


def _images(spec: TrainingSpec, target: Target) -> str:
    """Those of all roles, and which of them are not for everyone to pull."""
    pinned = [] if target.is_chosen else [spec.image_of(role) for role in spec.roles]
    found = dict.fromkeys(target.image if one is None else one.reference for one in pinned) or [target.image]
    private = any(one is not None and one.pull_secret for one in pinned)
    return ", ".join(found) + (" (TO DO: add imagePullSecrets to the pods, for its registry)" if private else "")


def _of_the_portal(spec: TrainingSpec) -> list[str]:
    """What the portal does for the job, and no cluster does."""
    lines = []
    if any(one.mode is InputMode.STREAM or one.share is InputShare.SHARDS for one in spec.inputs):
        lines.append(
            "TO DO: inputs are neither streamed nor shared out: every task finds all files in its data folder."
        )
    if spec.publishes is not None:
        dataset = shorten(spec.publishes.dataset)
        lines.append(f"TO DO: nothing becomes a version of the dataset {dataset}: there is no output folder.")
    if spec.connection is not None:
        name = shorten(spec.connection.name)
        lines.append(f"TO DO: the data connection {name} is not exported: set the variables IGNITE_DATASET_… yourself.")
    return lines


def _installs(spec: TrainingSpec, code: Code) -> bool:
    return bool(spec.requirements) or (spec.requirements is None and code.has("requirements.txt"))


def _of_code(spec: TrainingSpec, code: Code, target: Target) -> list[str]:
    if spec.code_version is None:
        return []
    if not code.fits:
        where = f"into the folder code of the claim {target.claim}" if target.claim else "to /code-source of the image"
        return [f"TO DO: {shorten(code.name)} is too large for a ConfigMap (1 MiB): copy its files {where}."]
    lines = []
    if spec.requirements is None and code.has("pyproject.toml") and not code.has("requirements.txt"):
        lines.append("TO DO: packages that pyproject.toml names are not installed: use an image that has them.")
    module = module_of(spec.entry_point) if spec.entry_point else None
    what = "the command" if spec.command else f"the module {module}" if module else spec.entry_point
    return [*lines, f"Code: {shorten(code.name)}, in a ConfigMap. Each task runs {shorten(what)} in a copy of it."]


def _of_volumes(spec: TrainingSpec, name: str, inputs: Mapping[str, str], target: Target) -> list[str]:
    lines = []
    for one in spec.inputs:
        words = shorten(inputs.get(one.name, str(one.version)), 120)
        place = f"data/{one.name}".rstrip("/")
        if target.claim:
            lines.append(f"TO DO: copy the files of {words} into the folder {place} of the claim {target.claim}.")
        else:
            below = f"in its folder {one.name}" if one.name else "at its top"
            lines.append(f"TO DO: put a volume with the files of {words} {below} in the place of the emptyDir data.")
    if target.claim:
        return [*lines, f"Logs and models are in the folder {name} of the claim {target.claim}, which all tasks mount."]
    return [
        *lines,
        "Logs and models go with the pods: export with a claim, or change the emptyDir results, to keep them.",
    ]


def _of_secrets(spec: TrainingSpec, name: str) -> list[str]:
    if not spec.secrets:
        return []
    keys = " ".join(
        f"--from-file={one.name}=FILE" if one.file else f"--from-literal={one.name}=VALUE" for one in spec.secrets
    )
    return [f"TO DO: values of secrets are not exported: kubectl create secret generic {name}-secrets {keys}"]
