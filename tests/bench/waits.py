"""How often the estimated wait was right: portals of different load, played over days with the real admission. Each job
that had to wait was given its range when it was queued, from what had ended until then (`tests.unit.core.
wait_simulation`). The width says that the ranges do not hold by being endless."""

from __future__ import annotations

import time
from collections.abc import Iterable

from tests.bench.lines import Line, median
from tests.unit.core.wait_simulation import Portal, Said

LOADS = (0.5, 0.7, 0.9)
SEEDS = (1, 2)
DAYS = 1.5


def measure() -> Iterable[Line]:
    ended: list[Said] = []
    for load in LOADS:
        these: list[Said] = []
        begun = time.perf_counter()
        for seed in SEEDS:
            portal = Portal(load=load, seed=seed)
            portal.run(DAYS)
            these += [one for one in portal.said.values() if one.waited is not None]
        took = time.perf_counter() - begun
        yield Line(
            f"waits within the first range, load {load:g}", _right(these), "", at_least=0.8,
            note=f"{len(these)} waits, {took:.0f} s",
        )  # fmt: skip
        ended += these
    yield Line("... all together", _right(ended), "", at_least=0.8, note=f"{len(ended)} waits")
    yield Line("... before the correction", sum(map(_is_raw_right, ended)) / len(ended), "")
    yield Line("... end of the range over its begin, median", median([_width(one) for one in ended]), "times")


def _right(these: list[Said]) -> float:
    return sum(one.waited is not None and one.told.low <= one.waited <= one.told.high for one in these) / len(these)


def _is_raw_right(one: Said) -> bool:
    return one.waited is not None and one.raw.low <= one.waited <= one.raw.high


def _width(one: Said) -> float:
    """Half a minute more of each: the quotient of two short waits says little."""
    return (one.told.high + 30) / (one.told.low + 30)
