"""What the pod of a notebook has beside what every task's has: a Python of its own that its user may install into, and
a home that keeps the user's files between sessions. Of the home there is a claim for each user in the cluster's
namespace, made before the first session's pod and gone with the namespace. Pure; making it is `submission`."""

from __future__ import annotations

import uuid
from typing import Any

from yardmaster.engines.kubernetes.render import names
from yardmaster.engines.kubernetes.render.options import TaskOptions
from yardmaster.engines.kubernetes.render.volumes import CLAIM
from yardmaster.ids import JobKey, short
from yardmaster.job.programs import JUPYTER
from yardmaster.job.spec import TrainingSpec
from yardmaster.quantity import parse_memory

HOME_DIR = "/yardmaster/home"
"""Where the notebook's pod has it."""
_OWNER = "owner"
"""The program's option that names the user."""

Manifest = dict[str, Any]


def claims(spec: TrainingSpec, key: JobKey, options: TaskOptions) -> list[Manifest]:
    """The manifest of the claim that the job's pod needs; none of most jobs. A session has one pod, so one node writes
    to it at a time."""
    name = _claim_name(spec, options)
    if not name:
        return []
    wanted: Manifest = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": str(parse_memory(options.home_size))}},
    }
    if options.home_class:
        wanted["storageClassName"] = options.home_class
    labels = {
        names.MANAGED_BY: names.US,
        names.NAMESPACE_ID: str(key.namespace_id),
        names.USER: str(spec.options[_OWNER]),
        names.HOME: name,
    }
    place = names.namespace_name(key.namespace_id, options)
    metadata = {"name": name, "namespace": place, "labels": labels}
    return [{"apiVersion": "v1", "kind": CLAIM, "metadata": metadata, "spec": wanted}]


def labels(spec: TrainingSpec, options: TaskOptions) -> dict[str, str]:
    """By which the pod says whose events concern it."""
    name = _claim_name(spec, options)
    return {names.HOME: name} if name else {}


def equip(pod: Manifest, spec: TrainingSpec, options: TaskOptions) -> None:
    """Mount the home into the pod of a notebook, and tell the runner of what there is; of other pods nothing."""
    if spec.program != JUPYTER:
        return
    container, name = pod["containers"][0], _claim_name(spec, options)
    container["env"].append({"name": "YARDMASTER_OWN_PYTHON", "value": "1"})
    if name:
        pod["volumes"].append({"name": "home", "persistentVolumeClaim": {"claimName": name}})
        container["volumeMounts"].append({"name": "home", "mountPath": HOME_DIR})
        container["env"].append({"name": "YARDMASTER_HOME_DIR", "value": HOME_DIR})


def home_name(owner_id: uuid.UUID) -> str:
    """Of the claim of this user's home, in each namespace."""
    return f"home-{short(owner_id)}"


def _claim_name(spec: TrainingSpec, options: TaskOptions) -> str:
    """Of the user's id alone; empty where the job has no home."""
    if spec.program != JUPYTER or not options.home_size:
        return ""
    return home_name(uuid.UUID(str(spec.options[_OWNER])))
