"""Sends what is new of one folder's outputs, with what the portal has of them remembered. When that is done is
`output_keeper`'s matter.
"""

from __future__ import annotations

import os
import shutil
import time
from functools import partial
from typing import Callable, Dict, List, Optional

from yardmaster_runner.answers import PortalAway, PortalRefused, PortalRejected
from yardmaster_runner.output_files import (
    QUIET,
    Kept,
    Listing,
    Piece,
    batches,
    kept_of,
    list_files,
    open_below,
    pieces_to_send,
)
from yardmaster_runner.task_api import TaskApi
from yardmaster_runner.upload import LocalFile, Uploader, UploadFailed

COPY_BYTES = 256 << 10
COPY_TRIES = 3
_PAUSE_BETWEEN = 0.05


class OutputSender:
    """Of one folder. `listing` names its outputs, given whether no process writes any more (default: all files).
    `is_shared`: they are called by their paths alone, without the task's name. `at_end_only`: another task sends the
    files of a folder that they share, and this one only what was added to event files afterwards. `asks_first`: the
    portal may have event files that are not remembered here."""

    def __init__(
        self,
        api: TaskApi,
        folder: str,
        scratch: str,
        listing: Optional[Callable[[bool], Listing]] = None,
        *,
        is_shared: bool = False,
        at_end_only: bool = False,
        asks_first: bool = False,
    ) -> None:
        self._api = api
        self.folder = os.path.realpath(folder)
        self._scratch = scratch
        self._listing = listing or (lambda is_last: list_files(self.folder))
        self._is_shared = is_shared
        self.at_end_only = at_end_only
        self._asks_first = asks_first or at_end_only
        self._kept: Dict[str, Kept] = {}
        self._refused: Dict[str, int] = {}
        """Files that the portal does not take, and when they were written."""
        self.is_ending = False
        """What is not sent yet is left for the last look."""
        self.problem = ""

    def clean_up(self) -> None:
        shutil.rmtree(self._scratch, ignore_errors=True)

    def send_new(self, uploader: Uploader, *, is_last: bool, events_alone: bool = False) -> str:
        """Upload what the portal lacks. Why something of it is not there; empty: all is. `is_last`: no process writes
        any more. `events_alone`: of event files; what was wrong with others stays wrong."""
        self.problem = self._send_new(uploader, is_last=is_last, events_alone=events_alone)
        return self.problem

    def _send_new(self, uploader: Uploader, *, is_last: bool, events_alone: bool = False) -> str:
        if self._asks_first:
            try:
                self._kept = kept_of(self._api.event_files(is_shared=self._is_shared))
            except (PortalAway, PortalRefused, PortalRejected) as error:
                return str(error)
            self._asks_first = False
        listing = self._listing(is_last)
        quiet_before = time.time_ns() - int(QUIET * 1e9) if not is_last else (1 << 63)
        files = [one for one in listing.files if one.has_events or not (events_alone or self.at_end_only)]
        files = [one for one in files if self._refused.get(one.stored_as) != one.modified]
        waiting = batches(pieces_to_send(files, self._kept, quiet_before))
        while waiting:
            batch = waiting.pop(0)
            try:
                self._send(uploader, batch, is_last=is_last)
            except UploadFailed as error:
                if error.code != "invalid":
                    return str(error)
                waiting = self._without_invalid(batch) + waiting
            if self.is_ending and not is_last:
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
            self._refused[batch[0].file.stored_as] = batch[0].file.modified
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
            ready = [(piece, LocalFile(piece.file.stored_as, piece.file.path, piece.length, piece.start, self.folder))]
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
                    self._kept.pop(piece.file.stored_as, None)
            raise
        for piece, _ in ready:
            self._kept[piece.file.stored_as] = piece.kept

    def _copy(self, piece: Piece, number: int) -> Optional[LocalFile]:
        """The piece as it is, in a file of our own; None where the script changes it all the time or has removed it."""
        os.makedirs(self._scratch, exist_ok=True)
        target = os.path.join(self._scratch, str(number))
        for _ in range(COPY_TRIES):
            try:
                source = open_below(self.folder, piece.file.path)
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
                    return LocalFile(piece.file.stored_as, target, piece.length)
        return None

    def _check(self, batch: List[Piece]) -> None:
        """Raises `FileChanged` where a file that is sent from where it is, is not as it was when it was listed."""
        piece = batch[0]
        if piece.is_small:
            return
        try:
            source = open_below(self.folder, piece.file.path)
        except OSError as error:
            raise FileChanged(str(error)) from error
        try:
            if not piece.file.is_unchanged(os.fstat(source)):
                raise FileChanged("%s has changed" % piece.file.path)
        finally:
            os.close(source)


class FileChanged(UploadFailed):
    """The script has changed the file while it was sent."""
