"""How often each class occurs, as bars of one scale. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MOST = 40


@dataclass(frozen=True)
class Bar:
    """`width` is in percent of the longest bar, `share` in percent of all."""

    label: str
    count: int
    width: float
    share: float


@dataclass(frozen=True)
class Bars:
    """In the order of the labels. `classes` is how many there are, also beyond those shown."""

    bars: list[Bar]
    classes: int
    smallest: int
    largest: int


def bars_of(counts: Mapping[str, int], most: int = MOST) -> Bars:
    """Where there are more classes than `most`, the most frequent ones are shown."""
    total, largest = sum(counts.values()) or 1, max(counts.values(), default=0)
    shown = counts if len(counts) <= most else dict(sorted(counts.items(), key=lambda one: -one[1])[:most])
    bars = [Bar(label, n, round(100 * n / (largest or 1), 1), round(100 * n / total, 1)) for label, n in shown.items()]
    return Bars(bars, len(counts), min(counts.values(), default=0), largest)
