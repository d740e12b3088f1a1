"""What the pods of a task have whose image is one of the catalogue: that image, what starts the runner in it, and the
secrets to pull it with. Pure.

Such an image needs a `python3` and what scripts import, and nothing of ours: the runner is copied into its pods from
the engine's own image (`pods`), so that it is always of the portal's own release. It is no part of the module search
path, as the image may have one of its own (`PYTHONPATH`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from yardmaster.engines.kubernetes.render import names
from yardmaster.engines.kubernetes.render.options import TaskOptions
from yardmaster.ids import JobKey
from yardmaster.job.spec import TrainingSpec
from yardmaster.job.spec_images import PinnedImage

RUNNER_DIR = "/yardmaster/runner"
"""Where a copied runner lies."""
SEARCH_PATH = "PYTHONPATH"
_PYTHON = "python3"
"""By the image's own search path: the operator's `python` is that of the operator's image."""
_START = (
    f"import runpy, sys; sys.path.insert(0, {RUNNER_DIR!r}); "
    "runpy.run_module('yardmaster_runner', run_name='__main__', alter_sys=True)"
)
COPY = (
    "import os, shutil, yardmaster_runner as found; "
    f"shutil.copytree(os.path.dirname(found.__file__), {RUNNER_DIR + '/yardmaster_runner'!r}, dirs_exist_ok=True)"
)
"""What a Python with the runner is told to copy it."""


def run_in(image: PinnedImage, template: dict[str, Any], spec: TrainingSpec, key: JobKey, options: TaskOptions) -> None:
    """Have the task of this template run in the image. The node tries each secret; no container sees any."""
    pod = template["spec"]
    (task,) = pod["containers"]
    task["image"], task["command"] = image.reference, [_PYTHON, "-c", _START]
    task["env"] = [one for one in task["env"] if one["name"] != SEARCH_PATH]
    template["metadata"]["annotations"] = {names.IMAGE: image.name}
    if image.pull_secret:
        name = copied_pull_secrets(spec, key, options).get(image.pull_secret, image.pull_secret)
        there = pod.get("imagePullSecrets", [])
        pod["imagePullSecrets"] = [*there, *([] if {"name": name} in there else [{"name": name}])]


def copied_pull_secrets(spec: TrainingSpec, key: JobKey, options: TaskOptions) -> Mapping[str, str]:
    """The names of the pull secrets that the run's images need and its namespace lacks, each with the name of the copy
    that belongs to the run. Without `pull_secrets_from` they are in the namespace already, put there by others."""
    if not options.pull_secrets_from:
        return {}
    needed = {one.pull_secret for one in map(spec.image_of, spec.roles) if one is not None and one.pull_secret}
    lacking = sorted(needed.difference(options.image_pull_secrets))
    return {name: names.pull_secret_name(key, at) for at, name in enumerate(lacking)}
