"""Writes TFRecord files of `tf.train.Example`s without TensorFlow, whose import would take longer than the writing.

Not here: reading them; `tf.data.TFRecordDataset` does that (see `digits_data`).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

Feature = bytes | Sequence[int] | Sequence[float]


def _crc32c_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _crc32c_table()


def masked_crc32c(data: bytes) -> int:
    """The CRC-32C of `data`, masked as TFRecord files want it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1  # negative numbers are written as their 64-bit two's complement
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number: int, body: bytes) -> bytes:
    """A length-delimited protocol buffer field."""
    return _varint(number << 3 | 2) + _varint(len(body)) + body


def _feature(value: Feature) -> bytes:
    if isinstance(value, bytes):
        return _field(1, _field(1, value))  # bytes_list
    if all(isinstance(one, int) for one in value):
        return _field(3, _field(1, b"".join(_varint(int(one)) for one in value)))  # int64_list, packed
    return _field(2, _field(1, struct.pack(f"<{len(value)}f", *value)))  # float_list, packed


def example(features: Mapping[str, Feature]) -> bytes:
    """A serialized `tf.train.Example`. A sequence of ints becomes an int64 list, any other a float list."""
    entries = (_field(1, _field(1, name.encode()) + _field(2, _feature(value))) for name, value in features.items())
    return _field(1, b"".join(entries))


def write_tfrecords(path: Path, records: Iterable[bytes]) -> int:
    """Write `records` to `path` and return how many there were."""
    count = 0
    with path.open("wb") as file:
        for record in records:
            length = struct.pack("<Q", len(record))
            file.write(length + struct.pack("<I", masked_crc32c(length)))
            file.write(record + struct.pack("<I", masked_crc32c(record)))
            count += 1
    return count
