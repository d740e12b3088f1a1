"""Looks, every few seconds, at what the script does without being asked: its use of the machine and its event files."""

from __future__ import annotations

import os
import threading
import time
import traceback
from typing import Optional

from yardmaster_runner.events import EventFiles
from yardmaster_runner.exits import note
from yardmaster_runner.processes import largest_reaped, usage_below
from yardmaster_runner.progress import Progress
from yardmaster_runner.reporter import Facts
from yardmaster_runner.stalls import StallWatch

LOOK_EVERY = 1.0
EVENTS_EVERY = 2.0
USAGE_EVERY = 3.0


class Observer(threading.Thread):
    """Feeds `facts` until told to finish. Without `events` the event files are another task's to read."""

    def __init__(self, facts: Facts, progress: Progress, events: Optional[EventFiles]) -> None:
        super().__init__(name="observer", daemon=True)
        self._facts = facts
        self._progress = progress
        self._events = events
        self._peak = 0
        self.stalls: Optional[StallWatch] = None
        self._finishing = threading.Event()

    def finish(self) -> None:
        """Look once more, at everything, then end. Returns at once."""
        self._finishing.set()

    def run(self) -> None:
        events_at = usage_at = 0.0
        while not self._finishing.wait(LOOK_EVERY):
            now = time.monotonic()
            try:
                if now - usage_at >= USAGE_EVERY:
                    usage_at = now
                    self._see_usage()
                if now - events_at >= EVENTS_EVERY:
                    self._see_events()
                    events_at = time.monotonic()
                self._facts.progress(self._progress.facts())
            except Exception:  # noqa: BLE001 - the script runs on, and the next look may go better
                note("observing failed:\n" + traceback.format_exc())
        self._last_look()

    def _last_look(self) -> None:
        try:
            while self._see_events(is_last=True):
                pass
            self._see_usage()
            self._facts.progress(self._progress.facts())
        except Exception:  # noqa: BLE001 - what could not be seen is missing from the report, no more
            note("the last observation failed:\n" + traceback.format_exc())

    def _see_usage(self) -> None:
        used = usage_below(os.getpid())
        self._peak = max(self._peak, used.memory, largest_reaped())
        self._facts.usage(used.cpu_seconds, used.memory, self._peak)
        if self.stalls is not None and not self._finishing.is_set():
            self._facts.stalled(self.stalls.look(used.cpu_seconds))

    def _see_events(self, *, is_last: bool = False) -> bool:
        """Whether there was anything new."""
        if self._events is None:
            return False
        found = self._events.look(is_last=is_last)
        if found.step is not None:
            self._progress.see_step(found.step)
        self._facts.scalars(found.scalars)
        return bool(found.scalars)
