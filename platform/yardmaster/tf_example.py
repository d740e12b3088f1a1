"""tf.train.Example messages, decoded from their protocol-buffer bytes without TensorFlow or protobuf.

Only reading, and only the three messages Example, Features and Feature. Not here: the files they come in (`tfrecord`).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_KINDS = {1: "bytes", 2: "float", 3: "int64"}


class NotAnExample(ValueError):
    """The bytes are no tf.train.Example."""


@dataclass(frozen=True)
class Feature:
    """One feature: `dtype` is `bytes`, `float`, `int64`, or empty for a feature without a list."""

    dtype: str
    values: tuple[bytes | float | int, ...]


def parse_example(data: bytes, only: str | None = None) -> dict[str, Feature]:
    """The features by name, or `only` this one. Raises `NotAnExample`."""
    features: dict[str, Feature] = {}
    try:
        for field, value in _fields(data):
            if field == 1:
                for entry_field, entry in _fields(_message(value)):
                    if entry_field == 1:
                        name, content = _entry(_message(entry))
                        if only in (None, name):
                            features[name] = _feature(content)
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise NotAnExample(f"the bytes are no tf.train.Example: {error}") from error
    if data and not features and only is None:
        raise NotAnExample("the bytes hold no feature")
    return features


def _entry(data: bytes) -> tuple[str, bytes]:
    name, content = "", b""
    for field, value in _fields(data):
        if field == 1:
            name = _message(value).decode()
        elif field == 2:
            content = _message(value)
    return name, content


def _feature(data: bytes) -> Feature:
    feature = Feature("", ())
    for kind, content in _fields(data):
        if kind in _KINDS:
            feature = Feature(_KINDS[kind], tuple(_values(kind, _message(content))))
    return feature


def _values(kind: int, data: bytes) -> Iterator[bytes | float | int]:
    """A list's values; numbers may stand packed or one by one."""
    for field, value in _fields(data):
        if field != 1:
            continue
        if kind == 1:
            yield _message(value)
        elif kind == 2:
            raw = value if isinstance(value, bytes) else b""
            yield from (number for (number,) in struct.iter_unpack("<f", raw))
        elif isinstance(value, int):
            yield _signed(value)
        else:
            at = 0
            while at < len(value):
                number, at = _varint(value, at)
                yield _signed(number)


def _fields(data: bytes) -> Iterator[tuple[int, bytes | int]]:
    """(number, value) of a message's fields: an int for varints, else the bytes."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == _VARINT:
            value, at = _varint(data, at)
            yield tag >> 3, value
            continue
        if kind == _BYTES:
            size, at = _varint(data, at)
        elif kind in (_FIXED32, _FIXED64):
            size = 4 if kind == _FIXED32 else 8
        else:
            raise NotAnExample(f"the bytes hold a field of kind {kind}")
        if at + size > len(data):
            raise NotAnExample("a field is longer than its message")
        yield tag >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7
        if shift > 63:
            raise NotAnExample("a number has more than 64 bits")


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


def _message(value: bytes | int) -> bytes:
    if isinstance(value, int):
        raise NotAnExample("a number stands where a message should")
    return value
