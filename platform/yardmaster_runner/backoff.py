"""How long to wait before asking again. Pure but for the jitter's dice, which may be given."""

from __future__ import annotations

import random
from typing import Callable


class Backoff:
    """Delays that double from `first` to `longest`, less some jitter, so that tasks do not ask in step."""

    def __init__(self, first: float = 0.25, longest: float = 15.0, dice: Callable[[], float] = random.random) -> None:
        self._first = first
        self._longest = longest
        self._dice = dice
        self._next = first

    def next(self) -> float:
        """The next delay in seconds; never more than `longest`."""
        delay = self._next
        self._next = min(self._longest, delay * 2)
        return delay * (1 - self._dice() / 4)

    def reset(self) -> None:
        """It worked: the next trouble starts from the first delay again."""
        self._next = self._first
