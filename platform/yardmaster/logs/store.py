"""`LogStore`: all streams of lines under one folder, `<root>/<job>/<attempt>/<role>-<index>/`.

Any number of processes and threads may use stores over the same folder. Writing is by line number, so that whoever
sends again after a cut loses and doubles nothing. Not here: times across streams (`merge`), searching (`search`).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import time as unix_time

from yardmaster.errors import Unavailable
from yardmaster.ids import short
from yardmaster.logs.keys import LINE_LIMIT, JobGone, LinesRejected, PastTheEnd, StreamKey, WrittenByAnother
from yardmaster.logs.lines import BLOCK_BYTES, line_start, thin_out
from yardmaster.logs.reading import NO_LINES, Gap, Head, Line, Span, StreamReader, open_for_reading
from yardmaster.logs.writing import StreamWriter, open_for_writing
from yardmaster.spec import Role


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


class LogStore:
    """Appends, reads and deletes streams. Raises `Unavailable` when the disk fails; nothing half-written counts."""

    def __init__(self, root: Path) -> None:
        self._root = root
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
    ) -> int:
        """Write whole lines, the first being number `first_line`; returns the stream's next line. When this returns,
        the lines are kept; what was there already is skipped, so the call may be repeated.

        `times` are (offset, unix ms): line `first_line + offset` and those after it were read then. `lines`, where
        given, must be how many `data` holds. `writer` is whoever numbers these lines, 1 to 2**32 - 1; two may write
        at once, as a pod that is ending and its successor do, and only one's own lines are skipped. 0: nobody says.
        Raises `PastTheEnd` or `WrittenByAnother` (nothing changes), `LinesRejected`, `Unavailable`.
        """
        count = _checked_count(first_line, data, times, lines)
        with self._writer(stream) as open_stream:
            skipped = _skipped(open_stream, first_line, writer)
            if skipped < count:
                marks = thin_out(times, skipped, default=open_stream.last.time)
                open_stream.add_lines(data, line_start(data, skipped), marks, writer)
            return open_stream.next_line

    def mark_gap(
        self, stream: StreamKey, first_line: int, lines: int, dropped_bytes: int, time: int, *, writer: int = 0
    ) -> int:
        """Note that `lines` lines from `first_line` on are lost; they count as written. Returns the next line. Lines
        that are there stay, so the call may be repeated. Raises as `append` does."""
        if first_line < 0 or lines < 0 or dropped_bytes < 0 or first_line + lines > LINE_LIMIT:
            raise LinesRejected(f"A gap of {lines} lines from {first_line} on is out of range.")
        with self._writer(stream) as open_stream:
            skipped = _skipped(open_stream, first_line, writer)
            if skipped < lines:
                open_stream.add_gap(lines - skipped, dropped_bytes, time, writer)
            return open_stream.next_line

    def mark_end(self, stream: StreamKey, lines: int) -> int:
        """Note that no more lines come after the first `lines`, unless the task restarts. Late marks of an earlier end
        change nothing. Returns the next line. Raises `PastTheEnd` when lines are still missing, `Unavailable`."""
        with self._writer(stream) as writer:
            if lines > writer.next_line:
                raise PastTheEnd(lines, writer.next_line)
            if lines == writer.next_line and not writer.has_ended:
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
        for leftover in self._root.glob(f".deleted-{folder.name}-*"):
            try:
                shutil.rmtree(leftover)
            except FileNotFoundError:
                continue  # another process is removing it as well
            except OSError as error:
                raise Unavailable(f"The logs of the job cannot be removed: {error.strerror}.") from error

    def forget_deleted(self, older_than: float) -> None:
        """Of jobs deleted this many seconds ago, remove what was left once more, and the note that they were deleted:
        whoever may have written to them no longer can."""
        before = unix_time() - older_than
        for name in _names(self._deleted):
            with contextlib.suppress(FileNotFoundError):
                if (self._deleted / name).stat().st_mtime < before:
                    for left in (self._root / name, *self._root.glob(f".deleted-{name}-*")):
                        shutil.rmtree(left, ignore_errors=True)
                    (self._deleted / name).unlink()

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

        Lines of a gap are left out; `gaps` names those that lie in the range.
        """
        with self.reader(stream) as reader:
            if reader is None:
                return Page((), max(first, 0), (), False)
            head = reader.head
            if first < 0:
                first = max(0, head.next_line + first)
            lines: list[Line] = []
            next_line, size = first, 0
            for piece in reader.spans(first, span_bytes=BLOCK_BYTES):
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
        return self._root / ".deleted"

    def _note_deleted(self, name: str) -> None:
        try:
            self._deleted.mkdir(parents=True, exist_ok=True)
            (self._deleted / name).touch()
        except OSError as error:
            raise Unavailable(f"The logs of the job cannot be removed: {error.strerror}.") from error

    def _job_folder(self, job_id: uuid.UUID) -> Path:
        return self._root / short(job_id)

    @contextlib.contextmanager
    def _writer(self, stream: StreamKey) -> Iterator[StreamWriter]:
        # A process checks the newest data of a stream once: it may be the first after a power cut.
        with open_for_writing(self.folder(stream), check_data=stream not in self._checked) as writer:
            if (self._deleted / short(stream.job_id)).exists():
                # `delete_job` notes it before it removes the folder: it removes this one too, or we see the note.
                self.delete_job(stream.job_id)
                raise JobGone("This job was deleted; its log takes no more lines.")
            if len(self._checked) > 10_000:
                self._checked.clear()
            self._checked.add(stream)
            yield writer


def gap_text(gap: Gap) -> bytes:
    """What a download shows in place of lost lines."""
    return f"--- {gap.lines} lines ({gap.dropped_bytes} bytes) were lost here ---\n".encode()


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
    for offset, time in times:
        if offset <= before or not 0 <= time <= LINE_LIMIT:
            raise LinesRejected(f"Time mark {offset}:{time} is out of order or out of range.")
        before = offset
    return count


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []
