"""Lines over time, as numbers for an SVG that the server draws. Pure: a table beside the picture has the figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

WIDTH, HEIGHT = 720, 160
MARK = 12
"""How wide a single point is drawn."""
Points = Sequence[tuple[datetime, float | None]]
"""In the order of time. None: not known, where the line is broken."""


@dataclass(frozen=True)
class Line:
    """A series. `paths` are its unbroken parts as `points` of a polyline; a single point is drawn short and level,
    within the picture."""

    number: int
    name: str
    paths: tuple[str, ...]


@dataclass(frozen=True)
class Lines:
    """`top` is the figure at the upper edge; 0: there is nothing to draw."""

    lines: tuple[Line, ...]
    top: float
    begin: datetime
    end: datetime


def lines(
    series: Mapping[str, Points], begin: datetime, end: datetime, *, longest_gap: timedelta | None = None
) -> Lines:
    """Of each series its line from `begin` to `end`. Points further apart than `longest_gap` are not joined."""
    top = max((value for points in series.values() for _, value in points if value is not None), default=0.0)
    drawn = []
    for number, (name, points) in enumerate(series.items()):
        parts = [_path(part, top, begin, end) for part in _parts(points, longest_gap)] if top else []
        drawn.append(Line(number, name, tuple(parts)))
    return Lines(tuple(drawn), top, begin, end)


def _parts(points: Points, longest_gap: timedelta | None) -> list[list[tuple[datetime, float]]]:
    parts: list[list[tuple[datetime, float]]] = []
    last: datetime | None = None
    for at, value in points:
        if value is None:
            last = None
            continue
        if last is None or (longest_gap is not None and at - last > longest_gap):
            parts.append([])
        parts[-1].append((at, value))
        last = at
    return parts


def _path(part: Sequence[tuple[datetime, float]], top: float, begin: datetime, end: datetime) -> str:
    whole = max(1.0, (end - begin).total_seconds())
    places = [(WIDTH * (at - begin).total_seconds() / whole, HEIGHT - (HEIGHT - 2) * value / top) for at, value in part]
    if len(places) == 1:
        x, y = places[0]
        left = min(max(0.0, x - MARK / 2), WIDTH - MARK)
        places = [(left, y), (left + MARK, y)]
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
