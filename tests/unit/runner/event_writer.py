"""Writes event files as TensorFlow does, field by field, so that the reader is tested without TensorFlow."""

from __future__ import annotations

import struct

from yardmaster_runner.events import masked_crc32c


def framed(record: bytes) -> bytes:
    """One TFRecord."""
    length = struct.pack("<Q", len(record))
    return length + struct.pack("<I", masked_crc32c(length)) + record + struct.pack("<I", masked_crc32c(record))


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def field(number: int, content: bytes) -> bytes:
    """A length-delimited field."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def event(*, step: int, time: float = 1.5, summary: list[bytes] | None = None) -> bytes:
    record = b"\x09" + struct.pack("<d", time) + b"\x10" + varint(step)
    return record + (field(5, b"".join(field(1, value) for value in summary)) if summary else b"")


def scalar(tag: str, value: float) -> bytes:
    """As tf.compat.v1.summary.scalar."""
    return field(1, tag.encode()) + b"\x15" + struct.pack("<f", value)


def tensor_scalar(tag: str, tensor: bytes, plugin: str = "scalars") -> bytes:
    """As tf.summary.scalar."""
    return field(1, tag.encode()) + field(8, tensor) + field(9, field(1, field(1, plugin.encode())))


FLOAT, DOUBLE = b"\x08\x01", b"\x08\x02"
NO_SHAPE = field(2, b"")
