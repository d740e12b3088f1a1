"""What is packed in a file of gzip, as it is read: as much is unpacked as is asked for, so that a file which unpacks to
a thousand times its size costs what is read of it.
"""

from __future__ import annotations

import io
import zlib
from typing import Protocol

MAGIC = b"\x1f\x8b"
_GZIP = 31
"""What `zlib` reads: a file of gzip."""
_PIECE = 64 << 10
_EMPTY = 100
"""Pieces or members in a row of which nothing comes, before the file is given up."""


class Readable(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


def start_of(packed: bytes, most: int) -> bytes:
    """The first `most` bytes at most of what the beginning of a file holds; empty where it is no gzip."""
    try:
        return zlib.decompressobj(_GZIP).decompress(packed, most)
    except zlib.error:
        return b""


def unpacked_name(path: str) -> str:
    """What the file is called when it is unpacked."""
    return path[: -len(".gz")] if path.lower().endswith(".gz") else path


class Unpacked(io.RawIOBase):
    """The content of a file of gzip, for `io.BufferedReader`. Reading raises `zlib.error` where it is damaged."""

    def __init__(self, packed: Readable) -> None:
        self._packed = packed
        self._rest = b""
        self._member = zlib.decompressobj(_GZIP)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        for _ in range(_EMPTY):
            self._rest = self._rest or self._packed.read(_PIECE)
            if not self._rest:
                return 0
            if self._member.eof:
                self._member = zlib.decompressobj(_GZIP)
            data = self._member.decompress(self._rest, len(buffer))
            self._rest = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
            if data:
                buffer[: len(data)] = data
                return len(data)
        raise zlib.error("nothing comes of the next bytes")
