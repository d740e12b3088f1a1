"""Which of a version's files is its model, by their names alone. The portal shows the model that this finds, and the
model server and batch inference load it. Pure.
"""

from __future__ import annotations

import os
from typing import Iterable, List, Optional, Tuple

SAVED_MODEL, KERAS, HDF5, TFLITE, ONNX, CHECKPOINT = "saved_model", "keras", "hdf5", "tflite", "onnx", "checkpoint"
SERVED = (SAVED_MODEL, KERAS, HDF5)
"""The formats that a model server loads."""
_FORMATS = (*SERVED, TFLITE, ONNX, CHECKPOINT)
_BY_NAME = {"saved_model.pb": SAVED_MODEL, "saved_model.pbtxt": SAVED_MODEL}
_BY_ENDING = {
    ".keras": KERAS,
    ".h5": HDF5,
    ".hdf5": HDF5,
    ".tflite": TFLITE,
    ".onnx": ONNX,
    ".index": CHECKPOINT,
}
_WEIGHTS = (".weights.h5", ".weights.hdf5")
_MOST_DIGITS = 20


def model_among(paths: Iterable[str]) -> Optional[Tuple[str, str]]:
    """(format, path) of the model; None where there is none. A format before those that follow it in `_FORMATS`; of one
    format the file nearest to the top, then that in the folder with the highest number, then the first by name. A
    SavedModel comes before all else, so that the files of its own folder are never the model."""
    found: List[Tuple[int, int, int, str]] = []
    for path in paths:
        folder, _, name = path.rpartition("/")
        kind = _format_of(name)
        if kind:
            found.append((_FORMATS.index(kind), path.count("/"), -_number(folder.rpartition("/")[2]), path))
    if not found:
        return None
    place, _, _, path = min(found)
    return _FORMATS[place], path


def _format_of(name: str) -> str:
    """A file with weights alone is no model: nothing says which layers they are of."""
    if name.lower().endswith(_WEIGHTS):
        return ""
    return _BY_NAME.get(name) or _BY_ENDING.get(os.path.splitext(name)[1].lower(), "")


def _number(folder: str) -> int:
    """Of a folder that is called by a number; before those are no others."""
    return int(folder) if folder.isascii() and folder.isdigit() and len(folder) <= _MOST_DIGITS else -1
