"""A file of the engine's that changes when the portal has something for this task: the next report is then not waited
for. What it is, the answer to the report says.
"""

from __future__ import annotations

import os
import threading
import time

LOOK_EVERY = 0.2
"""Seconds between two looks at the file. A look costs some microseconds."""


class Nudges:
    """Waits that the file ends early. Without a file they last as long as they are to."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._seen = self._changed_at()

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Until the event, for so many seconds, or until the file has changed since it was last found changed. Whether
        that was it."""
        until = time.monotonic() + seconds
        each = LOOK_EVERY if self._file else seconds
        while not event.wait(max(0.0, min(each, until - time.monotonic()))):
            if self.came():
                return True
            if time.monotonic() >= until:
                break
        return False

    def came(self) -> bool:
        """Whether it has changed since it was last found changed."""
        now = self._changed_at()
        was, self._seen = self._seen, now
        return now != was

    def _changed_at(self) -> int:
        try:
            return os.stat(self._file).st_mtime_ns if self._file else 0
        except OSError:
            return 0
