"""Stacked bars over time, as numbers for an SVG that the server draws. Pure: the table below them has the figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from apps.api.display import hours

MOST_SERIES = 6
OTHERS = "others"
WIDTH, HEIGHT = 720, 160


@dataclass(frozen=True)
class Piece:
    """A part of a bar, in the units of the picture. `series` counts from 0."""

    series: int
    x: str
    y: str
    width: str
    height: str
    words: str


@dataclass(frozen=True)
class Bars:
    """`names` of the series, the largest first; `top` is the figure of the highest bar."""

    names: list[str]
    pieces: list[Piece]
    top: Decimal
    first: str
    last: str


def bars(
    figures: Mapping[str, Mapping[date, Decimal]],
    steps: Sequence[date],
    words: str,
    label: Callable[[date], str] = str,
) -> Bars:
    """Of each series its figure per step; beyond the largest they are drawn as one. `words`: what the figures are,
    `label`: what a step is called."""
    largest = sorted(figures, key=lambda name: (-sum(figures[name].values()), name))
    names, rest = largest[:MOST_SERIES], largest[MOST_SERIES:]
    drawn = [(name, figures[name]) for name in names]
    if rest:
        names = [*names, OTHERS]
        sums = {step: sum((figures[one].get(step, Decimal()) for one in rest), Decimal()) for step in steps}
        drawn.append((OTHERS, sums))
    top = max((sum((one.get(step, Decimal()) for _, one in drawn), Decimal()) for step in steps), default=Decimal())
    pieces: list[Piece] = []
    width = Decimal(WIDTH) / max(1, len(steps))
    for column, step in enumerate(steps):
        y = Decimal(HEIGHT)
        for number, (name, one) in enumerate(drawn):
            height = one.get(step, Decimal()) * HEIGHT / top if top else Decimal()
            if height:
                y -= height
                said = f"{name}, {label(step)}: {hours(one[step])} {words}"
                x = column * width + width / 10
                pieces.append(Piece(number, f"{x:.2f}", f"{y:.2f}", f"{width * 8 / 10:.2f}", f"{height:.2f}", said))
    return Bars(names, pieces, top, label(steps[0]) if steps else "", label(steps[-1]) if steps else "")
