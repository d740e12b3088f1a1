"""Minimum, maximum, mean and standard deviation of a stream, and of two streams together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Dict, Mapping


@dataclass
class Numbers:
    """Welford's sums. `add` passes over numbers that are not finite."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0
    low: float = math.inf
    high: float = -math.inf

    def add(self, number: float) -> None:
        if not math.isfinite(number):
            return
        self.count += 1
        delta = number - self.mean
        self.mean += delta / self.count
        self.squares += delta * (number - self.mean)
        self.low = min(self.low, number)
        self.high = max(self.high, number)

    def with_all(self, numbers: Any) -> Numbers:
        """With the finite numbers of an array of NumPy."""
        if not len(numbers):
            return self
        mean = float(numbers.mean())
        squares = float(((numbers - mean) ** 2).sum())
        return self.with_other(Numbers(len(numbers), mean, squares, float(numbers.min()), float(numbers.max())))

    def with_other(self, other: Numbers) -> Numbers:
        """Both together (Chan): as if one had seen the numbers of both."""
        if not self.count or not other.count:
            return self if self.count else other
        count = self.count + other.count
        delta = other.mean - self.mean
        return Numbers(
            count,
            self.mean + delta * other.count / count,
            self.squares + other.squares + delta * delta * self.count * other.count / count,
            min(self.low, other.low),
            max(self.high, other.high),
        )

    def facts(self) -> Dict[str, float]:
        """For `dataset.json`; empty where there was no number."""
        if not self.count:
            return {}
        std = math.sqrt(self.squares / self.count)
        return {"count": self.count, "min": self.low, "max": self.high, "mean": self.mean, "std": std}

    def to_members(self) -> Dict[str, float]:
        if not self.count:
            return {}
        return dict(self.__dict__)

    @classmethod
    def from_members(cls, members: Mapping[str, float]) -> Numbers:
        return cls(**members)  # type: ignore[arg-type]
