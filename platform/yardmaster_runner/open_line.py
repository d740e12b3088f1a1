"""Shows those who follow the log the line that the script has not finished: once a second at most, and while they do.

It is a picture, not a part of the log: what does not arrive is not sent again. The line itself is kept when it is
finished.
"""

from __future__ import annotations

import threading
import time
from typing import Callable, Optional, Protocol, Tuple

from yardmaster_runner.answers import PortalAway, PortalRefused, PortalRejected
from yardmaster_runner.redraw import shown

EVERY = 1.0
AGAIN = 5.0
"""Seconds after which a line that stays the same is sent once more, for those who have begun to follow meanwhile."""
AFTER_TROUBLE = 15.0


class OpenLineApi(Protocol):
    """The part of `TaskApi` that shows an open line."""

    def log_open(self, line: int, text: str) -> None: ...


class OpenLine(threading.Thread):
    """`current` gives the open line's number and bytes (`Intake.open_line`), `base` the portal's number of line 0."""

    def __init__(
        self,
        current: Callable[[], Tuple[int, bytes]],
        base: Callable[[], Optional[int]],
        is_followed: Callable[[], bool],
        api: OpenLineApi,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(name="open-line", daemon=True)
        self._current = current
        self._base = base
        self._is_followed = is_followed
        self._api = api
        self._clock = clock
        self._sent = (0, "")
        self._again_at = self._quiet_until = 0.0
        self._finishing = threading.Event()

    def finish(self) -> None:
        """Returns at once."""
        self._finishing.set()

    def run(self) -> None:
        while not self._finishing.wait(EVERY):
            self.step()

    def step(self) -> None:
        """Send the line, if there is news of it and someone to see it."""
        if not self._is_followed():
            self._sent = (0, "")
            return
        number, data = self._current()
        now, line = self._clock(), ((self._base() or 0) + number, shown(data) if data else "")
        is_news = line != self._sent and (line[1] or self._sent[1])
        if now < self._quiet_until or not (is_news or (line[1] and now >= self._again_at)):
            return
        self._sent, self._again_at = line, now + AGAIN
        try:
            self._api.log_open(*line)
        except (PortalAway, PortalRefused, PortalRejected):
            self._quiet_until = now + AFTER_TROUBLE
