"""How often numbers of a stream occur, in at most 64 bins of one width, and two streams together.

The width is a power of two and bins begin at its multiples, so that two histograms of any streams can be added: the
finer one is made as coarse as the other. It does not matter how numbers were divided between workers.
"""

from __future__ import annotations

import math
from typing import Any, Dict, Mapping

MOST_BINS = 64
FIRST_BINS = 6
"""The first number lies in bin 32 to 63 of its own power of two."""


class Histogram:
    """`exponent` is that of the width; None before the first number."""

    def __init__(self) -> None:
        self.exponent = 0
        self.bins: Dict[int, int] = {}
        self.low = self.high = 0

    def add(self, number: float) -> None:
        """One finite number more."""
        if not self.bins:
            self.exponent = max(-1000, math.frexp(number)[1] - FIRST_BINS)
            self.low = self.high = self._place(number)
        place = self._place(number)
        if place < self.low or place > self.high:
            while max(place, self.high) - min(place, self.low) >= MOST_BINS:
                self._coarsen(self.exponent + max(1, self._excess(number)))
                place = self._place(number)
            self.low, self.high = min(place, self.low), max(place, self.high)
        self.bins[place] = self.bins.get(place, 0) + 1

    def with_other(self, other: "Histogram") -> "Histogram":
        """Both together, as if one had seen the numbers of both."""
        out = Histogram()
        some = [one for one in (self, other) if one.bins]
        out.exponent = max((one.exponent for one in some), default=0)
        for one in some:
            shift = out.exponent - one.exponent
            for place, count in one.bins.items():
                out.bins[place >> shift] = out.bins.get(place >> shift, 0) + count
        if out.bins:
            out.low, out.high = min(out.bins), max(out.bins)
            while out.high - out.low >= MOST_BINS:
                out._coarsen(out.exponent + 1)
        return out

    def facts(self) -> Dict[str, Any]:
        """For `dataset.json`: where the first bin begins, the width of all, and how many numbers are in each."""
        counts = [self.bins.get(place, 0) for place in range(self.low, self.high + 1)]
        width = math.ldexp(1.0, self.exponent)
        return {"start": self.low * width, "width": width, "counts": counts}

    def to_members(self) -> Dict[str, Any]:
        return {"exponent": self.exponent, "bins": sorted(self.bins.items())}

    @classmethod
    def from_members(cls, members: Mapping[str, Any]) -> "Histogram":
        """Raises ValueError, KeyError or TypeError for what is none: it may come from anyone."""
        out = cls()
        out.exponent = int(members["exponent"])
        out.bins = {int(place): int(count) for place, count in members["bins"]}
        if len(out.bins) > MOST_BINS or not -1100 <= out.exponent <= 1100:
            raise ValueError("a histogram has %d bins of the width 2**%d" % (len(out.bins), out.exponent))
        if out.bins:
            out.low, out.high = min(out.bins), max(out.bins)
            if out.high - out.low >= MOST_BINS or min(out.bins.values()) < 0:
                raise ValueError("a histogram has bins from %d to %d" % (out.low, out.high))
        return out

    def _place(self, number: float) -> int:
        return math.floor(math.ldexp(number, -self.exponent))

    def _excess(self, number: float) -> int:
        """By how many powers of two the number is larger than what the bins can hold, at most."""
        return math.frexp(number)[1] - self.exponent - 8

    def _coarsen(self, exponent: int) -> None:
        shift = exponent - self.exponent
        bins: Dict[int, int] = {}
        for place, count in self.bins.items():
            bins[place >> shift] = bins.get(place >> shift, 0) + count
        self.exponent, self.bins = exponent, bins
        self.low, self.high = min(bins), max(bins)
