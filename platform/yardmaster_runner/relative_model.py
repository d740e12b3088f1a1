"""The model that a script has saved in its working folder, where it has left nothing in its model directory: a complete
SavedModel, or else a `.keras` file, or else an HDF5 file; of several the newest. Weights alone are no model.
"""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass
from typing import FrozenSet, List, Optional, Sequence, Tuple

from yardmaster_runner.exports import KERAS, SAVED_MODEL, TEMPORARY, has_variables
from yardmaster_runner.keras_checkpoints import HDF5 as HDF5_MAGIC
from yardmaster_runner.output_files import OutputFile, open_below

HDF5 = (".h5", ".hdf5")
WEIGHTS = (".weights.h5", ".weights.hdf5")
OF_SAVED_MODEL = ("variables/", "assets/", "assets.extra/")
BESIDE_SAVED_MODEL = (SAVED_MODEL, "keras_metadata.pb", "fingerprint.pb")


@dataclass(frozen=True)
class RelativeModel:
    """`paths` are those of the version's files; with `prefix` in front of them they are relative to `root`, the working
    folder. `found_in`: the SavedModel's folder or the file, as that has it."""

    found_in: str
    root: str
    prefix: str
    paths: List[str]
    in_working_folder: FrozenSet[str]


def find_relative_model(root: str, written: Sequence[OutputFile], *, is_finished: bool) -> Optional[RelativeModel]:
    """The best of the files that the script has `written` below `root`. `is_finished`: it has written all that it
    wanted to; else nothing that may be cut off is a model."""
    paths = [one.path for one in written]
    found: List[Tuple[int, int, str]] = []
    for one in written:
        rank = _rank(root, one.path, paths, is_finished=is_finished)
        if rank is not None:
            found.append((rank, -one.modified, one.path))
    if not found:
        return None
    rank, _, path = min(found)
    folder, _, name = path.rpartition("/")
    prefix = folder + "/" if folder else ""
    if rank:
        return RelativeModel(path, root, prefix, [name], frozenset([path]))
    inside = [one for one in paths if one.startswith(prefix) and (folder or _is_of_saved_model(one))]
    below = [one[len(prefix) :] for one in inside]
    return RelativeModel(folder or ".", root, prefix, below, frozenset(inside))


def _rank(root: str, path: str, paths: Sequence[str], *, is_finished: bool) -> Optional[int]:
    """The lower the better; None: it is no model."""
    folder, _, name = path.rpartition("/")
    if TEMPORARY.search(path):
        return None
    if name == SAVED_MODEL:
        return 0 if has_variables(folder + "/" if folder else "", paths) else None
    if name.endswith(KERAS):
        return 1 if _is_zip(root, path) else None
    if is_finished and name.endswith(HDF5) and not name.endswith(WEIGHTS):
        return 2 if _begins(root, path, HDF5_MAGIC) else None
    return None


def _is_of_saved_model(path: str) -> bool:
    return path in BESIDE_SAVED_MODEL or path.startswith(OF_SAVED_MODEL)


def _is_zip(root: str, path: str) -> bool:
    """Whether it has its directory, which is written last."""
    try:
        with os.fdopen(open_below(root, path), "rb") as file:
            return zipfile.is_zipfile(file)
    except OSError:
        return False


def _begins(root: str, path: str, magic: bytes) -> bool:
    try:
        with os.fdopen(open_below(root, path), "rb") as file:
            return file.read(len(magic)) == magic
    except OSError:
        return False
