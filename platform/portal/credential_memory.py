"""What the web process remembers of credentials that it has asked the database about: bounded, by hash, for seconds.

Good ones, so that not every request asks twice; unknown ones, so that a script with an expired token costs no query
each time; and how many unknown ones an address has sent, so that a flood of them is not looked up one by one. Not here:
what a credential allows: that is asked again in every request, so that a revoked one ends at once.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import Generic, TypeVar

from django.conf import settings

from apps.api.allowances import take_here
from yardmaster.allowances import Allowance, Taking

V = TypeVar("V")
MOST_REMEMBERED = 10_000
BELIEVED = 30.0
"""Seconds that a credential is taken to be good, for limits."""
UNKNOWN_FOR = 60.0
"""Seconds that one is taken to be unknown which never was a token, or is none any more: it will not be one again."""
LOCKED_FOR = 5.0
"""The same of one whose user is locked. So long it may still be refused after the user is let in again."""
ONCE_GOOD_FOR = 3600.0
"""Seconds after its last good lookup in which a credential is looked up whatever else its address sends."""


class Memory(Generic[V]):
    """Values by hash, the last `most` of them, each for so many seconds. Thread-safe."""

    def __init__(self, seconds: float, most: int = MOST_REMEMBERED) -> None:
        self._seconds = seconds
        self._most = most
        self._lock = threading.Lock()
        self._values: OrderedDict[bytes, tuple[float, V]] = OrderedDict()

    def get(self, key: bytes) -> V | None:
        found = self._values.get(key)
        return found[1] if found is not None and found[0] > time.monotonic() else None

    def put(self, key: bytes, value: V, seconds: float | None = None) -> None:
        """Remember it for so many seconds; None: as long as all others."""
        with self._lock:
            self._values[key] = (time.monotonic() + (self._seconds if seconds is None else seconds), value)
            self._values.move_to_end(key)
            while len(self._values) > self._most:
                self._values.popitem(last=False)

    def forget(self, key: bytes) -> None:
        with self._lock:
            self._values.pop(key, None)

    def clear(self) -> None:
        with self._lock:
            self._values.clear()

    def __len__(self) -> int:
        return len(self._values)


def note_unknown(address: str) -> None:
    """Count a credential from this address that the database did not know."""
    take_here([_taking(address, 1)])


def has_sent_too_many(address: str) -> bool:
    """Whether this address has had as many of them looked up within a minute as it may send requests unknown."""
    look = _taking(address, 0)
    return take_here([look]).left(0, look) <= 0


def _taking(address: str, cost: int) -> Taking:
    return Taking(Allowance("unknown credentials", settings.YARDMASTER_RATES["STRANGER"], 60), address, cost)
