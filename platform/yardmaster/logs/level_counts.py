"""How many errors and warnings a log has. Lines never change once written, so counting goes on where it was left.

Lesser levels are not counted: in most logs every line is one, and looking at every line is slow.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from yardmaster.logs.keys import StreamKey
from yardmaster.logs.levels import Level, level_of
from yardmaster.logs.lines import without_colours
from yardmaster.logs.reading import Gap, Line
from yardmaster.logs.search import Query, finder_for, found_lines
from yardmaster.logs.store import LogStore


@dataclass(frozen=True, slots=True)
class LevelCounts:
    """Of the stream's first `lines` lines. `first_error` is without its text."""

    errors: int = 0
    warnings: int = 0
    lines: int = 0
    first_error: Line | None = None


NOTHING_COUNTED = LevelCounts()
_FIND = finder_for(Query(level=Level.WARNING))


def count_levels(store: LogStore, stream: StreamKey, known: LevelCounts, deadline: float) -> LevelCounts:
    """Count on from `known`, until the stream's end or the deadline (of `time.monotonic`), looked at every 1 MiB."""
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
