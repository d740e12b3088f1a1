"""One stream, open for reading. Readers never lock: they see the records that were whole when they opened the index.

Finding a line is a binary search in the index and a skip inside one block. Not here: many streams (`merge`), `search`.
"""

from __future__ import annotations

import contextlib
import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from yardmaster.logs.lines import line_start
from yardmaster.logs.records import START, Index, Kind, Record
from yardmaster.logs.volume import LOST, Refusal
from yardmaster.logs.writing import DATA_FILE, INDEX_FILE, LOOKED_BACK

SPAN_BYTES = 1 << 20
"""How much data one read brings at most, unless a single block is longer."""


class Line(NamedTuple):
    number: int
    time: int
    """Unix milliseconds at which the task's runner read it."""
    text: bytes
    """Without its newline."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Lines that were dropped, and why. They are numbered, but there is no text."""

    first_line: int
    lines: int
    dropped_bytes: int
    time: int
    why: Refusal = LOST

    def lies_in(self, first: int, end: int) -> bool:
        """Whether any of its lines is one of `first` to `end - 1`."""
        return self.first_line < end and self.first_line + self.lines > first


@dataclass(frozen=True, slots=True)
class Span:
    """Lines that lie together: `data` begins with line `first`; `times` holds (line, time) where the time changes."""

    first: int
    next_line: int
    data: bytes
    times: tuple[tuple[int, int], ...]

    def time_of(self, line: int) -> int:
        return self.times[bisect_right(self.times, line, key=lambda mark: mark[0]) - 1][1]

    def until(self, end: int) -> Span:
        """The same without line `end` and those after it."""
        if end >= self.next_line:
            return self
        data = self.data[: line_start(self.data, end - self.first)]
        return Span(self.first, end, data, tuple(mark for mark in self.times if mark[0] < end))

    def lines(self) -> Iterator[Line]:
        """Every line. Cheap in bulk: one split, one tuple a line."""
        texts = self.data.split(b"\n")
        ends = [*(first for first, _ in self.times[1:]), self.next_line]
        for (first, time), end in zip(self.times, ends, strict=True):
            for number in range(first, end):
                yield Line(number, time, texts[number - self.first])


@dataclass(frozen=True, slots=True)
class Head:
    """How far a stream has come."""

    next_line: int
    bytes: int
    ended: bool


NO_LINES = Head(next_line=0, bytes=0, ended=False)


class StreamReader:
    """A stream as it was when opened: later writes are not seen. Use one per request."""

    def __init__(self, index: int, data: int) -> None:
        self._index = Index(index)
        self._data = data
        self.last: Record = self._index[-1] if self._index else START

    @property
    def head(self) -> Head:
        return Head(self.last.next_line, self.last.data_end, self.last.kind == Kind.END)

    def end_of(self, writer: int) -> int | None:
        """The line after the newest one of this writer; None where it has written none of late."""
        records = self._index.newest_first(LOOKED_BACK)
        return next((record.next_line for record in records if record.writer == writer and record.lines), None)

    def gaps(self, limit: int = 1000) -> tuple[Gap, ...]:
        """The newest gaps, oldest first; gaps that touch are one."""
        merged: list[Gap] = []
        for record in self._index.gaps(limit):
            gap = gap_of(record, record.first)
            before = merged[-1] if merged else None
            if before and before.first_line + before.lines == gap.first_line and before.why == gap.why:
                size = before.dropped_bytes + gap.dropped_bytes
                gap = Gap(before.first_line, before.lines + gap.lines, size, before.time, gap.why)
                merged.pop()
            merged.append(gap)
        return tuple(merged)

    def block_before(self, line: int) -> tuple[int, int]:
        """(first line, time) of the block that holds the line before `line`."""
        record = self._index[self._position_of(line - 1)]
        return record.first, record.time

    def records(self, first: int, batch: int = 1024) -> Iterator[Record]:
        """The index from the record that holds line `first` on; `batch` records are read at a time."""
        return self._index.from_position(self._position_of(first), batch)

    def spans(
        self, first: int, *, span_bytes: int = SPAN_BYTES, most_records: int | None = None
    ) -> Iterator[Span | Gap]:
        """Everything from line `first` on, in order; no more than lies in `most_records` records of the index."""
        adjacent: list[Record] = []
        length = 0
        for record in islice(self.records(first), most_records):
            if adjacent and (record.kind != Kind.CHUNK or length + record.length > span_bytes):
                yield self.span(adjacent, first)
                adjacent, length = [], 0
            if record.kind == Kind.CHUNK:
                adjacent.append(record)
                length += record.length
            elif record.kind == Kind.GAP:
                yield gap_of(record, first)
        if adjacent:
            yield self.span(adjacent, first)

    def span(self, records: Sequence[Record], first: int) -> Span:
        """The lines of these neighbouring CHUNK records, without those before line `first`."""
        start, last = records[0], records[-1]
        data = os.pread(self._data, last.data_end - start.offset, start.offset)
        line = max(first, start.first)
        if line > start.first:
            data = data[line_start(data, line - start.first) :]
        times: list[tuple[int, int]] = []
        for record in records:
            if not times or times[-1][1] != record.time:
                times.append((max(line, record.first), record.time))
        return Span(line, last.next_line, data, tuple(times))

    def _position_of(self, line: int) -> int:
        """The position of the record that holds `line`; past the last record when there is no such line yet."""
        if line >= self.last.next_line:
            return len(self._index)
        return bisect_right(self._index, line, key=lambda record: record.next_line)


def gap_of(record: Record, first: int) -> Gap:
    """What a GAP record stands for, without the lines before `first`."""
    skipped = max(0, first - record.first)
    why = Refusal.unpack(record.data_checksum)
    return Gap(record.first + skipped, record.lines - skipped, record.length, record.time, why)


@contextlib.contextmanager
def open_for_reading(folder: Path) -> Iterator[StreamReader | None]:
    """The stream in `folder`, or None when there is none (yet)."""
    with contextlib.ExitStack() as files:
        try:
            index = os.open(folder / INDEX_FILE, os.O_RDONLY | os.O_CLOEXEC)
            files.callback(os.close, index)
            data = os.open(folder / DATA_FILE, os.O_RDONLY | os.O_CLOEXEC)
            files.callback(os.close, data)
        except FileNotFoundError:
            reader = None
        else:
            reader = StreamReader(index, data)
        yield reader
