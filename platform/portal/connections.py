"""Which connections are open, from where, and which of them wait for a request: so that one more always finds a place.

Who opens connections and says nothing costs a descriptor each, and without descriptors no one is answered. So past a
bound each new connection pushes out the one that has waited longest for the head of a request. Not here: WebSockets,
which `portal.rate_limit` counts.
"""

from __future__ import annotations

import resource
from collections import Counter, OrderedDict
from typing import Generic, TypeVar

T = TypeVar("T")


class Connections(Generic[T]):
    """Those of one process. Each waits, but from the end of a request's head to the end of its answer."""

    def __init__(self) -> None:
        self._addresses: dict[T, str] = {}
        self._counts: Counter[str] = Counter()
        self._waiting: OrderedDict[T, None] = OrderedDict()
        self._waiting_of: dict[str, OrderedDict[T, None]] = {}

    def add(self, one: T, address: str) -> None:
        """A connection that waits for its first request."""
        self._addresses[one] = address
        self._counts[address] += 1
        self.wait(one)

    def wait(self, one: T) -> None:
        """It has been answered."""
        if (address := self._addresses.get(one)) is not None:
            self._waiting[one] = None
            self._waiting_of.setdefault(address, OrderedDict())[one] = None

    def wait_no_more(self, one: T) -> None:
        """It has sent the head of a request."""
        if one in self._waiting:
            del self._waiting[one]
            address = self._addresses[one]
            del self._waiting_of[address][one]
            if not self._waiting_of[address]:
                del self._waiting_of[address]

    def remove(self, one: T) -> None:
        """It has ended, or it is no longer one of these."""
        self.wait_no_more(one)
        if (address := self._addresses.pop(one, None)) is not None:
            self._counts[address] -= 1
            if not self._counts[address]:
                del self._counts[address]

    def longest_waiting(self, address: str | None = None) -> T | None:
        """The one that has waited longest, of this address or of all."""
        waiting = self._waiting if address is None else self._waiting_of.get(address, ())
        return next(iter(waiting), None)

    def count(self, address: str) -> int:
        """How many there are from this address."""
        return self._counts[address]


def most_at_once(wanted: int) -> int:
    """As many as wanted, at most one for two descriptors that this process may have: requests need files, too."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if soft == resource.RLIM_INFINITY else max(1, min(wanted, soft // 2))
