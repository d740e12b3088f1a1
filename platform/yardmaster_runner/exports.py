"""What of the model directory is worth keeping: all of it where the script ended with exit code 0. One that was stopped
and ended in another way may have been writing any of the files: of those only complete SavedModels and `.keras` files
are kept.

Not here: the upload (`keeper`).
"""

from __future__ import annotations

import os
import re
import zipfile
from dataclasses import dataclass
from typing import Dict, List, Sequence, Set

from yardmaster_runner.upload import files_below

SAVED_MODEL = "saved_model.pb"
"""TensorFlow writes it when all variables are written."""
KERAS = ".keras"
SINGLE = (".h5", ".hdf5", ".tflite", ".onnx")
"""Endings of files that are a whole model, but for `WEIGHTS`."""
WEIGHTS = (".weights.h5", ".weights.hdf5")
OF_SAVED_MODEL = re.compile(r"(saved_model|fingerprint|keras_metadata)\.pb$|(variables|assets|assets\.extra|debug)/")
SHARD = re.compile(r"variables/variables\.data-(\d{5})-of-(\d{5})$")
TEMPORARY = re.compile(r"(^|/)temp-[^/]*/|\.tmp[^/]*$|\.tempstate\d+$|_temp(_[^/]+)?/")
"""How TensorFlow calls what it has not finished: the folder of an Estimator's export, a file before it gets its name,
the folder of a checkpoint's shards."""


@dataclass(frozen=True)
class Export:
    """`paths`, relative to the model directory, can be kept; `problem` says what cannot, empty where all can."""

    paths: List[str]
    problem: str = ""


def find_export(model_dir: str, *, is_finished: bool, models_alone: bool = False) -> Export:
    """What to keep of the directory. `is_finished`: the script has written all that it wanted to. `models_alone`: it is
    the log directory as well, so that what is no model is left where it is."""
    paths = files_below(model_dir)
    if models_alone:
        return Export(_models_among(model_dir, paths, is_finished=is_finished))
    if is_finished or not paths:
        return Export(paths)
    complete = _complete_models(paths)
    kept = [path for path in paths if any(path.startswith(one) for one in complete) and not TEMPORARY.search(path)]
    kept = sorted({*kept, *(path for path in paths if _is_complete_keras(model_dir, path))})
    left_out = sorted(set(paths) - set(kept))
    if not left_out:
        return Export(kept)
    shown = ", ".join(left_out[:3]) + (", …" if len(left_out) > 3 else "")
    what = "a part of it" if kept else "the model"
    return Export(
        kept, "%s was not saved: the script did not end with exit code 0, and may not have finished %s" % (what, shown)
    )


def _models_among(model_dir: str, paths: List[str], *, is_finished: bool) -> List[str]:
    """The files of complete SavedModels, `.keras` files, and, where nothing is being written any more, other files that
    are a model each."""
    complete = _complete_models(paths)
    of_models = (path for path in paths if any(_is_of_saved_model(one, path) for one in complete))
    kept = {path for path in of_models if not TEMPORARY.search(path)}
    kept.update(path for path in paths if _is_complete_keras(model_dir, path))
    if is_finished:
        kept.update(path for path in paths if path.lower().endswith(SINGLE) and not path.lower().endswith(WEIGHTS))
    return sorted(kept)


def _is_of_saved_model(prefix: str, path: str) -> bool:
    """Whether it is a file of the SavedModel in this folder: beside that other things may lie."""
    return path.startswith(prefix) and bool(OF_SAVED_MODEL.match(path[len(prefix) :]))


def _complete_models(paths: List[str]) -> Set[str]:
    """The folders, each with a `/` at its end (the model directory itself: empty), that are complete SavedModels."""
    found = set()
    for path in paths:
        folder, name = os.path.split(path)
        prefix = folder + "/" if folder else ""
        if name == SAVED_MODEL and not TEMPORARY.search(path) and has_variables(prefix, paths):
            found.add(prefix)
    return found


def has_variables(prefix: str, paths: Sequence[str]) -> bool:
    """Whether the index of its variables and every shard are there, or it has no variables."""
    below = {path[len(prefix) :] for path in paths if path.startswith(prefix + "variables/")}
    counts: Dict[int, int] = {}
    for path in below:
        match = SHARD.match(path)
        if match:
            of = int(match.group(2))
            counts[of] = counts.get(of, 0) + 1
    if not below:
        return True
    return "variables/variables.index" in below and len(counts) == 1 and all(of == n for of, n in counts.items())


def _is_complete_keras(model_dir: str, path: str) -> bool:
    """Whether it is a `.keras` file, a ZIP, that has its directory, which is written last."""
    return path.endswith(KERAS) and not TEMPORARY.search(path) and zipfile.is_zipfile(os.path.join(model_dir, path))
