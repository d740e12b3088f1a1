"""A job as manifests for a cluster without the portal: its code from the store, which the audit records as a download
of it, and the names of its inputs. Not here: what the manifests are (`yardmaster.job.export`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import yaml

from apps.accounts.models import User
from apps.audit.services import download_record
from apps.code.selectors import CODE
from apps.datasets.selectors import DATASETS
from apps.errors import NotFound
from apps.jobs.engines.configured import engine_named
from apps.registry.selectors import MODELS
from apps.stores import storage
from apps.uploads.versioned.selectors import VersionStore, files_of, parent_of, version_for
from yardmaster.errors import Problem, SpecRejected, YardmasterError
from yardmaster.ids import JobKey
from yardmaster.job.export import Code, Target, export_of
from yardmaster.job.export.code import MOST_FILES, fits
from yardmaster.job.spec import TrainingSpec

_WIDTH = 1_000
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?0[xob][0-9a-fA-F]+")
"""What kubectl's reader takes for a number where it has no quotes. The dumper knows only those of YAML 1.1."""
MOST = 4 << 20
"""Characters of an export: variables that stand for each other make much of little."""
USUAL_IMAGE = "tensorflow/tensorflow:2.21.0"
"""Of a job whose engine has no images."""


class _Dumper(yaml.SafeDumper):
    """Files as blocks of text, and everything written out."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = "|" if "\n" in text else "'" if _NUMBER.fullmatch(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def exported_yaml(user: User, spec: TrainingSpec, key: JobKey, engine: str, *, image: str = "", claim: str = "") -> str:
    """The file for `kubectl apply`. Raises `SpecRejected` where the job can only run in the portal, `NotFound` where
    its code is gone or not for this user."""
    target = replace(_target(spec, key, engine), claim=claim)
    if image:
        target = replace(target, image=image, is_chosen=True)
    made = export_of(spec, _code(user, spec), _inputs(user, spec), target)
    if (size := _characters(made.objects)) > MOST:
        message = f"The manifests would have {size} characters; the most is {MOST}."
        remedy = "Shorten the arguments and the variables that others name."
        raise SpecRejected([Problem("", "too_large", message, remedy, str(size))])
    head = "".join(f"# {line}\n" for line in made.head)
    text: str = yaml.dump_all(
        made.objects, Dumper=_Dumper, sort_keys=False, allow_unicode=True, explicit_start=True, width=_WIDTH
    )
    return head + text


def _characters(part: Any) -> int:
    if isinstance(part, Mapping):
        return sum(len(name) + _characters(one) for name, one in part.items())
    if isinstance(part, list | tuple):
        return sum(_characters(one) for one in part)
    return len(part) if isinstance(part, str) else 1


def _target(spec: TrainingSpec, key: JobKey, engine: str) -> Target:
    """The image, the interpreter and the name of GPUs that the job's engine has, where it makes pods."""
    try:
        objects = engine_named(engine).preview(spec, key, None)
    except YardmasterError:  # its options have changed since, or it is not one of the settings any more
        objects = []
    containers = [
        one["spec"]["template"]["spec"]["containers"][0] for one in objects if one.get("kind") in ("Job", "StatefulSet")
    ]
    if not containers:
        return Target(USUAL_IMAGE)
    named = {one.reference for one in spec.pinned_images}
    own = next((one for one in containers if one["image"] not in named), containers[0])
    return Target(own["image"], python=own["command"][0], gpu_resource=_gpus(spec, containers))


def _gpus(spec: TrainingSpec, containers: Sequence[Mapping[str, Any]]) -> str:
    """What the engine calls a GPU: the one resource of the containers that the job does not name itself."""
    extended = {name for one in spec.roles.values() for name in one.resources.extended}
    known = {"cpu", "memory", "ephemeral-storage"} | extended
    names = (name for one in containers for name in one["resources"]["limits"])
    return next((name for name in names if name not in known), Target("").gpu_resource)


def _code(user: User, spec: TrainingSpec) -> Code:
    if spec.code_version is None:
        return Code("", {})
    version = version_for(CODE, user, spec.code_version)
    name = f"{parent_of(version).name}@{version.number}"
    files = []
    for one in files_of(version):
        files.append(one)
        if len(files) > MOST_FILES:
            return Code(name, None)
    if not fits({one.path: one.size for one in files}):
        return Code(name, None)
    parent = parent_of(version)
    download_record(user, CODE.noun, parent.pk, parent.namespace, name=parent.name, version=version.number)
    return Code(name, {one.path: _read(one.key, one.size) for one in files})


def _read(key: str, size: int) -> bytes:
    with storage().open_range(key) as stream:
        data: bytes = stream.read(size)
    return data


def _inputs(user: User, spec: TrainingSpec) -> dict[str, str]:
    """What the inputs are called, by their names in the job."""
    return {one.name: _called(user, one) for one in spec.inputs}


def _called(user: User, one: Any) -> str:
    store: VersionStore[Any, Any] = DATASETS if one.model_version is None else MODELS
    what = "the dataset" if one.model_version is None else "the model"
    try:
        version = version_for(store, user, one.version)
    except NotFound:
        return f"{what} version {one.version}"
    return f"{what} {parent_of(version).name}@{version.number}"
