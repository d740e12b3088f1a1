"""What is kept in memory for a moment, since the same is asked again soon. Pure."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Kept(Generic[K, V]):
    """Each value until its time (of `time.monotonic`); of more than `most` the oldest goes. For all threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._values: dict[K, tuple[float, V]] = {}

    def get(self, key: K) -> V | None:
        until, value = self._values.get(key, (0.0, None))
        return value if time.monotonic() < until else None

    def put(self, key: K, value: V, until: float) -> None:
        with self._lock:
            self._values.pop(key, None)
            while len(self._values) >= self._most:
                del self._values[next(iter(self._values))]
            self._values[key] = (until, value)

    def drop(self, is_over: Callable[[K, V], bool]) -> None:
        """Forget all of which this is true."""
        with self._lock:
            found = tuple(self._values.items())
        over = [key for key, (_, value) in found if is_over(key, value)]
        with self._lock:
            for key in over:
                self._values.pop(key, None)
