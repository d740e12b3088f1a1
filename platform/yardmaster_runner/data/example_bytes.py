"""`tf.train.Example` as bytes, without the objects of protobuf, which take several times as long. No NumPy.

Not here: many records at a time (`yardmaster_runner.prepare.wire`), and reading them (`examples`).
"""

from __future__ import annotations

import struct
from typing import List, Mapping, Sequence, Tuple, Union

Values = Tuple[str, Sequence[Union[int, float, bytes]]]
"""A kind (int64, float, bytes) and the values of one feature."""

_PIECE = 4096


def varint(number: int) -> bytes:
    """A whole number as protobuf writes it; negative ones in two's complement of 64 bits."""
    if 0 <= number < 128:
        return bytes((number,))
    number &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(tag: bytes, *parts: bytes) -> List[bytes]:
    """A field of bytes: its tag, its length and what is in it."""
    return [tag, varint(sum(map(len, parts))), *parts]


def feature(kind: str, values: Sequence[Union[int, float, bytes]]) -> List[bytes]:
    """The message Feature, in pieces."""
    if kind == "bytes":
        inner: List[bytes] = []
        for one in values:
            inner += (b"\x0a", varint(len(one)), one)  # type: ignore[arg-type]
        return field(b"\x0a", *inner)
    if kind == "float":
        packed = struct.pack("<%df" % len(values), *values)
        return field(b"\x12", *(field(b"\x0a", packed) if values else ()))
    # In pieces: of millions of numbers the bytes of each would be in memory at once.
    pieces = (values[at : at + _PIECE] for at in range(0, len(values), _PIECE))
    packed = b"".join(b"".join(map(varint, piece)) for piece in pieces)  # type: ignore[arg-type]
    return field(b"\x1a", *(field(b"\x0a", packed) if values else ()))


def example(features: Mapping[str, Values]) -> bytes:
    """The serialized Example. Copies the values once."""
    entries: List[bytes] = []
    for name, (kind, values) in features.items():
        key = name.encode()
        entries += field(b"\x0a", *field(b"\x0a", key), *field(b"\x12", *feature(kind, values)))
    return b"".join(field(b"\x0a", *entries))
