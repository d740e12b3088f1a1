"""`LogStore`: all streams of lines under one folder, `<root>/<job>/<attempt>/<role>-<index>/`.

Any number of processes and threads may use stores over the same folder. Writing is by line number, so that sending
again after a break loses and doubles nothing. Not here: times across streams (`merge`), searching (`search`).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from yardmaster.errors import Unavailable
from yardmaster.ids import short
from yardmaster.job.spec import Role
from yardmaster.logs.keys import LINE_LIMIT, JobGone, LinesRejected, PastTheEnd, StreamKey, WrittenByAnother
from yardmaster.logs.leftovers import leftovers
from yardmaster.logs.lines import BLOCK_BYTES, blocks_of, line_start, thin_out
from yardmaster.logs.reading import NO_LINES, Gap, Head, Line, Span, StreamReader, open_for_reading
from yardmaster.logs.records import RECORD_BYTES
from yardmaster.logs.volume import LOST, Cause, Counted, NeedsGrant, Refusal, Volume, VolumeFile, reason_of
from yardmaster.logs.writing import DATA_FILE, INDEX_FILE, StreamWriter, open_for_writing

END_RESERVE = 16 << 10
"""Bytes for each task of an attempt whose log takes no more: one mark at the end of each start."""
PAGE_RECORDS = 16_384
"""How many records of the index are read for one page: more than it has lines, unless lines and gaps alternate."""


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """What there is of one stream."""

    key: StreamKey
    lines: int
    bytes: int
    ended: bool
    gaps: tuple[Gap, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """Some lines of one stream. `next_line` is where to read on; `ended`: the task has ended, this is the last page."""

    lines: tuple[Line, ...]
    next_line: int
    gaps: tuple[Gap, ...]
    ended: bool


@dataclass(frozen=True, slots=True)
class Written:
    """What became of a write. `refusal`: why its lines are not kept."""

    next_line: int
    refusal: Refusal | None


class LogStore:
    """Appends, reads and deletes streams. Raises `Unavailable` when the disk fails; nothing half-written counts.

    `limit`: the most bytes of one attempt; its namespace must have been charged for them (`volume`). None: no bound."""

    def __init__(self, root: Path, limit: int | None = None) -> None:
        self.root = root
        self._limit = limit
        self._checked: set[StreamKey] = set()

    # --- writing -----------------------------------------------------------------------------------------------------

    def append(
        self,
        stream: StreamKey,
        first_line: int,
        data: bytes,
        times: Sequence[tuple[int, int]] = (),
        *,
        lines: int | None = None,
        writer: int = 0,
        tail_reserve: int = 0,
        leave: bool = False,
    ) -> Written:
        """Write whole lines, the first being number `first_line`. When this returns, the lines are kept; where there is
        no space for them they are dropped and counted, or left to the caller. What was there already is skipped, so the
        call may be repeated.

        `times` are (offset, unix ms): line `first_line + offset` and those after it were read then. `lines`, where
        given, must be how many `data` holds. `writer` is the process that numbers these lines, 1 to 2**32 - 1; two may
        write at once, as a pod that ends and its successor do, and only one's own lines are skipped. 0: not said.
        `tail_reserve`: these are a task's last lines, and so many bytes of those are taken where others are dropped.
        Raises `PastTheEnd`, `WrittenByAnother` or `NeedsGrant` (nothing changes), `LinesRejected`, `Unavailable`.
        """
        count = _checked_count(first_line, data, times, lines)
        self._require_volume(stream)
        with self._writer(stream) as open_stream:
            skipped = _skipped(open_stream, first_line, writer)
            if skipped >= count:
                return Written(open_stream.next_line, None)
            marks = thin_out(times, skipped, default=open_stream.last.time)
            blocks = list(blocks_of(data, line_start(data, skipped), marks))
            size = len(data) - blocks[0].start
            refusal = self._take(stream, size + RECORD_BYTES * len(blocks), tail_reserve)
            if refusal is None:
                open_stream.add_lines(data, blocks, writer)
            elif not leave:
                self._count_gap(stream, open_stream.add_gap(count - skipped, size, marks[0][1], writer, refusal))
            return Written(open_stream.next_line, refusal)

    def mark_gap(
        self, stream: StreamKey, first_line: int, lines: int, dropped_bytes: int, time: int, *, writer: int = 0
    ) -> Written:
        """Note that `lines` lines from `first_line` on are lost; they count as written. Lines that are there stay, so
        the call may be repeated. While no lines are taken, that is why they are lost. It counts as lines do, unless it
        makes a gap longer. Raises as `append` does."""
        if first_line < 0 or lines < 0 or dropped_bytes < 0 or first_line + lines > LINE_LIMIT:
            raise LinesRejected(f"A gap of {lines} lines from {first_line} on is out of range.")
        self._require_volume(stream)
        refusal = self.refusal(stream)
        with self._writer(stream) as open_stream:
            skipped = _skipped(open_stream, first_line, writer)
            if skipped < lines:
                if not open_stream.is_in_gap(refusal or LOST):
                    refusal = self._take(stream, RECORD_BYTES, 0)
                records = open_stream.add_gap(lines - skipped, dropped_bytes, time, writer, refusal or LOST)
                if refusal is not None:
                    self._count_gap(stream, records)
            return Written(open_stream.next_line, refusal)

    def mark_end(self, stream: StreamKey, lines: int, reserve: int = END_RESERVE) -> int:
        """Note that no more lines come after the first `lines`, unless the task restarts. Late marks of an earlier end
        change nothing, nor do those past `reserve` bytes in a volume that is closed. Returns the next line. Raises
        `PastTheEnd` when lines are still missing, `NeedsGrant`, `Unavailable`."""
        self._require_volume(stream)
        with self._writer(stream) as writer:
            if lines > writer.next_line:
                raise PastTheEnd(lines, writer.next_line)
            is_new = lines == writer.next_line and not writer.has_ended
            if is_new and self._take(stream, RECORD_BYTES, reserve, Volume.with_end) is None:
                writer.add_end()
            return writer.next_line

    def delete_job(self, job_id: uuid.UUID) -> None:
        """Remove every stream of the job, and refuse what is written to it from now on (`JobGone`). Absent: success.
        What an earlier, interrupted call left is removed too."""
        folder = self._job_folder(job_id)
        self._note_deleted(folder.name)
        with contextlib.suppress(FileNotFoundError):
            # Under its new name no reader or writer finds it any more, so nothing is seen half-deleted.
            folder.rename(folder.with_name(f".deleted-{folder.name}-{uuid.uuid4().hex}"))
        for leftover in leftovers(self.root, folder.name):
            try:
                shutil.rmtree(leftover)
            except FileNotFoundError:
                continue  # another process is removing it as well
            except OSError as error:
                raise Unavailable(f"The logs of the job cannot be removed: {error.strerror}.") from error

    def forget_deleted(self, older_than: float) -> None:
        """Of jobs deleted this many seconds ago, remove what was left once more, and the note that they were deleted:
        a writer that may have existed no longer does."""
        before = time.time() - older_than
        for name in _names(self._deleted):
            with contextlib.suppress(FileNotFoundError):
                if (self._deleted / name).stat().st_mtime < before:
                    for left in (self.root / name, *leftovers(self.root, name)):
                        shutil.rmtree(left, ignore_errors=True)
                    (self._deleted / name).unlink()

    # --- how much of it there is -------------------------------------------------------------------------------------

    def volume(self, job_id: uuid.UUID, attempt: int) -> Volume:
        """What the attempt's log holds, and whether it takes more."""
        return self._volume(job_id, attempt).read()

    def refusal(self, stream: StreamKey) -> Refusal | None:
        """Why the stream takes no lines now; None where it does."""
        if self._limit is None:
            return None
        return self.volume(stream.job_id, stream.attempt).refusal(self._limit, _now())

    def grant(self, job_id: uuid.UUID, attempt: int, granted: int) -> None:
        """The namespace was charged for so many bytes of the attempt in all. Raises `JobGone`, `Unavailable`."""
        self._job_folder(job_id).mkdir(parents=True, exist_ok=True)
        self._require_job(job_id)
        with self._volume(job_id, attempt).changed() as held:
            held[0] = replace(held[0], granted=granted)

    def refuse(self, job_id: uuid.UUID, attempt: int, refusal: Refusal, seconds: float) -> None:
        """The namespace cannot be charged for more, and is not asked again for so long: lines are dropped."""
        with self._volume(job_id, attempt).changed() as held:
            held[0] = held[0].closed(refusal, _now() + int(seconds * 1000))

    def settle(self, job_id: uuid.UUID, attempt: int) -> int:
        """Give back what was granted and not used: how many bytes the attempt is to be charged for from now on."""
        if not self._volume(job_id, attempt).exists():
            return 0
        with self._volume(job_id, attempt).changed() as held:
            held[0] = replace(held[0], granted=held[0].used)
            return held[0].used

    # --- reading -----------------------------------------------------------------------------------------------------

    def head(self, stream: StreamKey) -> Head:
        """How far the stream has come: one read of 64 bytes."""
        with self.reader(stream) as reader:
            return reader.head if reader else NO_LINES

    def next_line(self, stream: StreamKey) -> int:
        """The number of the next line to write."""
        return self.head(stream).next_line

    def place(self, stream: StreamKey, writer: int) -> tuple[int, int | None]:
        """The number of the next line to write, and the line after the newest one that this writer has written; None
        where there is none of it. Both as of one moment: a write in between would be taken for another writer's."""
        with self.reader(stream) as reader:
            if reader is None:
                return 0, None
            return reader.head.next_line, reader.end_of(writer) if writer else None

    def read(self, stream: StreamKey, first: int, limit: int, max_bytes: int = 4 << 20) -> Page:
        """At most `limit` lines from line `first` on, and about `max_bytes`; a negative `first` counts from the end.

        Lines of a gap are left out; `gaps` names those that lie in the range. A page of many gaps may be without lines:
        read on at its `next_line`.
        """
        with self.reader(stream) as reader:
            if reader is None:
                return Page((), max(first, 0), (), False)
            head = reader.head
            if first < 0:
                first = max(0, head.next_line + first)
            lines: list[Line] = []
            next_line, size = first, 0
            for piece in reader.spans(first, span_bytes=BLOCK_BYTES, most_records=PAGE_RECORDS):
                if isinstance(piece, Gap):
                    next_line = piece.first_line + piece.lines
                    continue
                new = list(islice(piece.lines(), limit - len(lines)))
                lines += new
                size += len(piece.data)
                next_line = new[-1].number + 1
                if len(lines) >= limit or size >= max_bytes:
                    break
            gaps = tuple(gap for gap in reader.gaps() if gap.lies_in(first, next_line))
            return Page(tuple(lines), next_line, gaps, head.ended and next_line >= head.next_line)

    def raw(self, stream: StreamKey) -> Iterator[bytes]:
        """The whole text as it was written, in pieces of about 1 MiB; a gap leaves one line that says so."""
        with self.reader(stream) as reader:
            for piece in reader.spans(0) if reader else ():
                yield piece.data if isinstance(piece, Span) else gap_text(piece)

    def streams(self, job_id: uuid.UUID, attempt: int | None = None) -> list[StreamInfo]:
        """Every stream of the job (of one attempt), in the order attempt, role, index."""
        found = []
        for key in self.keys(job_id, attempt):
            with self.reader(key) as reader:
                if reader:
                    head = reader.head
                    found.append(StreamInfo(key, head.next_line, head.bytes, head.ended, reader.gaps()))
        return found

    def keys(self, job_id: uuid.UUID, attempt: int | None = None) -> list[StreamKey]:
        """The names alone of every stream of the job (of one attempt): no stream is opened."""
        folder = self._job_folder(job_id)
        attempts = [name for name in _names(folder) if name.isdecimal()] if attempt is None else [str(attempt)]
        keys = []
        for name in attempts:
            for stream in _names(folder / name):
                role, _, index = stream.rpartition("-")
                keys.append(StreamKey(job_id, int(name), Role(role), int(index)))
        order = list(Role)
        return sorted(keys, key=lambda key: (key.attempt, order.index(key.role), key.index))

    @contextlib.contextmanager
    def reader(self, stream: StreamKey) -> Iterator[StreamReader | None]:
        """The stream as it is now, open for reading; None when there is none."""
        with open_for_reading(self.folder(stream)) as reader:
            yield reader

    def folder(self, stream: StreamKey) -> Path:
        """Where the stream lies."""
        return self._job_folder(stream.job_id) / str(stream.attempt) / stream.name

    # --- inside ------------------------------------------------------------------------------------------------------

    @property
    def _deleted(self) -> Path:
        """Which jobs were deleted lately: an empty file each."""
        return self.root / ".deleted"

    def _note_deleted(self, name: str) -> None:
        try:
            self._deleted.mkdir(parents=True, exist_ok=True)
            (self._deleted / name).touch()
        except OSError as error:
            raise Unavailable(f"The logs of the job cannot be removed: {error.strerror}.") from error

    def _volume(self, job_id: uuid.UUID, attempt: int) -> VolumeFile:
        def recount() -> int:
            keys = self.keys(job_id, attempt)
            return sum(
                (self.folder(key) / name).stat().st_size
                for key in keys
                for name in (INDEX_FILE, DATA_FILE)
                if (self.folder(key) / name).exists()
            )

        return VolumeFile(self._job_folder(job_id) / f"{attempt}.volume", recount)

    def _require_volume(self, stream: StreamKey) -> None:
        """Nothing is made for an attempt that its namespace was never charged for: its job may be gone."""
        if self._limit is not None and not self._volume(stream.job_id, stream.attempt).exists():
            raise NeedsGrant(0)

    def _take(
        self, stream: StreamKey, size: int, reserve: int, count: Callable[..., Counted] = Volume.with_lines
    ) -> Refusal | None:
        if self._limit is None:
            return None
        with self._volume(stream.job_id, stream.attempt).changed() as held:
            held[0], refusal = count(held[0], size, self._limit, _now(), reserve)
            return refusal

    def _count_gap(self, stream: StreamKey, records: int) -> None:
        """Count the record of a gap in a volume that is closed. No bound refuses it: it says what is missing. There is
        at most one after each other record, and those have a reserve."""
        if self._limit is not None and records:
            with self._volume(stream.job_id, stream.attempt).changed() as held:
                held[0] = replace(held[0], used=held[0].used + records * RECORD_BYTES)

    def _job_folder(self, job_id: uuid.UUID) -> Path:
        return self.root / short(job_id)

    def _require_job(self, job_id: uuid.UUID) -> None:
        if (self._deleted / short(job_id)).exists():
            # `delete_job` notes it before it removes the folder: it removes this one too, or we see the note.
            self.delete_job(job_id)
            raise JobGone("This job was deleted; its log takes no more lines.")

    @contextlib.contextmanager
    def _writer(self, stream: StreamKey) -> Iterator[StreamWriter]:
        # A process checks the newest data of a stream once: it may be the first after a power cut.
        with open_for_writing(self.folder(stream), check_data=stream not in self._checked) as writer:
            self._require_job(stream.job_id)
            if len(self._checked) > 10_000:
                self._checked.clear()
            self._checked.add(stream)
            yield writer


def gap_text(gap: Gap) -> bytes:
    """What a download shows in place of lines that are missing."""
    what = f"{gap.lines} lines ({gap.dropped_bytes} bytes)"
    if gap.why.cause == Cause.LOST:
        return f"--- {what} were lost here ---\n".encode()
    return f"--- {what} dropped: {reason_of(gap.why)} ---\n".encode()


def _skipped(stream: StreamWriter, first_line: int, writer: int) -> int:
    """How many of the lines from `first_line` on are there already. Raises `PastTheEnd`, `WrittenByAnother`."""
    skipped = stream.next_line - first_line
    if skipped < 0:
        raise PastTheEnd(first_line, stream.next_line)
    if skipped and writer and not stream.has_only(writer, first_line):
        raise WrittenByAnother(first_line, stream.next_line)
    return skipped


def _checked_count(first_line: int, data: bytes, times: Sequence[tuple[int, int]], lines: int | None) -> int:
    count = data.count(b"\n")
    if data and not data.endswith(b"\n"):
        raise LinesRejected("The last line has no newline.", remedy="Send whole lines only.")
    if lines is not None and lines != count:
        raise LinesRejected(f"There are {count} lines, not {lines} as said.")
    if not 0 <= first_line <= LINE_LIMIT - count:
        raise LinesRejected(f"Line number {first_line} is out of range.")
    before = -1
    for offset, at in times:
        if offset <= before or not 0 <= at <= LINE_LIMIT:
            raise LinesRejected(f"Time mark {offset}:{at} is out of order or out of range.")
        before = offset
    return count


def _now() -> int:
    return time.time_ns() // 1_000_000


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []
