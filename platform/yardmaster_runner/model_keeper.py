"""Keeps the model that the script exports: sends complete exports while the script still runs, so that little is left
to send at its end. Only then, when the script has ended well or was asked to stop, they become a version.

An export that has changed since it was sent is sent whole again. What cannot be kept never stops the script; it is said
in the task's ending.
"""

from __future__ import annotations

import os
import threading
import time
import traceback
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple

from yardmaster_runner.exits import note
from yardmaster_runner.exports import Export, find_export
from yardmaster_runner.relative_model import RelativeModel
from yardmaster_runner.upload import LocalFile, Uploader, UploadFailed, describe

LOOK_EVERY = 10.0
QUIET = 30.0
"""Seconds without a change after which an export is sent while the script runs."""
SENT_EVERY = 15 * 60.0
"""Seconds between two beginnings. What was sent of an export that has changed may count against the quota for as long
as its addresses are good."""
States = Mapping[str, Tuple[int, int, int]]
"""By path a file's size, time of change and number: others once it has changed."""


class Sent(NamedTuple):
    """An upload with the files that were sent, or are being sent, and how they were then."""

    upload: str
    states: States


class ModelKeeper(threading.Thread):
    """Sends what is complete until told to finish; then, where there is something to keep, keeps it. `elsewhere` finds
    a model where there is none in the model directory, given whether the script has written all that it wanted to."""

    def __init__(
        self,
        running: Uploader,
        last: Uploader,
        model_dir: str,
        elsewhere: Callable[[bool], Optional[RelativeModel]] = lambda is_finished: None,
        *,
        models_alone: bool = False,
    ) -> None:
        """`models_alone`: the directory has checkpoints and logs as well, of which none belong to the model."""
        super().__init__(name="model", daemon=True)
        self._running, self._last = running, last
        self._model_dir, self._models_alone = model_dir, models_alone
        self._elsewhere = elsewhere
        self._sent: Optional[Sent] = None
        self._begun: States = {}
        self._begun_at = float("-inf")
        self._finishing = threading.Event()
        self._is_kept = self._was_stopped = self._is_finished = False
        self.trouble = ""
        """Why the model is not kept; empty when it is, or there is none."""
        self.found: Optional[RelativeModel] = None
        """What is kept, where that is not of the model directory."""

    def finish(self, *, was_stopped: bool, is_finished: bool) -> None:
        """The script has ended: with exit code 0 (`is_finished`), or asked to stop (`was_stopped`); else nothing is
        kept. Returns at once."""
        self._was_stopped, self._is_finished = was_stopped, is_finished
        self._is_kept = was_stopped or is_finished
        self._finishing.set()

    def run(self) -> None:
        while not self._finishing.wait(LOOK_EVERY):
            try:
                self.send_early(time.time())
            except (UploadFailed, OSError) as error:
                note("the model is not sent yet: %s" % error)
            except Exception:  # noqa: BLE001 - the script runs on, and all is sent at its end
                note("sending the model failed:\n" + traceback.format_exc())
        if self._is_kept:
            self.trouble = self.keep()

    def send_early(self, now: float) -> None:
        """Send what is complete, unless it was begun already or is still being written. Raises `UploadFailed` and
        OSError."""
        export = self._find(is_finished=False)
        states = self._states(export.paths)
        if not states or states == self._begun or time.monotonic() - self._begun_at < SENT_EVERY:
            return
        if any(now - modified / 1e9 < QUIET for _, modified, _ in states.values()):
            return
        self._begun, self._begun_at = states, time.monotonic()
        self._sent = None  # the portal drops it with the new one
        files = self._files(export)
        upload = self._running.begin("model", files)
        self._sent = Sent(str(upload["id"]), states)
        self._running.fill(upload, files, lambda: self._check(states))

    def keep(self) -> str:
        """Send what is lacking of the export, and have it put together. Empty when all is kept or there is nothing;
        else why it is not."""
        try:
            export = self._find(is_finished=self._is_finished)
            if not export.paths and (found := self.found_elsewhere(is_finished=self._is_finished)) is not None:
                self._keep_found(found)
            elif export.paths:
                more: Dict[str, Any] = {"stopped": True} if self._was_stopped else {}
                if self._sent is not None and self._sent.states == self._states(export.paths):
                    more["continues"] = self._sent.upload
                self._last.send("model", self._files(export), more)
        except (UploadFailed, OSError) as error:
            return "the model is not kept: %s" % error
        return export.problem

    def _find(self, *, is_finished: bool) -> Export:
        return find_export(self._model_dir, is_finished=is_finished, models_alone=self._models_alone)

    def found_elsewhere(self, *, is_finished: bool) -> Optional[RelativeModel]:
        """What becomes the model, where the model directory has none."""
        return None if self._find(is_finished=is_finished).paths else self._elsewhere(is_finished)

    def _keep_found(self, found: RelativeModel) -> None:
        more: Dict[str, Any] = {"stopped": True} if self._was_stopped else {}
        sources = [(path, found.prefix + path) for path in found.paths]
        sizes = [os.lstat(os.path.join(found.root, source)).st_size for _, source in sources]
        files = [LocalFile(*names, size, root=found.root) for names, size in zip(sources, sizes)]
        self._last.send("model", files, {**more, "found_in": found.found_in})
        self.found = found

    def _files(self, export: Export) -> List[LocalFile]:
        return [describe(path, os.path.join(self._model_dir, path)) for path in export.paths]

    def _states(self, paths: List[str]) -> States:
        found = {path: os.stat(os.path.join(self._model_dir, path)) for path in paths}
        return {path: (one.st_size, one.st_mtime_ns, one.st_ino) for path, one in found.items()}

    def _check(self, states: States) -> None:
        """Raises `UploadFailed` where it is of no use to continue."""
        if self._finishing.is_set() and not self._is_kept:
            raise UploadFailed("the script has failed")
        export = self._find(is_finished=self._finishing.is_set() and self._is_finished)
        if self._states(export.paths) != states:
            raise UploadFailed("it has changed meanwhile")
