"""Just enough of the protocol buffer wire format to walk through messages. Not here: what they mean (`events`)."""

from __future__ import annotations

import struct
from typing import Iterator, Tuple, Union

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
Value = Union[int, bytes]


class WireError(ValueError):
    """The bytes are not a message."""


def fields(message: bytes) -> Iterator[Tuple[int, int, Value]]:
    """(field number, wire type, value) of each field; varints as unsigned integers, all else as raw bytes."""
    at, end = 0, len(message)
    while at < end:
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        value: Value
        if kind == VARINT:
            value, at = _varint(message, at)
        else:
            if kind == BYTES:
                length, at = _varint(message, at)
            elif kind in (FIXED64, FIXED32):
                length = 8 if kind == FIXED64 else 4
            else:
                raise WireError("wire type %d" % kind)
            if at + length > end:
                raise WireError("a field goes past the end")
            value, at = message[at : at + length], at + length
        yield number, kind, value


def _varint(message: bytes, at: int) -> Tuple[int, int]:
    result = shift = 0
    while True:
        if at >= len(message) or shift > 63:
            raise WireError("a varint does not end")
        byte = message[at]
        result |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return result, at
        shift += 7


def as_signed(value: Value) -> int:
    """An int64 field's value."""
    if not isinstance(value, int):
        raise WireError("a number was expected")
    return value - (1 << 64) if value >= 1 << 63 else value


def as_bytes(value: Value) -> bytes:
    """The content of a length-delimited or fixed field."""
    if not isinstance(value, bytes):
        raise WireError("bytes were expected")
    return value


def as_double(value: Value) -> float:
    return float(_unpack("<d", value))


def as_float(value: Value) -> float:
    return float(_unpack("<f", value))


def _unpack(form: str, value: Value) -> float:
    try:
        number: float = struct.unpack(form, as_bytes(value))[0]
    except struct.error as error:
        raise WireError(str(error)) from error
    return number
