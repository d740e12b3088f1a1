"""Errors and warnings of a job's log, counted once: what was counted is remembered, and counting continues from there.

Each call works for a bounded time. Remembered per process, in bounded memory; forgotten counts are counted again.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from apps.stores import log_store
from yardmaster.logs.keys import StreamKey
from yardmaster.logs.reading import Line
from yardmaster.logs.search import NOTHING_COUNTED, LevelCounts, count_levels

REMEMBERED = 10_000


@dataclass(frozen=True)
class Tally:
    """Of `lines` lines out of `of`. Complete when both are the same; only then the first error is so for sure."""

    errors: int
    warnings: int
    lines: int
    of: int
    first_error: tuple[StreamKey, Line] | None = None


def tally(streams: Sequence[StreamKey], seconds: float) -> Tally:
    """The streams together. Raises `Unavailable`."""
    deadline = time.monotonic() + seconds
    counted: list[tuple[StreamKey, LevelCounts]] = []
    there = 0
    for stream in streams:
        end = log_store().next_line(stream)
        known = _remembered.get(stream)
        if known.lines < end and time.monotonic() < deadline:
            known = count_levels(log_store(), stream, known, deadline)
            _remembered.put(stream, known)
        counted.append((stream, known))
        there += max(end, known.lines)
    first_errors = [(stream, one.first_error) for stream, one in counted if one.first_error is not None]
    return Tally(
        errors=sum(one.errors for _, one in counted),
        warnings=sum(one.warnings for _, one in counted),
        lines=sum(one.lines for _, one in counted),
        of=there,
        first_error=min(first_errors, key=lambda found: found[1].time, default=None),
    )


class _Remembered:
    """The newest counts by stream."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._counts: OrderedDict[StreamKey, LevelCounts] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, stream: StreamKey) -> LevelCounts:
        with self._lock:
            return self._counts.get(stream, NOTHING_COUNTED)

    def put(self, stream: StreamKey, counts: LevelCounts) -> None:
        with self._lock:
            self._counts[stream] = counts
            self._counts.move_to_end(stream)
            while len(self._counts) > self._most:
                self._counts.popitem(last=False)


_remembered = _Remembered(REMEMBERED)
