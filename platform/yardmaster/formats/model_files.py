"""Which format a model's files have, by their names, and what is read from them (`read_model`, in a sandbox)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from yardmaster.formats.keras_file import NotKeras, keras_facts
from yardmaster.formats.saved_model import saved_model_facts
from yardmaster_runner.model_choice import model_among
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
_READ = (ModelFormat.SAVED_MODEL, ModelFormat.KERAS)


@dataclass(frozen=True)
class FoundModel:
    """The format, and the file that says so: its path, or empty."""

    format: ModelFormat
    path: str = ""

    @property
    def is_read(self) -> bool:
        """Whether the file says more than its name."""
        return self.format in _READ and not self.path.endswith(".pbtxt")


def find_model(paths: Iterable[str]) -> FoundModel:
    """The model among these files, which is also the one that a model server loads."""
    found = model_among(paths)
    return FoundModel(ModelFormat.OTHER) if found is None else FoundModel(ModelFormat(found[0]), found[1])


def read_model(kind: str, place: str) -> dict[str, Any]:
    """What the file at `place` says: `version`, `signatures`, perhaps `tags`; or `problem`. Called in a sandbox."""
    try:
        with open(place, "rb") as source:
            if kind == ModelFormat.SAVED_MODEL:
                return saved_model_facts(source, os.fstat(source.fileno()).st_size)
            return keras_facts(source)
    except (WireError, NotKeras) as error:
        return {"problem": f"The file cannot be read: {str(error)[:200]}."}
