"""Which image the container of a task has, how the runner comes into it, and the secrets to pull it with. Pure.

An image of the catalogue needs a `python3` and what scripts import, and nothing of ours: the runner is copied into its
pods from the engine's own image, so that it is always of the portal's own release. There it is no part of the module
search path, as the image may have one of its own (`PYTHONPATH`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from yardmaster.engines.kubernetes.render import names
from yardmaster.engines.kubernetes.render.node_pools import NodePool
from yardmaster.engines.kubernetes.render.options import TaskOptions
from yardmaster.ids import JobKey
from yardmaster.job.spec import Role, TrainingSpec

RUNNER_DIR = "/yardmaster/runner"
"""Where a copied runner lies."""
VOLUME = "runner"
_PYTHON = "python3"
"""Of images of the catalogue: by their own search path."""
_START = (
    f"import runpy, sys; sys.path.insert(0, {RUNNER_DIR!r}); "
    "runpy.run_module('yardmaster_runner', run_name='__main__', alter_sys=True)"
)
_COPY = (
    "import os, shutil, yardmaster_runner as found; "
    f"shutil.copytree(os.path.dirname(found.__file__), {RUNNER_DIR + '/yardmaster_runner'!r}, dirs_exist_ok=True)"
)


def image_of(spec: TrainingSpec, role: Role, pool: NodePool | None, options: TaskOptions) -> str:
    """That of the catalogue, by its digest; else the operator's for the nodes of this pool."""
    pinned = spec.image_of(role)
    return options.image_for(spec, pool) if pinned is None else pinned.reference


def command_of(spec: TrainingSpec, role: Role, options: TaskOptions) -> list[str]:
    """What starts the runner in it."""
    if spec.image_of(role) is not None:
        return [_PYTHON, "-c", _START]
    return [options.python, "-m", "yardmaster_runner"]


def copies_runner(spec: TrainingSpec, role: Role, options: TaskOptions) -> bool:
    """Whether the runner is copied into its pod."""
    return bool(options.runner_image) or spec.image_of(role) is not None


def runner_copy(spec: TrainingSpec, pool: NodePool | None, options: TaskOptions) -> dict[str, Any]:
    """What the container has that copies the runner: from `runner_image`, else from the image of the other tasks, in
    whose Python it is found."""
    if options.runner_image:
        command = ["cp", "-R", f"{options.runner_path.rstrip('/')}/.", RUNNER_DIR]
        return {"image": options.runner_image, "command": command}
    found = [{"name": "PYTHONPATH", "value": options.runner_path}] if options.runner_path else []
    return {"image": options.image_for(spec, pool), "command": [options.python, "-c", _COPY], "env": found}


def search_path(spec: TrainingSpec, role: Role, options: TaskOptions) -> dict[str, str]:
    """The variable by which Python finds the runner in an image of the operator's."""
    folder = RUNNER_DIR if options.runner_image else options.runner_path
    return {"PYTHONPATH": folder} if folder and spec.image_of(role) is None else {}


def marks(spec: TrainingSpec, role: Role) -> dict[str, str]:
    """By which a pod says what its image is called in the catalogue."""
    pinned = spec.image_of(role)
    return {} if pinned is None else {names.IMAGE: pinned.name}


def copied_pull_secrets(spec: TrainingSpec, key: JobKey, options: TaskOptions) -> Mapping[str, str]:
    """The names of the pull secrets that the run's images need and its namespace lacks, each with the name of the copy
    that belongs to the run. Without `pull_secrets_from` they are in the namespace already, put there by others."""
    if not options.pull_secrets_from:
        return {}
    needed = {one.pull_secret for one in map(spec.image_of, spec.roles) if one is not None and one.pull_secret}
    lacking = sorted(needed.difference(options.image_pull_secrets))
    return {name: names.pull_secret_name(key, at) for at, name in enumerate(lacking)}


def pull_secrets(spec: TrainingSpec, key: JobKey, role: Role, options: TaskOptions) -> list[str]:
    """The names of the secrets of which the node tries each: those of all images, and that of the role's own."""
    pinned = spec.image_of(role)
    own = pinned.pull_secret if pinned is not None else ""
    copies = copied_pull_secrets(spec, key, options)
    return list(dict.fromkeys([*options.image_pull_secrets, *([copies.get(own, own)] if own else [])]))
