"""The index of one stream on disk: 64-byte records, appended, each with its own checksum.

A record is 64 bytes so that none ever crosses a page. A CHUNK record covers lines that lie together in the data file; a
GAP stands for lines that the task had to drop; an END, when it is the last record, says that no more is coming.
Each record also points to the newest GAP before it, so that gaps are found without a scan, and names its writer. Not
here: who writes when (`writing`).
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from enum import IntEnum
from itertools import islice
from typing import NamedTuple, overload

from yardmaster.errors import Unavailable

RECORD_BYTES = 64
_BODY = struct.Struct("<6Q3I")
_CHECKSUM = struct.Struct("<I")


class Kind(IntEnum):
    CHUNK = 1
    GAP = 2
    END = 3


class Record(NamedTuple):
    """One entry of the index. `data_end` is where the next chunk's bytes begin."""

    kind: int
    first: int
    lines: int
    offset: int
    length: int
    """CHUNK: bytes in the data file. GAP: bytes that were dropped."""
    time: int
    gap: int
    """1 + the position of the newest GAP record up to and including this one; 0 when there is none."""
    data_checksum: int = 0
    """GAP: why its lines are missing (`volume.Refusal.pack`)."""
    writer: int = 0
    """0 for one that did not say who it is, and for an END."""

    @property
    def next_line(self) -> int:
        return self.first + self.lines

    @property
    def data_end(self) -> int:
        return self.offset + self.length if self.kind == Kind.CHUNK else self.offset

    def pack(self) -> bytes:
        body = _BODY.pack(
            self.first, self.lines, self.offset, self.length, self.time, self.gap, self.kind, self.data_checksum,
            self.writer,
        )  # fmt: skip
        return body + _CHECKSUM.pack(zlib.crc32(body))


START = Record(kind=Kind.CHUNK, first=0, lines=0, offset=0, length=0, time=0, gap=0)
"""Stands for the record before the first."""


def unpack(raw: bytes) -> Record | None:
    """The record, or None when these 64 bytes are not a whole one."""
    if len(raw) < RECORD_BYTES or _CHECKSUM.unpack_from(raw, _BODY.size)[0] != zlib.crc32(raw[: _BODY.size]):
        return None
    first, lines, offset, length, time, gap, kind, data_checksum, writer = _BODY.unpack_from(raw)
    return Record(kind, first, lines, offset, length, time, gap, data_checksum, writer)


class Index(Sequence[Record]):
    """The whole records of an open index file, as many as there were when it was opened. Bytes of a write that
    another process has not finished, or never will, are not seen."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._count = os.fstat(descriptor).st_size // RECORD_BYTES
        while self._count and self._at(self._count - 1) is None:
            self._count -= 1

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, position: int) -> Record: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[Record]: ...
    def __getitem__(self, position: int | slice) -> Record | Sequence[Record]:
        if isinstance(position, slice):
            return [self[each] for each in range(*position.indices(self._count))]
        if position < 0:
            position += self._count
        if not 0 <= position < self._count:
            raise IndexError(position)
        return self._whole(self._at(position), position)

    def from_position(self, position: int, batch: int) -> Iterator[Record]:
        """The records from `position` on, `batch` per read."""
        while position < self._count:
            wanted = min(batch, self._count - position)
            raw = os.pread(self._descriptor, wanted * RECORD_BYTES, position * RECORD_BYTES)
            for start in range(0, wanted * RECORD_BYTES, RECORD_BYTES):
                yield self._whole(unpack(raw[start : start + RECORD_BYTES]), position)
                position += 1

    def newest_first(self, limit: int, batch: int = 1024) -> Iterator[Record]:
        """The newest `limit` records, `batch` per read."""
        end = self._count
        while end > max(0, self._count - limit):
            begin = max(0, end - batch)
            yield from reversed(list(islice(self.from_position(begin, end - begin), end - begin)))
            end = begin

    def gaps(self, limit: int) -> list[Record]:
        """The newest `limit` GAP records, oldest first."""
        found: list[Record] = []
        position = self[-1].gap if self._count else 0
        while position and len(found) < limit:
            found.append(self[position - 1])
            position = self[position - 2].gap if position >= 2 else 0
        return found[::-1]

    def _at(self, position: int) -> Record | None:
        return unpack(os.pread(self._descriptor, RECORD_BYTES, position * RECORD_BYTES))

    def _whole(self, record: Record | None, position: int) -> Record:
        if record is None:
            raise Unavailable(f"The log's index is damaged at record {position}.", remedy="Restore it from a backup.")
        return record
