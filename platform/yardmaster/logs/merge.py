"""Many streams as one, in time order.

The order is a function of what is stored: at each step the stream whose next lines are oldest goes first, ties by
task. So a position is nothing but one line number per stream, and reading on from it repeats and skips nothing, also
while streams still grow (a late line comes late, with its own time). Memory does not grow with streams or lines: a
page holds one block of data at a time. Not here: how one stream is read (`reading`).
"""

from __future__ import annotations

import base64
import contextlib
import heapq
import json
import uuid
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from yardmaster.logs.keys import LINE_LIMIT, LinesRejected, StreamKey
from yardmaster.logs.reading import Gap, Line, Span, StreamReader, gap_of
from yardmaster.logs.records import Kind, Record
from yardmaster.logs.store import PAGE_RECORDS, LogStore, gap_text

_OPEN_READERS = 64
"""Two file descriptors each: a job may have more tasks than a process may have files."""
_RECORDS_AHEAD = 64


@dataclass(frozen=True)
class Cursor:
    """A place in the merged lines of one attempt: the next line of each stream, by name; absent means 0."""

    attempt: int
    lines: Mapping[str, int] = field(default_factory=dict)

    def encode(self) -> str:
        """Opaque text for addresses and clients."""
        raw = json.dumps(
            [self.attempt, {name: line for name, line in self.lines.items() if line}], separators=(",", ":")
        )
        return base64.urlsafe_b64encode(raw.encode()).decode().rstrip("=")

    @classmethod
    def decode(cls, text: str) -> Cursor:
        """The inverse of `encode`. Raises `LinesRejected` for anything else."""
        try:
            value: Any = json.loads(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
            attempt, lines = value
            whole = [attempt, *lines.values()]
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise LinesRejected("The cursor is not one that was given out.") from error
        if not all(type(number) is int and 0 <= number <= LINE_LIMIT for number in whole):
            raise LinesRejected("The cursor is not one that was given out.")
        return cls(attempt, lines)


@dataclass(frozen=True, slots=True)
class MergedPage:
    """Lines of several streams by time. `ended`: every stream there is has ended and nothing comes after this page."""

    lines: tuple[tuple[StreamKey, Line], ...]
    cursor: Cursor
    gaps: tuple[tuple[StreamKey, Gap], ...]
    ended: bool


def read_merged(
    store: LogStore,
    job_id: uuid.UUID,
    cursor: Cursor,
    limit: int,
    max_bytes: int = 4 << 20,
    until: Mapping[str, int] | None = None,
) -> MergedPage:
    """At most `limit` lines from `cursor` on, and about `max_bytes`; of each stream only those before `until`."""
    keys = store.keys(job_id, cursor.attempt)
    lines: list[tuple[StreamKey, Line]] = []
    gaps: list[tuple[StreamKey, Gap]] = []
    position = dict(cursor.lines)
    size = 0
    with _Readers(store) as readers:
        for key, piece in islice(_pieces(readers, keys, position, until), PAGE_RECORDS):
            if isinstance(piece, Gap):
                gaps.append((key, piece))
                position[key.name] = piece.first_line + piece.lines
                continue
            new = [(key, line) for line in islice(piece.lines(), limit - len(lines))]
            lines += new
            size += len(piece.data)
            position[key.name] = new[-1][1].number + 1
            if len(lines) >= limit or size >= max_bytes:
                break
        ended = all(_is_at_end(readers.open(key), position.get(key.name, 0)) for key in keys)
    return MergedPage(tuple(lines), Cursor(cursor.attempt, position), tuple(gaps), ended and bool(keys))


def tail_merged(
    store: LogStore, job_id: uuid.UUID, attempt: int, count: int, until: Mapping[str, int] | None = None
) -> Cursor:
    """Where to read from so as to get about the last `count` lines of all streams together, or of what of each stream
    is before `until` (absent: nothing is)."""
    with _Readers(store) as readers:
        position: dict[str, int] = {}
        newest: list[tuple[int, int, StreamKey, int]] = []
        for order, key in enumerate(store.keys(job_id, attempt)):
            reader = readers.open(key)
            position[key.name] = reader.head.next_line if reader else 0
            if until is not None:
                position[key.name] = min(position[key.name], until.get(key.name, 0))
            _push_block_before(newest, readers, key, position[key.name], order)
        while newest and count > 0:
            _, order, key, first = heapq.heappop(newest)
            taken = min(count, position[key.name] - first)
            position[key.name] -= taken
            count -= taken
            _push_block_before(newest, readers, key, position[key.name], order)
    return Cursor(attempt, position)


def skip_merged(store: LogStore, job_id: uuid.UUID, attempt: int, count: int) -> Cursor:
    """Where to read from so as to leave out the first `count` lines of all streams together."""
    position: dict[str, int] = {}
    for key, record in _all_records(store, job_id, attempt):
        passed = min(count, record.lines)
        position[key.name] = record.first + passed
        count -= passed
        if not count:
            break
    return Cursor(attempt, position)


def position_merged(store: LogStore, stream: StreamKey, line: int) -> Cursor:
    """Where to read from so as to begin with this line of one stream; at the end where there is no such line."""
    position: dict[str, int] = {}
    for key, record in _all_records(store, stream.job_id, stream.attempt):
        if key == stream and line < record.next_line:
            position[key.name] = line
            break
        position[key.name] = record.next_line
    return Cursor(stream.attempt, position)


def _all_records(store: LogStore, job_id: uuid.UUID, attempt: int) -> Iterator[tuple[StreamKey, Record]]:
    """The index of every stream, in the order of their lines. No line is read."""
    with _Readers(store) as readers:
        for feed, record in _in_order([_Feed(readers, key, 0) for key in store.keys(job_id, attempt)]):
            yield feed.key, record
            feed.pass_over()


def raw_merged(store: LogStore, job_id: uuid.UUID, attempt: int) -> Iterator[bytes]:
    """The whole text of the attempt by time, each line with its task before it."""
    with _Readers(store) as readers:
        for key, piece in _pieces(readers, store.keys(job_id, attempt), {}):
            prefix = f"[{key.name}] ".encode()
            text = gap_text(piece) if isinstance(piece, Gap) else piece.data
            yield prefix + text[:-1].replace(b"\n", b"\n" + prefix) + b"\n"


class _Readers(contextlib.AbstractContextManager["_Readers"]):
    """Keeps the readers that were used last open."""

    def __init__(self, store: LogStore) -> None:
        self._store = store
        self._open: OrderedDict[StreamKey, tuple[contextlib.ExitStack, StreamReader | None]] = OrderedDict()

    def open(self, key: StreamKey) -> StreamReader | None:
        if key in self._open:
            self._open.move_to_end(key)
        else:
            if len(self._open) >= _OPEN_READERS:
                self._open.popitem(last=False)[1][0].close()
            stack = contextlib.ExitStack()
            self._open[key] = stack, stack.enter_context(self._store.reader(key))
        return self._open[key][1]

    def __exit__(self, *_: object) -> None:
        for stack, _reader in self._open.values():
            stack.close()
        self._open.clear()


class _Feed:
    """One stream's records from a line on, a few at a time; not from line `end` on."""

    def __init__(self, readers: _Readers, key: StreamKey, line: int, end: int = LINE_LIMIT) -> None:
        self.key, self._readers, self._line, self._end = key, readers, line, end
        self._records: deque[Record] = deque()

    def peek(self) -> Record | None:
        """The next record that has lines; None at the end."""
        while self._line < self._end:
            while self._records and not self._records[0].lines:
                self._records.popleft()  # an end mark
            if self._records:
                return self._records[0]
            reader = self._readers.open(self.key)
            if reader is None or self._line >= reader.head.next_line:
                return None
            self._records.extend(islice(reader.records(self._line, batch=_RECORDS_AHEAD), _RECORDS_AHEAD))
        return None

    def pass_over(self) -> None:
        """Continue after the next record."""
        self._line = self._records.popleft().next_line

    def take(self) -> Span | Gap | None:
        """What the next record stands for. None when the job was deleted meanwhile."""
        record = self._records.popleft()
        line, self._line = self._line, min(record.next_line, self._end)
        if record.kind == Kind.GAP:
            gap = gap_of(record, line)
            return replace(gap, lines=self._line - gap.first_line)
        reader = self._readers.open(self.key)
        return reader.span([record], line).until(self._line) if reader else None


def _pieces(
    readers: _Readers,
    keys: list[StreamKey],
    position: Mapping[str, int],
    until: Mapping[str, int] | None = None,
) -> Iterator[tuple[StreamKey, Span | Gap]]:
    ends = {key.name: LINE_LIMIT if until is None else until.get(key.name, 0) for key in keys}
    for feed, _ in _in_order([_Feed(readers, key, position.get(key.name, 0), ends[key.name]) for key in keys]):
        piece = feed.take()
        if piece is None:
            return  # the job was deleted meanwhile
        yield feed.key, piece


def _in_order(feeds: Sequence[_Feed]) -> Iterator[tuple[_Feed, Record]]:
    """The feed whose next record is oldest, again and again, with that record: to take, or to pass over."""
    oldest = [(record.time, order) for order, feed in enumerate(feeds) if (record := feed.peek())]
    heapq.heapify(oldest)
    while oldest:
        feed = feeds[oldest[0][1]]
        record = feed.peek()
        assert record is not None, "only feeds with a record are in the heap"
        yield feed, record
        following = feed.peek()
        if following:
            heapq.heapreplace(oldest, (following.time, oldest[0][1]))
        else:
            heapq.heappop(oldest)


def _push_block_before(
    newest: list[tuple[int, int, StreamKey, int]], readers: _Readers, key: StreamKey, line: int, order: int
) -> None:
    reader = readers.open(key)
    if reader and line:
        first, time = reader.block_before(line)
        heapq.heappush(newest, (-time, -order, key, first))


def _is_at_end(reader: StreamReader | None, line: int) -> bool:
    return reader is None or (reader.head.ended and line >= reader.head.next_line)
