"""Scalars in an event file, as TensorBoard and Yardmaster read them, written without TensorFlow."""

from __future__ import annotations

import os
import struct
import time


class Scalars:
    """One event file in this folder. Each scalar is written at once."""

    def __init__(self, folder: str) -> None:
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"events.out.tfevents.{int(time.time())}.scalars")
        self._file = open(path, "wb")  # noqa: SIM115  # open as long as the script runs
        self._record(_double(1, time.time()) + _bytes(3, b"brain.Event:2"))

    def write(self, tag: str, value: float, step: int) -> None:
        """One value of the curve of this tag."""
        scalar = _bytes(1, tag.encode()) + struct.pack("<Bf", 2 << 3 | 5, value)
        self._record(_double(1, time.time()) + b"\x10" + _varint(step) + _bytes(5, _bytes(1, scalar)))

    def close(self) -> None:
        self._file.close()

    def _record(self, data: bytes) -> None:
        length = struct.pack("<Q", len(data))
        self._file.write(length + _masked(length) + data + _masked(data))
        self._file.flush()


def _double(field: int, value: float) -> bytes:
    return struct.pack("<Bd", field << 3 | 1, value)


def _bytes(field: int, value: bytes) -> bytes:
    return bytes([field << 3 | 2]) + _varint(len(value)) + value


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _masked(data: bytes) -> bytes:
    """The checksum of a TFRecord: CRC-32C, rotated and moved."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
