"""A task whose script has failed stays open for a while, so that users can look at it in a terminal.

It ends when its time is over, when it is released, or when the task is to stop. All continues then as after a failure.
"""

from __future__ import annotations

import threading
import time
from typing import Callable

LOOK_EVERY = 0.25


class Hold:
    """`release` may be called from any thread, `wait` once and from the main thread."""

    def __init__(self) -> None:
        self._released = threading.Event()
        self._is_held = False

    def release(self) -> None:
        """Without effect unless the task is held."""
        if self._is_held:
            self._released.set()

    def wait(self, seconds: float, is_stopped: Callable[[], bool]) -> None:
        """Until one of the three. A stop is looked for, as a handler of signals may not set what is waited for here."""
        self._is_held = True
        until = time.monotonic() + seconds
        while not is_stopped() and time.monotonic() < until:
            if self._released.wait(min(LOOK_EVERY, max(0.0, until - time.monotonic()))):
                return
