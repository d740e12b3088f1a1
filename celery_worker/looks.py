"""Scans of buckets and readings of models: one at a time in a process, since how long they take is up to users, and the
other threads are for jobs. A reading is short and goes before scans, of which one may take hours in passes of a minute.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections import deque
from collections.abc import Callable

_REMEMBERED = 100
_AWAITED = 5.0
"""Seconds for which scans leave the slot to a reading that was woken."""


class Looks:
    """The slot for them. `wake` sends a message again, of who found the slot taken and may have it now."""

    def __init__(
        self,
        first: str,
        others: str,
        wake: Callable[[str, uuid.UUID], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._slot = threading.BoundedSemaphore(1)
        self._first = first
        self._wake = wake
        self._clock = clock
        self._awaited_until = float("-inf")
        # Messages of those that found no place. The sweep replaces those that do not fit.
        self._put_off: dict[str, deque[uuid.UUID]] = {one: deque(maxlen=_REMEMBERED) for one in (first, others)}

    def one(self, message: str, subject: uuid.UUID, look: Callable[[uuid.UUID], uuid.UUID]) -> None:
        """Look, if the slot is free and no other goes first. `look` says whom it has looked at, which may be one whose
        turn it is rather."""
        if (message != self._first and self._clock() < self._awaited_until) or not self._slot.acquire(blocking=False):
            self._put_off[message].append(subject)
            return
        try:
            if message == self._first:
                self._awaited_until = float("-inf")
            if look(subject) != subject:
                self._put_off[message].append(subject)
        finally:
            self._slot.release()
            self._wake_next()

    def _wake_next(self) -> None:
        for message, waiting in self._put_off.items():
            try:
                subject = waiting.popleft()
            except IndexError:
                continue
            if message == self._first:
                self._awaited_until = self._clock() + _AWAITED
            self._wake(message, subject)
            return
