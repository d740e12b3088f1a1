"""Searching with a stranger's regular expression, in a process of its own that ends in time, whatever the expression.

`patterns_program` is that process: it gets the task as JSON, reports what it finds and how far it has come, and ends by
itself when its time is over; when it is stuck inside a line, it is killed here. Not here: plain text (`search`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from yardmaster.errors import Unavailable
from yardmaster.logs.keys import LinesRejected, StreamKey
from yardmaster.logs.reading import Line
from yardmaster.logs.search import PAGE_BYTES, Position, Query, SearchPage
from yardmaster.logs.store import LogStore
from yardmaster.sandbox.process import BoundedProcess

_SEARCHES = BoundedProcess("yardmaster.logs.patterns_program")
_LATE = 0.5
"""Seconds that the process may take beyond its time: to start, and to finish a line."""


def search_bounded(
    store: LogStore, streams: Sequence[StreamKey], query: Query, start: Position, limit: int, seconds: float
) -> SearchPage:
    """As `search.search`. Raises `LinesRejected` when the expression is wrong or gets nowhere in `seconds`,
    `Unavailable` when too many such searches run already."""
    task = {
        "folders": [str(store.folder(key)) for key in streams],
        "pattern": query.text,
        "case": query.case,
        "level": query.level,
        "start": [start.stream, start.line],
        "limit": limit,
        "bytes": PAGE_BYTES,
        "seconds": seconds,
    }
    ended = _SEARCHES.run(json.dumps(task).encode(), seconds=seconds, late=_LATE)
    if ended is None:
        raise Unavailable("Too many searches with regular expressions run at once.", remedy="Try again in a moment.")
    # A killed process may leave half a report.
    lines = ended.output.splitlines(keepends=True)
    return _page([json.loads(line) for line in lines if line.endswith(b"\n")], streams, start)


def _page(reports: list[dict[str, Any]], streams: Sequence[StreamKey], start: Position) -> SearchPage:
    if not reports:
        raise Unavailable("The search did not start in time.", remedy="Try again in a moment.")
    matches: list[tuple[StreamKey, Line]] = []
    place: Position | None = start
    for report in reports:
        if "error" in report:
            raise LinesRejected(
                f"The regular expression is invalid: {report['error']}.", remedy="Correct it and search again."
            )
        for stream, number, time, text in report["found"]:
            matches.append((streams[stream], Line(number, time, text.encode("latin-1"))))
        place = Position(*report["next"]) if report["next"] else None
    if place == start:
        raise LinesRejected(
            "The regular expression takes too long.",
            remedy="Avoid nested repetitions such as (a+)+, or look for a plain text.",
        )
    return SearchPage(tuple(matches), place)
