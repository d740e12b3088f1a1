"""Keeps what the script writes below its log directory, apart from checkpoints: event files, tables, pictures. While it
runs, at most every half minute and for at most a fifth of the time, and once more at its end. Event files of a job that
a TensorBoard shows are kept every two seconds, within the same fifth.

A look sends what is new in a few uploads, and the portal shows the files of an upload when it has all of them. What
cannot be kept never stops the script and never fails the job; the portal is told why.

It costs the script little: files are listed and read in a thread of the runner, a piece at a time, and nothing of it is
on the way of the script's output.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
import traceback
from functools import partial
from typing import Callable, Dict, List, Optional

from yardmaster_runner.answers import PortalAway, PortalRefused, PortalRejected
from yardmaster_runner.exits import note
from yardmaster_runner.output_files import (
    QUIET,
    Kept,
    Piece,
    batches,
    kept_of,
    list_files,
    open_below,
    pieces_to_send,
)
from yardmaster_runner.task_api import TaskApi
from yardmaster_runner.upload import LocalFile, Uploader, UploadFailed

FIRST_LOOK = 10.0
LOOK_EVERY = 30.0
WATCHED_EVERY = 2.0
"""Seconds between two looks at event files alone, while a TensorBoard shows them."""
PAUSE_TIMES_WORK = 4.0
LONGEST_PAUSE = 600.0
COPY_BYTES = 256 << 10
COPY_TRIES = 3
_PAUSE_BETWEEN = 0.05


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
    """Uploads what is new until told to finish. `at_end_only`: another task sends the files of a folder that they
    share, and this one only what was added to event files afterwards. `on_problem` is told why outputs are not being
    saved, and an empty text when they are again."""

    def __init__(
        self,
        running: Uploader,
        last: Uploader,
        api: TaskApi,
        folder: str,
        scratch: str,
        on_problem: Callable[[str], None],
        *,
        is_watched: Callable[[], bool] = lambda: False,
        is_shared: bool = False,
        at_end_only: bool = False,
        was_restarted: bool = False,
    ) -> None:
        super().__init__(name="outputs", daemon=True)
        self._running, self._last, self._api = running, last, api
        self._folder = os.path.realpath(folder)
        self._scratch = scratch
        self._on_problem = on_problem
        self._is_watched = is_watched
        self._is_shared = is_shared
        self._at_end_only = at_end_only
        self._asks_first = was_restarted or at_end_only
        self._kept: Dict[str, Kept] = {}
        self._refused: Dict[str, int] = {}
        """Files that the portal does not take, and when they were written."""
        self._finishing = threading.Event()
        self.problem = ""

    def finish(self) -> None:
        """Send what is new once more, then end. Returns at once."""
        self._finishing.set()

    def run(self) -> None:
        begun = time.monotonic()
        looks = Looks(begun + FIRST_LOOK, begun + WATCHED_EVERY)
        while not self._finishing.wait(None if self._at_end_only else looks.pause(time.monotonic())):
            begun = time.monotonic()
            is_whole = looks.is_whole(begun)
            if is_whole or (self._is_watched() and looks.is_due(begun)):
                self._look(self._running, is_last=False, events_alone=not is_whole)
                looks.ended(begun, time.monotonic(), is_whole)
        self._look(self._last, is_last=True)
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _look(self, uploader: Uploader, *, is_last: bool, events_alone: bool = False) -> None:
        try:
            problem = self.send_new(uploader, is_last=is_last, events_alone=events_alone)
        except Exception:  # noqa: BLE001 - the script runs on, and the next look may go better
            note("saving outputs failed:\n" + traceback.format_exc())
            problem = "saving outputs failed"
        if problem != self.problem:
            self.problem = problem
            if problem:
                note("outputs are not being saved: %s" % problem)
            self._on_problem(problem)

    def send_new(self, uploader: Uploader, *, is_last: bool, events_alone: bool = False) -> str:
        """Upload what the portal lacks. Why something of it is not there; empty: all is. `is_last`: no process writes
        any more. `events_alone`: of event files; what was wrong with others stays wrong."""
        if self._asks_first:
            try:
                self._kept = kept_of(self._api.event_files(is_shared=self._is_shared))
            except (PortalAway, PortalRefused, PortalRejected) as error:
                return str(error)
            self._asks_first = False
        listing = list_files(self._folder)
        quiet_before = time.time_ns() - int(QUIET * 1e9) if not is_last else (1 << 63)
        files = [one for one in listing.files if one.has_events or not (events_alone or self._at_end_only)]
        files = [one for one in files if self._refused.get(one.path) != one.modified]
        waiting = batches(pieces_to_send(files, self._kept, quiet_before))
        while waiting:
            batch = waiting.pop(0)
            try:
                self._send(uploader, batch, is_last=is_last)
            except UploadFailed as error:
                if error.code != "invalid":
                    return str(error)
                waiting = self._without_invalid(batch) + waiting
            if self._finishing.is_set() and not is_last:
                return self.problem  # the last look sends the rest
            time.sleep(0 if is_last else _PAUSE_BETWEEN)
        if events_alone:
            return self.problem
        if self._refused:
            return "%d files were refused, among them %s" % (len(self._refused), min(self._refused))
        return listing.left_out

    def _without_invalid(self, batch: List[Piece]) -> List[List[Piece]]:
        """The portal refuses one of these files: look for it in halves, and remember it."""
        if len(batch) == 1:
            self._refused[batch[0].file.path] = batch[0].file.modified
            return []
        middle = len(batch) // 2
        return [batch[:middle], batch[middle:]]

    def _send(self, uploader: Uploader, batch: List[Piece], *, is_last: bool) -> None:
        """Upload these together. Those that change meanwhile are left for the next look."""
        if batch[0].is_small:
            shutil.rmtree(self._scratch, ignore_errors=True)
            copied = [(piece, self._copy(piece, number)) for number, piece in enumerate(batch)]
            ready = [(piece, file) for piece, file in copied if file is not None]
        else:
            (piece,) = batch
            ready = [(piece, LocalFile(piece.file.path, piece.file.path, piece.length, piece.start, self._folder))]
        if not ready:
            return
        more = {"shared": self._is_shared, "starts": [piece.start for piece, _ in ready]}
        try:
            uploader.send(
                "outputs", [file for _, file in ready], {**self._api.who, **more}, partial(self._check, batch)
            )
        except (FileChanged, OSError):
            return
        except UploadFailed as error:
            if error.code == "past_the_end":  # what the portal has is not what we remember: send these whole
                for piece, _ in ready:
                    self._kept.pop(piece.file.path, None)
            raise
        for piece, _ in ready:
            self._kept[piece.file.path] = piece.kept

    def _copy(self, piece: Piece, number: int) -> Optional[LocalFile]:
        """The piece as it is, in a file of our own; None where the script changes it all the time or has removed it."""
        os.makedirs(self._scratch, exist_ok=True)
        target = os.path.join(self._scratch, str(number))
        for _ in range(COPY_TRIES):
            try:
                source = open_below(self._folder, piece.file.path)
            except OSError:
                return None
            with os.fdopen(source, "rb") as read, open(target, "wb") as written:
                read.seek(piece.start)
                left = piece.length
                while left:
                    data = read.read(min(left, COPY_BYTES))
                    if not data:
                        break
                    written.write(data)
                    left -= len(data)
                if not left and piece.file.is_unchanged(os.fstat(read.fileno())):
                    return LocalFile(piece.file.path, target, piece.length)
        return None

    def _check(self, batch: List[Piece]) -> None:
        """Raises `FileChanged` where a file that is sent from where it is, is not as it was when it was listed."""
        piece = batch[0]
        if piece.is_small:
            return
        try:
            source = open_below(self._folder, piece.file.path)
        except OSError as error:
            raise FileChanged(str(error)) from error
        try:
            if not piece.file.is_unchanged(os.fstat(source)):
                raise FileChanged("%s has changed" % piece.file.path)
        finally:
            os.close(source)


class FileChanged(UploadFailed):
    """The script has changed the file while it was sent."""
