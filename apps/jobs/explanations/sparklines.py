"""Small pictures of numbers over time, as points of an SVG line. Pure: nothing here knows what the numbers are.

The picture is `WIDTH` by `HEIGHT`, however large it is drawn; time goes to the right, zero is at the bottom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

WIDTH, HEIGHT = 120, 28
MOST_POINTS = 60


@dataclass(frozen=True)
class Sparkline:
    """A line of values and, across it, the limit that they stay below, if there is one within the picture."""

    line: str
    area: str
    limit: float | None


def sparkline(values: Sequence[tuple[float, float]], limit: float | None) -> Sparkline | None:
    """The picture of (time, value) pairs, oldest first; None where there is too little to draw."""
    if len(values) < 2 or values[-1][0] <= values[0][0]:
        return None
    top = max(1.05 * max(value for _, value in values), limit or 0.0) or 1.0
    first, last = values[0][0], values[-1][0]
    points = [
        (round((time - first) / (last - first) * WIDTH, 1), _y(value, top))
        for time, value in _peaks(values, MOST_POINTS)
    ]
    line = " ".join(f"{x:g},{y:g}" for x, y in points)
    return Sparkline(line, f"0,{HEIGHT} {line} {WIDTH},{HEIGHT}", None if limit is None else _y(limit, top))


def _y(value: float, top: float) -> float:
    return round(HEIGHT - 1 - value / top * (HEIGHT - 2), 1)


def _peaks(values: Sequence[tuple[float, float]], most: int) -> list[tuple[float, float]]:
    """At most `most` of the values: the highest of each stretch, the first and the last."""
    if len(values) <= most:
        return list(values)
    inner, stretches = values[1:-1], most - 2
    bounds = [number * len(inner) // stretches for number in range(stretches + 1)]
    highest = [max(inner[start:end], key=lambda one: one[1]) for start, end in pairwise(bounds) if end > start]
    return [values[0], *highest, values[-1]]
