"""What a `.keras` file says of itself: the inputs and outputs of its model, and the version of Keras that wrote it.

It is a ZIP with `config.json` and `metadata.json`; the weights are passed over. Called within a sandbox alone.
"""

from __future__ import annotations

import json
import zipfile
from typing import Any, BinaryIO

from yardmaster.storable import storable

LARGEST_CONFIG = 16 << 20
"""Bytes of a description when it is unpacked."""
MOST_LAYERS = 20_000
TENSORS, DIMENSIONS, LONGEST_NAME = 100, 32, 200


class NotKeras(ValueError):
    """The file is no `.keras` file that can be read."""


def keras_facts(source: BinaryIO) -> dict[str, Any]:
    """`version` and `signatures`: one, of calling the model. Raises `NotKeras`."""
    try:
        with zipfile.ZipFile(source) as archive:
            config, metadata = _json_of(archive, "config.json"), _json_of(archive, "metadata.json")
    except (zipfile.BadZipFile, NotImplementedError, EOFError, RecursionError, OSError, ValueError, KeyError) as error:
        raise NotKeras(str(error) or type(error).__name__) from error
    inputs, outputs = _inputs(config), _outputs(config)
    call = {"name": "call", "method": "", "inputs": inputs, "outputs": outputs}
    return {"version": _text(metadata.get("keras_version")), "signatures": [call] if inputs or outputs else []}


def _json_of(archive: zipfile.ZipFile, name: str) -> dict[str, Any]:
    with archive.open(name) as file:
        data = file.read(LARGEST_CONFIG + 1)
    if len(data) > LARGEST_CONFIG:
        raise ValueError(f"{name} is too large")
    found = json.loads(data)
    if not isinstance(found, dict):
        raise ValueError(f"{name} is no object")
    return found


def _inputs(config: dict[str, Any]) -> list[dict[str, Any]]:
    layers = [one for one in _layers(config) if one.get("class_name") == "InputLayer"]
    found = [_input(_table(one.get("config"))) for one in layers[:TENSORS]]
    if found:
        return found
    shape = _shape(_table(config.get("build_config")).get("input_shape"))
    return [] if shape is None else [{"name": "inputs", "dtype": "", "shape": shape}]


def _input(config: dict[str, Any]) -> dict[str, Any]:
    shape = _shape(config.get("batch_shape", config.get("batch_input_shape")))
    dtype = config.get("dtype")
    if isinstance(dtype, dict):  # a policy
        dtype = _table(dtype.get("config")).get("name")
    return {"name": _text(config.get("name")), "dtype": _text(dtype), "shape": shape}


def _outputs(config: dict[str, Any]) -> list[dict[str, Any]]:
    """By name alone: their shapes are known when the model runs."""
    named = _table(config.get("config")).get("output_layers")
    if isinstance(named, list) and named and isinstance(named[0], str):
        named = [named]
    rows = named if isinstance(named, list) else []
    found: list[Any] = [one[0] for one in rows[:TENSORS] if isinstance(one, list) and one]
    layers = _layers(config)
    if not found and layers:
        found = [_table(layers[-1].get("config")).get("name")]
    return [{"name": _text(one), "dtype": "", "shape": None} for one in found if _text(one)]


def _layers(config: dict[str, Any]) -> list[dict[str, Any]]:
    layers = _table(config.get("config")).get("layers")
    return [one for one in layers[:MOST_LAYERS] if isinstance(one, dict)] if isinstance(layers, list) else []


def _shape(value: object) -> list[int | None] | None:
    if not isinstance(value, list) or len(value) > DIMENSIONS:
        return None
    return list(value) if all(one is None or _is_length(one) for one in value) else None


def _is_length(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return storable(value[:LONGEST_NAME]) if isinstance(value, str) else ""
