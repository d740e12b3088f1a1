"""Keeps the newest checkpoint of the script, while it runs and at its end; and what it publishes.

Only the deciding task keeps checkpoints. What cannot be kept never stops the script; it is said in the task's ending.
Not here: the model (`model_keeper`), other outputs (`output_keeper`).
"""

from __future__ import annotations

import os
import threading
import time
import traceback
from typing import Callable, List, Tuple

from yardmaster_runner.checkpoints import Complete, find_complete, has_checkpoint, snapshot
from yardmaster_runner.exits import note
from yardmaster_runner.task_api import TaskApi
from yardmaster_runner.upload import AlreadyStored, Uploader, UploadFailed, describe, files_below

LOOK_EVERY = 3.0
UPLOAD_EVERY = 30.0
Signature = Tuple[Tuple[str, Tuple[Tuple[str, int, int], ...]], ...]


class CheckpointKeeper(threading.Thread):
    """Uploads the newest complete checkpoint, at most every half minute, and the last one when told to finish."""

    def __init__(self, uploader: Uploader, log_dir: str, scratch: str, step_seen: Callable[[], int]) -> None:
        super().__init__(name="checkpoints", daemon=True)
        self._uploader = uploader
        self._log_dir = log_dir
        self._scratch = scratch
        self._step_seen = step_seen
        self._kept: Signature = ()
        self._last_step = -1
        self._finishing = threading.Event()
        self.trouble = ""
        """Why the newest checkpoint is not kept; empty when it is, or there is none."""

    def finish(self) -> None:
        """Keep the last one, then end. Returns at once."""
        self._finishing.set()

    def run(self) -> None:
        uploaded_at = float("-inf")
        is_last = False
        while not is_last:
            is_last = self._finishing.wait(LOOK_EVERY)
            if is_last or time.monotonic() - uploaded_at >= UPLOAD_EVERY:
                try:
                    if self.keep_newest(settled=is_last):
                        uploaded_at = time.monotonic()
                except Exception:  # noqa: BLE001 - the script runs on, and the next look may go better
                    self.trouble = "saving a checkpoint failed"
                    note(self.trouble + ":\n" + traceback.format_exc())

    def keep_newest(self, *, settled: bool) -> bool:
        """Upload the newest if it is not kept yet; whether an upload was tried. `settled`: no process writes any
        more."""
        found = find_complete(self._log_dir, float("inf") if settled else None)
        signature = _signature(found)
        if not found or signature == self._kept or self._is_written_again(found):
            return False
        try:
            paths = snapshot(self._log_dir, found, self._scratch)
        except OSError as error:
            self._say("a checkpoint changed while it was copied: %s" % error)
            return False
        step = self._step_of(found)
        try:
            files = [describe(path, os.path.join(self._scratch, path)) for path in paths]
            self._uploader.send("checkpoints", files, {"step": step})
        except AlreadyStored:
            note("the checkpoint of step %d is at the portal already" % step)
        except (UploadFailed, OSError) as error:
            self._say("the checkpoint of step %d is not kept: %s" % (step, error))
            return True
        self._kept, self._last_step, self.trouble = signature, step, ""
        return True

    def _is_written_again(self, found: List[Complete]) -> bool:
        """Whether a checkpoint that is kept is not complete now: to keep the others without it would be a step back."""
        now = {one.folder for one in found}
        return any(folder not in now and has_checkpoint(folder) for folder, _ in self._kept)

    def _step_of(self, found: List[Complete]) -> int:
        """The step in its name; without one, how far the script is, and always more than the last."""
        named = found[-1].step
        return named if named is not None else max(self._step_seen(), self._last_step + 1)

    def _say(self, trouble: str) -> None:
        if trouble != self.trouble:
            note(trouble)
        self.trouble = trouble


def publish_output(
    uploader: Uploader, api: TaskApi, output_dir: str, is_meant: Callable[[str], bool] = lambda path: True
) -> str:
    """Upload what lies in the output directory and is meant, all of it. Empty when the portal has it; else why it has
    not."""
    try:
        paths = [path for path in files_below(output_dir) if is_meant(path)]
        if paths:
            uploader.send("published", [describe(path, os.path.join(output_dir, path)) for path in paths], api.who)
        else:
            uploader.insist(api.nothing_published)
    except (UploadFailed, OSError) as error:
        return str(error)
    return ""


def _signature(found: List[Complete]) -> Signature:
    return tuple((one.folder, one.signature) for one in found)
