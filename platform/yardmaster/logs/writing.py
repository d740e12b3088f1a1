"""One stream, open for writing. Order is everything: data first, then the index record that makes it count.

What an acknowledged line survives: the death of any process at any point, because both writes have reached the kernel
before the caller hears of it. A power cut may cost what the kernel had not yet written back (half a minute at most);
recovery then drops the blocks whose bytes do not match their checksum, and the numbering stays whole. The end mark is
synced.

Not here: which lines are new (`store`), reading (`reading`).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import zlib
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path

from yardmaster.errors import Unavailable
from yardmaster.logs.keys import LINE_LIMIT
from yardmaster.logs.lines import Block
from yardmaster.logs.records import RECORD_BYTES, START, Index, Kind, Record
from yardmaster.logs.volume import LOST, Refusal

INDEX_FILE = "index"
DATA_FILE = "lines"
LOOKED_BACK = 1 << 16
"""How many records are looked at for a writer's newest line: hours of a log that is written twice a second."""
_CHECKED_RECORDS = 1024
_CHECKED_BYTES = 16 << 20


class StreamWriter:
    """Holds the stream's lock. `last` is the newest record; what lies after it on disk is a leftover, overwritten."""

    def __init__(self, index: int, data: int, *, check_data: bool) -> None:
        self._index, self._data = index, data
        self._count, self.last = self._recovered(check_data)

    @property
    def next_line(self) -> int:
        return self.last.next_line

    @property
    def has_ended(self) -> bool:
        return self.last.kind == Kind.END

    def has_only(self, writer: int, first_line: int) -> bool:
        """Whether every line from `first_line` on is this writer's."""
        newest = Index(self._index).newest_first(LOOKED_BACK)
        newer = takewhile(lambda record: record.next_line > first_line, newest)
        return all(record.writer == writer or not record.lines for record in newer)

    def is_in_gap(self, why: Refusal) -> bool:
        """Whether the stream's newest record is a gap of this cause."""
        return self.last.kind == Kind.GAP and self.last.data_checksum == why.pack()

    def add_lines(self, data: bytes, blocks: Sequence[Block], writer: int) -> None:
        """Write these blocks of `data`, which reach to its end. All of them or nothing."""
        offset, line = self.last.data_end, self.next_line
        records = []
        for block in blocks:
            length = block.end - block.start
            records.append(
                Record(Kind.CHUNK, line, block.lines, offset, length, block.time, self.last.gap, block.checksum, writer)
            )
            offset, line = offset + length, line + block.lines
        self._write(memoryview(data)[blocks[0].start :], records)

    def add_gap(self, lines: int, dropped_bytes: int, time: int, writer: int, why: Refusal = LOST) -> int:
        """Mark lines as missing; how many records that has cost. A gap just before of the same cause is made longer, so
        that a task that loses lines again and again costs no more than one."""
        last, cause = self.last, why.pack()
        if self.is_in_gap(why):
            writer = writer if last.writer == writer else 0
            size = min(last.length + dropped_bytes, LINE_LIMIT)
            self._replace_last(last._replace(lines=last.lines + lines, length=size, writer=writer))
            return 0
        gap, offset = self._count + 1, last.data_end
        self._write(b"", [Record(Kind.GAP, self.next_line, lines, offset, dropped_bytes, time, gap, cause, writer)])
        return 1

    def add_end(self) -> None:
        """The end mark, synced to disk with all that comes before it."""
        os.fdatasync(self._data)
        last = self.last
        self._write(b"", [Record(Kind.END, self.next_line, 0, last.data_end, 0, last.time, last.gap)])
        os.fdatasync(self._index)

    def _replace_last(self, record: Record) -> None:
        try:
            _write_all(self._index, record.pack(), (self._count - 1) * RECORD_BYTES)
        except OSError as error:
            raise _cannot_write(error) from error
        self.last = record

    def _write(self, data: bytes | memoryview, records: Sequence[Record]) -> None:
        offset, position = self.last.data_end, self._count * RECORD_BYTES
        try:
            _write_all(self._data, data, offset)
            _write_all(self._index, b"".join(record.pack() for record in records), position)
        except OSError as error:
            # Some of the records may be there. No reader has seen them, and a full disk needs the space.
            with contextlib.suppress(OSError):
                os.ftruncate(self._index, position)
                os.ftruncate(self._data, offset)
            raise _cannot_write(error) from error
        self._count += len(records)
        self.last = records[-1]

    def _recovered(self, check_data: bool) -> tuple[int, Record]:
        """How many records count, and the last of them. Drops what a crash left unfinished."""
        index = Index(self._index)
        count, size = len(index), os.fstat(self._data).st_size
        while count and index[count - 1].data_end > size:
            count -= 1
        if check_data:
            count = self._first_damaged(index, count)
        if count * RECORD_BYTES < os.fstat(self._index).st_size:
            os.ftruncate(self._index, count * RECORD_BYTES)
        return count, index[count - 1] if count else START

    def _first_damaged(self, index: Index, count: int) -> int:
        """The position of the first record, among the newest, whose data is not what was written; else `count`."""
        budget, intact = _CHECKED_BYTES, count
        for position in range(count - 1, max(-1, count - 1 - _CHECKED_RECORDS), -1):
            record = index[position]
            if record.kind == Kind.CHUNK:
                budget -= record.length
                if budget < 0:
                    break
                if zlib.crc32(os.pread(self._data, record.length, record.offset)) != record.data_checksum:
                    intact = position
        return intact


@contextlib.contextmanager
def open_for_writing(folder: Path, *, check_data: bool) -> Iterator[StreamWriter]:
    """The stream in `folder`, made when absent, locked against every other thread and process until the block ends."""
    try:
        index = _locked(folder)
    except OSError as error:
        raise Unavailable(
            f"The log store cannot be opened: {error.strerror}.", remedy="Check the logs folder and its disk space."
        ) from error
    try:
        data = os.open(folder / DATA_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        try:
            yield StreamWriter(index, data, check_data=check_data)
        finally:
            os.close(data)
    finally:
        os.close(index)  # lets the lock go


def _locked(folder: Path) -> int:
    while True:
        try:
            index = os.open(folder / INDEX_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        except FileNotFoundError:
            folder.mkdir(parents=True, exist_ok=True)
            continue
        fcntl.flock(index, fcntl.LOCK_EX)
        if os.fstat(index).st_nlink:
            return index
        os.close(index)  # the job was deleted while we waited for the lock


def _write_all(descriptor: int, data: bytes | memoryview, offset: int) -> None:
    rest = memoryview(data)
    while rest:
        written = os.pwrite(descriptor, rest, offset)
        rest, offset = rest[written:], offset + written


def _cannot_write(error: OSError) -> Unavailable:
    message = f"The log store cannot write: {error.strerror}."
    return Unavailable(message, remedy="Free disk space for the logs, then send again.")
