"""Which format a model's files have, by their names, and what is read from them (`read_model`, in a sandbox)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from yardmaster.formats.keras_file import NotKeras, keras_facts
from yardmaster.formats.saved_model import saved_model_facts
from yardmaster_runner.protowire import WireError


class ModelFormat(StrEnum):
    """How a model is stored."""

    SAVED_MODEL = "saved_model"
    KERAS = "keras"
    HDF5 = "hdf5"
    TFLITE = "tflite"
    ONNX = "onnx"
    CHECKPOINT = "checkpoint"
    OTHER = "other"


FRAMEWORKS = {
    ModelFormat.SAVED_MODEL: "TensorFlow",
    ModelFormat.KERAS: "Keras",
    ModelFormat.HDF5: "Keras",
    ModelFormat.TFLITE: "LiteRT",
    ModelFormat.ONNX: "ONNX",
    ModelFormat.CHECKPOINT: "TensorFlow",
    ModelFormat.OTHER: "",
}
SAVED_MODEL = "saved_model.pb"
_BY_ENDING = {
    ".keras": ModelFormat.KERAS,
    ".h5": ModelFormat.HDF5,
    ".hdf5": ModelFormat.HDF5,
    ".tflite": ModelFormat.TFLITE,
    ".onnx": ModelFormat.ONNX,
    ".index": ModelFormat.CHECKPOINT,
}
_READ = (ModelFormat.SAVED_MODEL, ModelFormat.KERAS)


@dataclass(frozen=True)
class FoundModel:
    """The format, and the file that says so: its path, or empty."""

    format: ModelFormat
    path: str = ""

    @property
    def is_read(self) -> bool:
        """Whether the file says more than its name."""
        return self.format in _READ


def find_model(paths: Iterable[str]) -> FoundModel:
    """The model among these files: a SavedModel before a file of one format, the one nearest to the top, and of several
    versions in numbered folders the last."""
    found: list[tuple[int, int, int, str, ModelFormat]] = []
    for path in paths:
        folder, _, name = path.rpartition("/")
        ending = os.path.splitext(name)[1].lower()
        kind = ModelFormat.SAVED_MODEL if name == SAVED_MODEL else _BY_ENDING.get(ending)
        if kind is not None:
            last = folder.rpartition("/")[2]
            number = -int(last) if last.isascii() and last.isdigit() and len(last) <= 20 else 0
            found.append((list(ModelFormat).index(kind), path.count("/"), number, path, kind))
    if not found:
        return FoundModel(ModelFormat.OTHER)
    *_, path, kind = min(found)
    return FoundModel(kind, path)


def read_model(kind: str, place: str) -> dict[str, Any]:
    """What the file at `place` says: `version`, `signatures`, perhaps `tags`; or `problem`. Called in a sandbox."""
    try:
        with open(place, "rb") as source:
            if kind == ModelFormat.SAVED_MODEL:
                return saved_model_facts(source, os.fstat(source.fileno()).st_size)
            return keras_facts(source)
    except (WireError, NotKeras) as error:
        return {"problem": f"The file cannot be read: {str(error)[:200]}."}
