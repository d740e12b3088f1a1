"""What people may read of logs, as plain data for answers. Who may is decided by the views."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from apps.logs.level_counts import Tally, tally
from apps.stores import log_store
from yardmaster.job.spec import Role
from yardmaster.logs.keys import LinesRejected, StreamKey
from yardmaster.logs.merge import Cursor, position_merged, raw_merged, read_merged, skip_merged, tail_merged
from yardmaster.logs.reading import Gap, Line
from yardmaster.logs.search import Position, Query, search
from yardmaster.logs.volume import reason_of

SEARCH_SECONDS = 2.0
COUNT_SECONDS = 1.0


def streams_of(job_id: uuid.UUID) -> list[dict[str, Any]]:
    """Every stream of the job, all attempts."""
    return [
        {
            "attempt": info.key.attempt,
            "role": info.key.role.value,
            "index": info.key.index,
            "lines": info.lines,
            "bytes": info.bytes,
            "ended": info.ended,
            "gaps": [_gap(gap) for gap in info.gaps],
        }
        for info in log_store().streams(job_id)
    ]


def lines_of(stream: StreamKey, first: int, limit: int) -> dict[str, Any]:
    """One page of one stream; a negative `first` counts from the end."""
    page = log_store().read(stream, first, limit)
    start = min([line.number for line in page.lines[:1]] + [gap.first_line for gap in page.gaps] + [page.next_line])
    return {
        "lines": [_line(stream, line) for line in page.lines],
        "start": {stream.name: max(start, first)},
        "end": {stream.name: page.next_line},
        "next": page.next_line,
        "ended": page.ended,
        "gaps": [_gap_of(stream, gap) for gap in page.gaps],
    }


@dataclass(frozen=True)
class MergedPosition:
    """Where a page of all streams begins: at a `cursor`, after or before line numbers by task, a third of a page before
    one line (`around`), else at the `first` line of all together (negative: so many from the end)."""

    cursor: str | None = None
    after: Mapping[str, int] | None = None
    before: Mapping[str, int] | None = None
    around: tuple[StreamKey, int] | None = None
    first: int = 0

    def as_cursor(self, job_id: uuid.UUID, attempt: int, limit: int) -> Cursor:
        """Raises `LinesRejected` for a cursor that was not given out."""
        if self.cursor is not None:
            return Cursor.decode(self.cursor)
        if self.after is not None:
            return Cursor(attempt, self.after)
        if self.before is not None:
            return tail_merged(log_store(), job_id, attempt, limit, self.before)
        if self.around is not None:
            place = position_merged(log_store(), *self.around)
            return tail_merged(log_store(), job_id, attempt, max(1, limit // 3), place.lines)
        if self.first < 0:
            return tail_merged(log_store(), job_id, attempt, -self.first)
        return skip_merged(log_store(), job_id, attempt, self.first)


def merged_lines(job_id: uuid.UUID, attempt: int, place: MergedPosition, limit: int) -> dict[str, Any]:
    """One page of all streams by time. Raises `LinesRejected`."""
    start = place.as_cursor(job_id, attempt, limit)
    page = read_merged(log_store(), job_id, start, limit, until=place.before)
    return {
        "lines": [_line(stream, line) for stream, line in page.lines],
        "start": {name: line for name, line in start.lines.items() if line},
        "end": {name: line for name, line in page.cursor.lines.items() if line},
        "next": page.cursor.encode(),
        "ended": page.ended,
        "gaps": [_gap_of(stream, gap) for stream, gap in page.gaps],
    }


def matches_of(streams: list[StreamKey], query: Query, start: str, limit: int) -> dict[str, Any]:
    """Lines that match, and where to search on. `start` is a line number or the `next` of the page before.

    Raises `LinesRejected` for a bad expression or start, `Unavailable`.
    """
    page = search(log_store(), streams, query, _place(streams, start), limit, SEARCH_SECONDS)
    following = f"{streams[page.next.stream].name}:{page.next.line}" if page.next else None
    return {"matches": [_line(stream, line) for stream, line in page.matches], "next": following}


def levels_of(streams: list[StreamKey]) -> dict[str, Any]:
    """How many errors and warnings there are in the first `lines` of all `of` lines. Asked again, it counts on."""
    return levels_json(tally(streams, COUNT_SECONDS))


def levels_json(found: Tally) -> dict[str, Any]:
    first = None if found.first_error is None else _line(*found.first_error)
    return {
        "errors": found.errors,
        "warnings": found.warnings,
        "lines": found.lines,
        "of": found.of,
        "first_error": first and {name: first[name] for name in ("role", "index", "n", "t")},
    }


def streams_named(job_id: uuid.UUID, attempt: int, role: Role | None, index: int) -> list[StreamKey]:
    """One stream, or all of the attempt."""
    return log_store().keys(job_id, attempt) if role is None else [StreamKey(job_id, attempt, role, index)]


def first_lines(job_id: uuid.UUID, attempt: int, role: Role | None, index: int, newest: int) -> dict[str, int]:
    """Where to begin, by stream, so as to read about the `newest` last lines of one stream, or of all together."""
    if role is None:
        return dict(tail_merged(log_store(), job_id, attempt, newest).lines)
    stream = StreamKey(job_id, attempt, role, index)
    return {stream.name: max(0, log_store().next_line(stream) - newest)}


def raw_of(job_id: uuid.UUID, attempt: int, role: Role | None, index: int) -> Iterator[bytes]:
    """The whole text of one stream, or of all by time with their names before each line."""
    if role is None:
        return raw_merged(log_store(), job_id, attempt)
    return log_store().raw(StreamKey(job_id, attempt, role, index))


def _place(streams: list[StreamKey], start: str) -> Position:
    name, _, number = start.rpartition(":")
    names: Iterable[str] = [stream.name for stream in streams]
    if not (number.isascii() and number.isdecimal() and len(number) <= 16) or (name and name not in names):
        raise LinesRejected(
            "The search cannot continue from there.", remedy="Omit `from` to search from the beginning."
        )
    return Position([*names].index(name) if name else 0, int(number))


def _line(stream: StreamKey, line: Line) -> dict[str, Any]:
    text = line.text.decode("utf-8", "replace")
    return {"n": line.number, "t": line.time, "text": text, "role": stream.role.value, "index": stream.index}


def _gap(gap: Gap) -> dict[str, Any]:
    cause = gap.why.cause.name.lower()
    return {
        "first_line": gap.first_line, "lines": gap.lines, "bytes": gap.dropped_bytes,
        "cause": cause, "detail": reason_of(gap.why),
    }  # fmt: skip


def _gap_of(stream: StreamKey, gap: Gap) -> dict[str, Any]:
    return {"role": stream.role.value, "index": stream.index, **_gap(gap)}
