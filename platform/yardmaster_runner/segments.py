"""The pieces a spool is made of: runs of lines in a file or, when no file can be written, in memory; and gaps.

A file segment is `<first line>.log`, the lines as they are, and `<first line>.marks`, which says when lines were read.
Line numbers here are the spool's own: they count from 0 and know nothing of the portal's.
"""

from __future__ import annotations

import contextlib
import os
import struct
from array import array
from bisect import bisect_right
from dataclasses import dataclass
from typing import List, Tuple

MARK = struct.Struct("<QQQ")
MARK_EVERY_MS = 10
BATCH_MARK_EVERY_MS = 50
BATCH_MARKS = 250
"""An X-Times header of 250 marks stays below the 8 KiB that proxies allow for a header line."""


@dataclass(frozen=True)
class Gap:
    """Lines that had to be dropped. `size` is in bytes, 0 where it is unknown."""

    first: int
    lines: int
    size: int

    @property
    def end(self) -> int:
        return self.first + self.lines


@dataclass(frozen=True)
class Batch:
    """Consecutive whole lines, ready to be sent. `times`: line `first + offset` and those after it were read at that
    millisecond. `end_offset` is where the next batch starts in the segment."""

    first: int
    lines: int
    data: bytes
    times: Tuple[Tuple[int, int], ...]
    end_offset: int

    @property
    def end(self) -> int:
        return self.first + self.lines


class Segment:
    """Lines in memory, and what all segments share: the count, the marks, and cutting batches."""

    is_file = False

    def __init__(self, first: int) -> None:
        self.first = first
        self.lines = 0
        self.size = 0
        self.marks = 0
        self._mark_lines = array("Q")
        self._mark_offsets = array("Q")
        self._mark_times = array("Q")
        self._held = bytearray()

    @property
    def end(self) -> int:
        return self.first + self.lines

    @property
    def cost(self) -> int:
        """What it takes of the spool's bound."""
        return self.size + MARK.size * len(self._mark_lines)

    def append(self, data: bytes, lines: int, ms: int) -> None:
        """Add whole lines read at `ms`. Raises OSError, and then nothing has changed."""
        is_marked = not self._mark_times or ms - self._mark_times[-1] >= MARK_EVERY_MS or ms < self._mark_times[-1]
        mark = (self.end, self.size, ms)
        self._store(data, MARK.pack(*mark) if is_marked else b"")
        if is_marked:
            self._add_mark(*mark)
        self.lines += lines
        self.size += len(data)

    def read(self, offset: int, length: int) -> bytes:
        return bytes(self._held[offset : offset + length])

    def batch(self, line: int, offset: int, most_bytes: int) -> Batch:
        """The lines from `line`, which starts at `offset`, up to `most_bytes` (but at least one line's worth of marks).

        Times are kept to 50 ms; where there would be too many marks, the batch ends earlier.
        """
        at = bisect_right(self._mark_offsets, offset) - 1
        times = [(0, self._mark_times[at])]
        limit = min(self.size, offset + most_bytes)
        for i in range(at + 1, len(self._mark_lines)):
            if self._mark_offsets[i] >= limit:
                break
            if 0 <= self._mark_times[i] - times[-1][1] < BATCH_MARK_EVERY_MS:
                continue
            if len(times) == BATCH_MARKS:
                limit = self._mark_offsets[i]
                break
            times.append((self._mark_lines[i] - line, self._mark_times[i]))
        data = self.read(offset, limit - offset)
        if offset + len(data) < self.size:
            data = data[: data.rfind(b"\n") + 1]
        lines = data.count(b"\n")
        return Batch(line, lines, data, tuple(t for t in times if t[0] < lines), offset + len(data))

    def offset_of(self, line: int) -> int:
        """Where `line` starts. Scans from the last mark before it."""
        if line >= self.end:
            return self.size
        at = bisect_right(self._mark_lines, line) - 1
        offset, to_skip = self._mark_offsets[at], line - self._mark_lines[at]
        data, used = self.read(offset, self.size - offset), 0
        for _ in range(to_skip):
            used = data.index(b"\n", used) + 1
        return offset + used

    def close(self) -> None:
        """No more is appended."""

    def discard(self) -> None:
        """All of it is shipped or dropped."""
        self._held = bytearray()

    def _store(self, data: bytes, mark: bytes) -> None:
        self._held += data

    def _add_mark(self, line: int, offset: int, ms: int) -> None:
        self._mark_lines.append(line)
        self._mark_offsets.append(offset)
        self._mark_times.append(ms)


class FileSegment(Segment):
    """Lines in a file. What the process wrote survives its death (not the machine's: nothing is fsynced)."""

    is_file = True

    def __init__(self, directory: str, first: int, *, is_new: bool = True) -> None:
        super().__init__(first)
        self._path = os.path.join(directory, "%016d" % first)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | (os.O_TRUNC if is_new else 0)
        self._log = os.open(self._path + ".log", flags, 0o600)
        try:
            self._index = os.open(self._path + ".marks", flags, 0o600)
        except OSError:
            os.close(self._log)
            raise
        if not is_new:
            self._recover()

    def read(self, offset: int, length: int) -> bytes:
        return os.pread(self._log, length, offset)

    def close(self) -> None:
        if self._index >= 0:
            os.close(self._index)
            self._index = -1

    def discard(self) -> None:
        self.close()
        os.close(self._log)
        for ending in (".log", ".marks"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path + ending)

    def leave(self) -> None:
        """Close the files and keep them, to be shipped later."""
        self.close()
        os.close(self._log)

    def _store(self, data: bytes, mark: bytes) -> None:
        try:
            _write_all(self._index, mark, MARK.size * len(self._mark_lines))
            _write_all(self._log, data, self.size)
        except OSError:
            os.ftruncate(self._log, self.size)
            os.ftruncate(self._index, MARK.size * len(self._mark_lines))
            raise

    def _recover(self) -> None:
        """Count what a predecessor left. A line cut by its death was never whole, so never sent: it is dropped."""
        marks = os.pread(self._index, os.fstat(self._index).st_size, 0)
        data = os.pread(self._log, os.fstat(self._log).st_size, 0)
        self.size = data.rfind(b"\n") + 1
        self.lines = data.count(b"\n")
        for line, offset, ms in MARK.iter_unpack(marks[: len(marks) // MARK.size * MARK.size]):
            if line < self.end and offset < self.size:
                self._add_mark(line, offset, ms)
        if not self._mark_lines or self._mark_offsets[0] != 0:
            changed = int(os.fstat(self._log).st_mtime * 1000)
            self._mark_lines, self._mark_offsets, self._mark_times = array("Q"), array("Q"), array("Q")
            self._add_mark(self.first, 0, changed)


def _write_all(descriptor: int, data: bytes, offset: int) -> None:
    """A short write is followed by another, which says why (no space, quota, file size limit)."""
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, offset)
        view, offset = view[written:], offset + written


def found_segments(directory: str) -> List[FileSegment]:
    """The segments that a predecessor left in `directory`, in order of lines; empty ones are removed."""
    names = sorted(name for name in os.listdir(directory) if name.endswith(".log") and name[:-4].isdigit())
    segments = []
    for name in names:
        segment = FileSegment(directory, int(name[:-4]), is_new=False)
        segment.close()
        if segment.lines:
            segments.append(segment)
        else:
            segment.discard()
    return segments
