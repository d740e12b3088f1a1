"""Memory for long answers and columns that is used again: a new page of memory costs as much as filling it.

Needs the standard library alone.
"""

from __future__ import annotations

import sys
import threading
from typing import List

SPARE = 4
"""Pieces of memory that are kept although nothing looks at them."""
SHORTEST = 1 << 16


class Buffers:
    """Gives out memory that nothing else looks at: what is looked at is left alone until the last view is gone. Safe to
    use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: List[bytearray] = []

    def space(self, length: int) -> memoryview:
        """So many bytes, with whatever was in them before."""
        with self._lock:
            free = [at for at in range(len(self._all)) if _references(self._all, at) == _UNUSED]
            for at in free:
                if length <= len(self._all[at]) <= max(4 * length, SHORTEST):
                    return memoryview(self._all[at])[:length]
            for at in reversed(free[: 1 - SPARE]):
                del self._all[at]
            self._all.append(bytearray(max(length + (length >> 3), SHORTEST)))
            return memoryview(self._all[-1])[:length]


def _references(some: List[bytearray], at: int) -> int:
    """Whatever looks at memory refers to the object that owns it, also an array of NumPy and a tensor over that."""
    return sys.getrefcount(some[at])


_UNUSED = _references([bytearray()], 0)
"""The same of one that only its list refers to; the number itself differs between versions of Python."""
