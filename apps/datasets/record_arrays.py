"""Arrays that records hold as bytes (`raw:…` in `dataset.json`), as numbers. Pure."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from yardmaster.formats.tf_example import Feature

_ITEMS = {
    "uint8": "B", "int8": "b", "uint16": "H", "int16": "h", "int32": "i", "int64": "q", "float16": "e", "float32": "f",
    "float64": "d", "bool": "?",
}  # fmt: skip


@dataclass(frozen=True)
class RawArray:
    """An array with items of the type `dtype`, little-endian, in C order."""

    dtype: str
    shape: tuple[int, ...]


RawArrays = Mapping[str, RawArray]
"""By the name of the feature."""


def array_in(feature: Feature, about: RawArray | None) -> RawArray | None:
    """`about`, where the feature is one value of just as many bytes."""
    if about is None or about.dtype not in _ITEMS or feature.dtype != "bytes" or feature.count != 1:
        return None
    size = math.prod(about.shape) * struct.calcsize(f"<{_ITEMS[about.dtype]}")
    return about if feature.sizes == (size,) else None


def numbers_in(feature: Feature, about: RawArray, most: int) -> tuple[int | float, ...]:
    """The first `most` of the items, as far as their bytes were kept."""
    data = feature.values[0]
    assert isinstance(data, bytes), "array_in has said so"
    item = _ITEMS[about.dtype]
    count = min(most, len(data) // struct.calcsize(f"<{item}"))
    found = struct.unpack_from(f"<{count}{item}", data)
    return tuple(map(int, found)) if item == "?" else found
