"""Keeps what the script writes below its log directory, apart from checkpoints, and in its working folder: event files,
tables, pictures. While it runs, at most every half minute and for at most a fifth of the time, and once more at its
end. Event files of a job that a TensorBoard shows are kept every two seconds, within the same fifth.

A look sends what is new in a few uploads, and the portal shows the files of an upload when it has all of them. What
cannot be kept never stops the script and never fails the job; the portal is told why.

It costs the script little: files are listed and read in a thread of the runner, a piece at a time, and nothing of it is
on the way of the script's output.
"""

from __future__ import annotations

import threading
import time
import traceback
from typing import Callable, Sequence

from yardmaster_runner.exits import note
from yardmaster_runner.output_sender import OutputSender
from yardmaster_runner.upload import Uploader

FIRST_LOOK = 10.0
LOOK_EVERY = 30.0
WATCHED_EVERY = 2.0
"""Seconds between two looks at event files alone, while a TensorBoard shows them."""
PAUSE_TIMES_WORK = 4.0
LONGEST_PAUSE = 600.0


class Looks:
    """When to look next: at all files, and at event files alone. Both together take at most a fifth of the time."""

    def __init__(self, whole_at: float, events_at: float) -> None:
        self._whole_at, self._events_at = whole_at, events_at

    def pause(self, now: float) -> float:
        """Until something may be due; whether the job is watched may change meanwhile."""
        return max(0.0, min(self._whole_at, max(self._events_at, now + WATCHED_EVERY / 2)) - now)

    def is_whole(self, now: float) -> bool:
        return now >= self._whole_at

    def is_due(self, now: float) -> bool:
        """Whether event files alone may be looked at."""
        return now >= self._events_at

    def ended(self, begun: float, now: float, is_whole: bool) -> None:
        rest = PAUSE_TIMES_WORK * (now - begun)
        self._events_at = now + min(LONGEST_PAUSE, max(WATCHED_EVERY, rest))
        if is_whole:
            self._whole_at = now + min(LONGEST_PAUSE, max(LOOK_EVERY, rest))
        else:
            self._whole_at = max(self._whole_at, now + min(LONGEST_PAUSE, rest))


class OutputKeeper(threading.Thread):
    """Uploads what is new until told to finish, folder by folder: a task has one upload of outputs at a time.
    `on_problem` is told why outputs are not being saved, and an empty text when they are again."""

    def __init__(
        self,
        running: Uploader,
        last: Uploader,
        senders: Sequence[OutputSender],
        on_problem: Callable[[str], None],
        *,
        is_watched: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(name="outputs", daemon=True)
        self._running, self._last = running, last
        self.senders = senders
        self._on_problem = on_problem
        self._is_watched = is_watched
        self._at_end_only = all(one.at_end_only for one in senders)
        self._finishing = threading.Event()
        self.problem = ""

    def finish(self) -> None:
        """Send what is new once more, then end. Returns at once."""
        for one in self.senders:
            one.is_ending = True
        self._finishing.set()

    def run(self) -> None:
        begun = time.monotonic()
        looks = Looks(begun + FIRST_LOOK, begun + WATCHED_EVERY)
        while not self._finishing.wait(None if self._at_end_only else looks.pause(time.monotonic())):
            begun = time.monotonic()
            is_whole = looks.is_whole(begun)
            if is_whole or (self._is_watched() and looks.is_due(begun)):
                self.look(is_last=False, events_alone=not is_whole)
                looks.ended(begun, time.monotonic(), is_whole)
        self.look(is_last=True)
        for one in self.senders:
            one.clean_up()

    def look(self, *, is_last: bool, events_alone: bool = False) -> None:
        """Send what is new of every folder, and say what is wrong where that has changed."""
        senders = [one for one in self.senders if is_last or not one.at_end_only]
        problems = [self._sent(one, is_last=is_last, events_alone=events_alone) for one in senders]
        problem = "; ".join(dict.fromkeys(one for one in problems if one))
        if problem != self.problem:
            self.problem = problem
            if problem:
                note("outputs are not being saved: %s" % problem)
            self._on_problem(problem)

    def _sent(self, sender: OutputSender, *, is_last: bool, events_alone: bool) -> str:
        try:
            uploader = self._last if is_last else self._running
            return sender.send_new(uploader, is_last=is_last, events_alone=events_alone)
        except Exception:  # noqa: BLE001 - the script runs on, and the next look may go better
            note("saving outputs failed:\n" + traceback.format_exc())
            return "saving outputs failed"
