"""A serialized `tf.train.Example` as values by name, arrays where the description says so. TensorFlow's protobuf."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Mapping

from yardmaster_runner.data.description import Feature


@dataclass(frozen=True)
class Picture:
    """An encoded picture: for a model that takes bytes as it is, for one that takes pixels to be decoded."""

    data: bytes


DTYPES = {"float_list": "float32", "int64_list": "int64"}


def values_of(data: bytes, features: Mapping[str, Feature]) -> Dict[str, Any]:
    """Numbers as arrays; bytes as bytes, or a list of them; pictures as `Picture`. Raises ValueError for what is no
    example, or not what its description says."""
    import tensorflow as tf

    try:
        example = tf.train.Example.FromString(data)
    except Exception as error:  # noqa: BLE001 - protobuf's own, wherever this release has it
        raise ValueError("no tf.train.Example: %s" % (str(error) or type(error).__name__)[:200]) from None
    return {name: _value(name, one, features.get(name)) for name, one in example.features.feature.items()}


def _value(name: str, one: Any, known: Any) -> Any:
    import numpy

    kind = one.WhichOneof("kind")
    if kind is None:
        return []
    found = getattr(one, kind).value
    if kind in DTYPES:
        array = numpy.array(found, dtype=DTYPES[kind])
        return array.reshape(()) if array.size == 1 and (known is None or known.shape == ()) else array
    if len(found) != 1:
        return list(found)
    if known is not None and known.encoding.startswith("raw:"):
        return _array(name, found[0], known)
    return Picture(found[0]) if known is not None and known.encoding == "image" else found[0]


def _array(name: str, data: bytes, known: Feature) -> Any:
    import numpy

    try:
        array = numpy.frombuffer(data, numpy.dtype(known.encoding.partition(":")[2]).newbyteorder("<"))
        return array if known.shape is None else array.reshape(known.shape)
    except ValueError:
        raise ValueError("%s has %d bytes, which is no %s" % (name, len(data), known.encoding[4:])) from None
