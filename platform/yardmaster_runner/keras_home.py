"""Where Keras looks for datasets and weights that were attached instead of downloaded. `KERAS_HOME` tells Keras 3;
Keras 2 reads no variable and looks into `~/.keras`, and each version has its own name for some archives. So that one
dataset serves them all, `~/.keras` leads to the folder, and the archives have all of their names there.
"""

from __future__ import annotations

import contextlib
import os
from typing import Mapping

VARIABLE = "KERAS_HOME"
OTHER_NAMES = {
    "cifar-10-batches-py.tar.gz": ("cifar-10-batches-py_archive", "cifar-10-batches-py-target_archive"),
    "cifar-100-python.tar.gz": ("cifar-100-python_archive", "cifar-100-python-target_archive"),
}
"""Of Keras 3, by that of Keras 2."""


def lead_there(environment: Mapping[str, str], work_dir: str) -> None:
    """What is there already stays, and a home outside of the task's folder is left alone. Never raises: without it a
    script says itself what it does not find."""
    top, home = environment.get(VARIABLE, ""), environment.get("HOME", "")
    if not top or not home or not os.path.isabs(top) or not _is_within(home, work_dir):
        return
    if not os.path.isdir(top):
        return
    with contextlib.suppress(OSError):
        os.symlink(top, os.path.join(home, ".keras"))
    for name, others in OTHER_NAMES.items():
        source = os.path.join(top, "datasets", name)
        for other in others if os.path.isfile(source) else ():
            with contextlib.suppress(OSError):
                os.symlink(name, os.path.join(top, "datasets", other))


def _is_within(path: str, folder: str) -> bool:
    real, top = os.path.realpath(path), os.path.realpath(folder)
    return real == top or real.startswith(top + os.sep)
