"""Pure work on bytes that hold whole lines, without touching single lines: their number may be millions.

Every function leans on `bytes.count`, `find` and `rfind`, which run at memory speed. Not here: files.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

BLOCK_BYTES = 1 << 18
"""How much data one index record covers at most, unless a single line is longer."""
TIME_STEP = 10
"""Milliseconds. Lines read within one step share the first one's time: finer order between tasks means nothing."""
_FIRST_STEP = 4096
_COLOURS = re.compile(rb"\x1b\[[0-9;:]*m")


@dataclass(frozen=True, slots=True)
class Block:
    """Lines that lie together and were read at one time: `data[start:end]`."""

    start: int
    end: int
    lines: int
    time: int
    checksum: int


def line_start(data: bytes, line: int, start: int = 0) -> int:
    """The byte offset of line `line`, counted from `start` (itself the start of a line). Costs only the distance.

    Raises `ValueError` when there are fewer lines.
    """
    position, step, growing = start, _FIRST_STEP, True
    while line > 0:
        found = data.count(b"\n", position, position + step)
        if found == line:
            return data.rfind(b"\n", position, position + step) + 1
        if found > line:
            growing = False
            step //= 2
            continue
        if position + step >= len(data):
            raise ValueError("fewer lines than asked for")
        line -= found
        position += step
        if growing:
            step *= 2
    return position


def without_colours(data: bytes) -> bytes:
    """The data without what colours it on a terminal: as people see it, in as many lines."""
    return _COLOURS.sub(b"", data) if b"\x1b" in data else data


def has_longer_line(data: bytes, limit: int) -> bool:
    """Whether any line has more than `limit` bytes, its newline not counted."""
    position = 0
    while position + limit < len(data):
        newline = data.rfind(b"\n", position, position + limit + 1)
        if newline < 0:
            return True
        position = newline + 1
    return False


def thin_out(times: Sequence[tuple[int, int]], skipped: int, default: int) -> list[tuple[int, int]]:
    """The (line offset, unix ms) marks that matter once `skipped` lines are left out. The first is at offset 0, each
    next one at least `TIME_STEP` away. Lines before the first mark share its time; without marks all have `default`.
    """
    current = times[0][1] if times else default
    marks: list[tuple[int, int]] = []
    for offset, time in times:
        if offset <= skipped:
            current = time
            continue
        if not marks:
            marks.append((0, current))
        if abs(time - marks[-1][1]) >= TIME_STEP:
            marks.append((offset - skipped, time))
    return marks or [(0, current)]


def blocks_of(data: bytes, start: int, marks: Sequence[tuple[int, int]]) -> Iterator[Block]:
    """Cut `data[start:]` into blocks: at every mark that lies inside, and so that none is longer than `BLOCK_BYTES`."""
    for position, (offset, time) in enumerate(marks):
        end = len(data)
        if position + 1 < len(marks):
            try:
                end = line_start(data, marks[position + 1][0] - offset, start)
            except ValueError:  # the mark speaks of lines that were not sent
                end = len(data)
        while start < end:
            cut = end
            if end - start > BLOCK_BYTES:
                cut = data.rfind(b"\n", start, start + BLOCK_BYTES) + 1 or data.index(b"\n", start + BLOCK_BYTES) + 1
            checksum = zlib.crc32(memoryview(data)[start:cut])
            yield Block(start, cut, data.count(b"\n", start, cut), time, checksum)
            start = cut
