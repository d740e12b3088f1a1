"""Histograms over steps as a picture: one ridge for each step, the newest in front. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from yardmaster.formats.summaries import HistogramStep, Series

WIDTH, HEIGHT, RIDGE, BASE = 320.0, 150.0, 46.0, 4.0
MOST_RIDGES = 20


@dataclass(frozen=True)
class Ridge:
    """`points` of a polygon."""

    step: int
    points: str
    depth: int
    """0 to 4: the higher, the newer."""


@dataclass(frozen=True)
class Picture:
    """The ridges of a tag, the oldest first; the values at the left and the right edge."""

    run: str
    tag: str
    ridges: Sequence[Ridge]
    left: str
    right: str

    @property
    def steps(self) -> str:
        first, last = self.ridges[0].step, self.ridges[-1].step
        return f"step {last:,}" if first == last else f"steps {first:,} to {last:,}"


def picture_of(series: Series[HistogramStep]) -> Picture:
    """All steps on one axis of values, each as high as its fullest part."""
    steps = _some(series.steps)
    left, right = min(one.left for one in steps), max(one.right for one in steps)
    gap = (HEIGHT - RIDGE - BASE) / max(1, len(steps) - 1)
    ridges = []
    for number, one in enumerate(steps):
        base = RIDGE + number * gap if len(steps) > 1 else HEIGHT - BASE
        depth = 4 if number == len(steps) - 1 else 4 * number // len(steps)
        ridges.append(Ridge(one.step, _points(one, left, right, base), depth))
    return Picture(series.run, series.tag, ridges, f"{left:.4g}", f"{right:.4g}")


def _some(steps: Sequence[HistogramStep]) -> list[HistogramStep]:
    """At most `MOST_RIDGES`, the first and the last among them."""
    ordered = sorted(steps, key=lambda one: one.step)
    if len(ordered) <= MOST_RIDGES:
        return ordered
    last = len(ordered) - 1
    return [ordered[round(number * last / (MOST_RIDGES - 1))] for number in range(MOST_RIDGES)]


def _points(one: HistogramStep, left: float, right: float, base: float) -> str:
    scale = WIDTH / (right - left)
    width = (one.right - one.left) / len(one.counts)
    highest = max(one.counts)
    found = [((one.left - left) * scale, base)]
    for number, count in enumerate(one.counts):
        found.append(((one.left + (number + 0.5) * width - left) * scale, base - RIDGE * count / highest))
    found.append(((one.right - left) * scale, base))
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in found)
