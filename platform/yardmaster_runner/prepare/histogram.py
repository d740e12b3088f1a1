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
        self._hold(number, number, number)
        place = self._place(number)
        self.bins[place] = self.bins.get(place, 0) + 1

    def add_all(self, numbers: Any) -> None:
        """The finite numbers of an array of NumPy, as if one came after the other."""
        import numpy

        if not len(numbers):
            return
        self._hold(float(numbers[0]), float(numbers.min()), float(numbers.max()))
        places = numpy.floor(numpy.ldexp(numbers, -self.exponent)).astype(numpy.int64)
        places[(numbers < 0) & (places == 0)] = -1  # smaller than the smallest number, in bins of this width
        for place, count in enumerate(numpy.bincount(places - self.low).tolist(), self.low):
            if count:
                self.bins[place] = self.bins.get(place, 0) + count

    def _hold(self, first: float, low: float, high: float) -> None:
        """Make the bins wide enough for numbers from `low` to `high`; `first` is one of them."""
        if not self.bins:
            self.exponent = max(-1000, math.frexp(first)[1] - FIRST_BINS)
            self.low = self.high = self._place(first)
        largest = max(-low, high)
        # With finer bins it would be more than 64 of them away from the first number.
        exponent = math.frexp(largest)[1] - FIRST_BINS - 2
        if largest > 0 and exponent > self.exponent:
            self._coarsen(exponent)
        while max(self._place(high), self.high) - min(self._place(low), self.low) >= MOST_BINS:
            self._coarsen(self.exponent + 1)
        self.low, self.high = min(self._place(low), self.low), max(self._place(high), self.high)

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
        place = math.floor(math.ldexp(number, -self.exponent))
        return -1 if number < 0 and place == 0 else place

    def _coarsen(self, exponent: int) -> None:
        shift = exponent - self.exponent
        bins: Dict[int, int] = {}
        for place, count in self.bins.items():
            bins[place >> shift] = bins.get(place >> shift, 0) + count
        self.exponent, self.bins = exponent, bins
        self.low, self.high = self.low >> shift, self.high >> shift
