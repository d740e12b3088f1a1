"""Finding lines by text, regular expression and level, over the whole log where it lies, never over what a browser has.

What is searched is what people see: colours are left out. Each call works for a bounded time and says where to
continue. Plain text is looked for in whole blocks, at memory speed. Regular expressions come from strangers and
Python's can take for ever, so they run in a process of their own that is killed when it is late (`patterns`). Not here:
who may search.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import AnyStr

from yardmaster.logs.keys import LinesRejected, StreamKey
from yardmaster.logs.levels import Level, candidates, level_of
from yardmaster.logs.lines import line_start, without_colours
from yardmaster.logs.reading import Gap, Line, Span
from yardmaster.logs.store import LogStore

QUERY_LIMIT = 500
PAGE_BYTES = 4 << 20


@dataclass(frozen=True)
class Query:
    """What to look for. Lines must hold `text` (empty: any) and be of `level` or above (None: any)."""

    text: str = ""
    regex: bool = False
    case: bool = False
    level: Level | None = None

    def __post_init__(self) -> None:
        if not self.text and self.level is None:
            raise LinesRejected("The search has no text and no level.", remedy="Give a text, a level or both.")
        if len(self.text) > QUERY_LIMIT or "\n" in self.text:
            raise LinesRejected(f"The text to look for must be one line of at most {QUERY_LIMIT} characters.")


@dataclass(frozen=True)
class Position:
    """Where a search continues: a line of one of the streams."""

    stream: int
    line: int


@dataclass(frozen=True)
class SearchPage:
    """What one call found. `next` is None when everything was looked at."""

    matches: tuple[tuple[StreamKey, Line], ...]
    next: Position | None


Finder = Callable[[bytes], Iterator[int]]
"""Takes whole lines, gives the positions of those that match, ascending."""


def search(
    store: LogStore, streams: Sequence[StreamKey], query: Query, start: Position, limit: int, seconds: float
) -> SearchPage:
    """Matching lines, stream after stream, from `start` on; stops after `limit` of them or when `seconds` are over.

    Raises `LinesRejected` for a bad or too slow expression.
    """
    if query.regex and query.text:
        from yardmaster.logs.patterns import search_bounded

        return search_bounded(store, streams, query, start, limit, seconds)
    return scan(store, streams, finder_for(query), start, limit, time.monotonic() + seconds)


def scan(
    store: LogStore, streams: Sequence[StreamKey], find: Finder, start: Position, limit: int, deadline: float
) -> SearchPage:
    """The same with any finder, in this thread. The deadline is looked at between blocks of 1 MiB."""
    matches: list[tuple[StreamKey, Line]] = []
    size = 0
    for position in range(start.stream, len(streams)):
        first = start.line if position == start.stream else 0
        with store.reader(streams[position]) as reader:
            for piece in reader.spans(first) if reader else ():
                is_late = time.monotonic() >= deadline
                if isinstance(piece, Gap):
                    if is_late:
                        return SearchPage(tuple(matches), Position(position, piece.first_line + piece.lines))
                    continue
                if is_late:
                    return SearchPage(tuple(matches), Position(position, piece.first))
                for line in found_lines(piece, find(without_colours(piece.data))):
                    matches.append((streams[position], line))
                    size += len(line.text)
                    if len(matches) >= limit or size >= PAGE_BYTES:
                        return SearchPage(tuple(matches), Position(position, line.number + 1))
    return SearchPage(tuple(matches), None)


def found_lines(span: Span, positions: Iterator[int]) -> Iterator[Line]:
    """The lines of `span` at these ascending positions."""
    at, start = 0, 0
    for position in positions:
        at, start = position, line_start(span.data, position - at, start)
        number = span.first + position
        yield Line(number, span.time_of(number), span.data[start : span.data.index(b"\n", start)])


def finder_for(query: Query) -> Finder:
    """A finder for plain text and levels. It runs in bounded time whatever the text."""
    level = query.level
    if not query.text:
        assert level is not None
        loose = candidates(level)
        return lambda data: _of_level(level, data, _positions(data, b"\n", lambda at: _place(loose, data, at)))
    plain = _text_finder(query.text, query.case)
    return plain if level is None else lambda data: _of_level(level, data, plain(data))


def _text_finder(text: str, case: bool) -> Finder:
    needle = text.encode()
    if case:
        return lambda data: _positions(data, b"\n", lambda at: data.find(needle, at))
    if text.isascii():
        return lambda data: _find_folded(data.lower(), needle.lower())
    pattern = re.compile(re.escape(text), re.IGNORECASE)  # a plain text cannot make it slow
    return lambda data: _find_decoded(data.decode("utf-8", "replace"), pattern)


def _find_folded(folded: bytes, needle: bytes) -> Iterator[int]:
    return _positions(folded, b"\n", lambda at: folded.find(needle, at))


def _find_decoded(text: str, pattern: re.Pattern[str]) -> Iterator[int]:
    return _positions(text, "\n", lambda at: _place(pattern, text, at))


def _place(pattern: re.Pattern[AnyStr], text: AnyStr, at: int) -> int:
    found = pattern.search(text, at)
    return found.start() if found else -1


def _positions(text: AnyStr, newline: AnyStr, find: Callable[[int], int]) -> Iterator[int]:
    """The lines in which `find(from)` finds something, each once."""
    at = counted = line = 0
    while at < len(text) and (hit := find(at)) >= 0:
        line += text.count(newline, counted, hit)
        counted = hit
        yield line
        at = text.find(newline, hit) + 1
        if not at:
            return


def _of_level(level: Level, data: bytes, positions: Iterator[int]) -> Iterator[int]:
    at = start = 0
    for position in positions:
        at, start = position, line_start(data, position - at, start)
        found = level_of(data[start : data.index(b"\n", start)])
        if found is not None and found >= level:
            yield position


@dataclass(frozen=True, slots=True)
class LevelCounts:
    """How many errors and warnings the stream's first `lines` lines have. `first_error` is without its text.

    Lesser levels are not counted: in most logs every line is one, and looking at every line is slow."""

    errors: int = 0
    warnings: int = 0
    lines: int = 0
    first_error: Line | None = None


NOTHING_COUNTED = LevelCounts()
_FIND = finder_for(Query(level=Level.WARNING))


def count_levels(store: LogStore, stream: StreamKey, known: LevelCounts, deadline: float) -> LevelCounts:
    """Count on from `known`, as lines never change once written, until the stream's end or the deadline (of
    `time.monotonic`), looked at every 1 MiB."""
    errors, warnings, lines, first_error = known.errors, known.warnings, known.lines, known.first_error
    with store.reader(stream) as reader:
        for piece in reader.spans(known.lines) if reader else ():
            if isinstance(piece, Gap):
                lines = piece.first_line + piece.lines
            else:
                for line in found_lines(piece, _FIND(without_colours(piece.data))):
                    if level_of(line.text) is Level.ERROR:
                        errors += 1
                        first_error = first_error or line._replace(text=b"")
                    else:
                        warnings += 1
                lines = piece.next_line
            if time.monotonic() >= deadline:
                break
    return LevelCounts(errors, warnings, lines, first_error)
