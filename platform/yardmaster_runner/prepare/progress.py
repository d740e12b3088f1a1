"""How far a preparation is, as lines of its log that the runner reads (`yardmaster_runner.progress`)."""

from __future__ import annotations

import time
from typing import Callable

EVERY = 1.0


class Progress:
    """Of `records` in `pieces`. Skipped records count."""

    def __init__(self, say: Callable[[str], None], records: int, pieces: int) -> None:
        self.say, self.records, self.pieces = say, records, pieces
        self.before = self.ended = 0
        self.said_at = time.monotonic()

    def show(self, done: int) -> None:
        """So many records of this piece are done: a line a second is said."""
        if time.monotonic() - self.said_at >= EVERY:
            self._say(self.before + done)

    def end(self, done: int) -> None:
        """This piece is done."""
        self.before += done
        self.ended += 1
        if self.ended == self.pieces or time.monotonic() - self.said_at >= EVERY:
            self._say(self.before)

    def _say(self, done: int) -> None:
        self.said_at = time.monotonic()
        self.say("step %d/%d records, %d/%d files" % (done, self.records, self.ended, self.pieces))
