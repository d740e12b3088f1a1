"""Just enough of the protocol buffer wire format to walk through messages. Not here: what they mean (`events`)."""

from __future__ import annotations

import struct
from typing import Iterator, Tuple, TypeVar, Union

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
Buffer = TypeVar("Buffer", bytes, memoryview)
Value = Union[int, bytes]
_BITS_64 = (1 << 64) - 1


class WireError(ValueError):
    """The bytes are not a message."""


def fields(message: Buffer) -> Iterator[Tuple[int, int, Union[int, Buffer]]]:
    """(field number, wire type, value) of each field; varints as unsigned integers, all else as a slice of the message.
    Raises `WireError`."""
    at, end = 0, len(message)
    while at < end:
        key, at = varint(message, at)
        number, kind = key >> 3, key & 7
        value: Union[int, Buffer]
        if kind == VARINT:
            value, at = varint(message, at)
        else:
            if kind == BYTES:
                length, at = varint(message, at)
            elif kind in (FIXED64, FIXED32):
                length = 8 if kind == FIXED64 else 4
            else:
                raise WireError("wire type %d" % kind)
            if at + length > end:
                raise WireError("a field goes past the end")
            value, at = message[at : at + length], at + length
        yield number, kind, value


def varint(message: Union[bytes, memoryview], at: int) -> Tuple[int, int]:
    """The number that begins at `at`, of at most 64 bits, and where it ends. Raises `WireError`."""
    result = shift = 0
    while True:
        if at >= len(message) or shift > 63:
            raise WireError("a varint does not end")
        byte = message[at]
        result |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return result & _BITS_64, at
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
