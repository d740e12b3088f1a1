"""An event that a signal handler sets.

A handler runs in the main thread, between any two of its steps. `threading.Event` takes a lock that is not reentrant:
a handler waits for ever if it interrupts the main thread, or another handler, while that one holds the lock.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import threading
from typing import Optional


class SignalEvent(threading.Event):
    """As `threading.Event`, without a lock. It is never cleared."""

    def __init__(self) -> None:
        super().__init__()
        self._has_come = False
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)

    def __del__(self) -> None:
        for one in (self._reading, self._writing):
            with contextlib.suppress(OSError):
                os.close(one)

    def is_set(self) -> bool:
        return self._has_come

    def set(self) -> None:
        if not self._has_come:
            self._has_come = True
            with contextlib.suppress(OSError):  # full: then it wakes up all the same
                os.write(self._writing, b"\0")

    def wait(self, timeout: Optional[float] = None) -> bool:
        if not self._has_come:
            waiting = select.poll()
            waiting.register(self._reading, select.POLLIN)
            waiting.poll(None if timeout is None else math.ceil(max(timeout, 0) * 1_000))
        return self._has_come
