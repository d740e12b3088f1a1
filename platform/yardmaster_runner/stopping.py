"""What SIGTERM and SIGINT mean at each stage of a task's life.

Before the script starts they end the staging; while it runs they are passed to its group, and if it does not end it is
killed at the end of its grace period, so that its last words can be shipped; afterwards they mean haste. What the
script wrote is uploaded as long as bytes move (`patience.uploads_end`); the engine's own SIGKILL comes when the longest
time for that is over.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from types import FrameType
from typing import Iterator, Optional

from yardmaster_runner.exits import StoppedEarly
from yardmaster_runner.patience import Haste, UploadHaste
from yardmaster_runner.script import Script

HASTE = 5.0


class StopSwitch:
    """Install it in the main thread. `was_thrown` says whether anybody asked the task to stop. `haste` is that of lines
    and reports, `uploads` that of checkpoints, the model and outputs."""

    def __init__(self, haste: Haste, uploads: UploadHaste) -> None:
        self.was_thrown = False
        self._thrown_at = 0.0
        self._haste = haste
        self._uploads = uploads
        self._number = 0
        self._is_interruptible = False
        self._is_over = False
        self._script: Optional[Script] = None
        self._grace = 30.0
        self._killer: Optional[threading.Timer] = None

    @property
    def is_urgent(self) -> bool:
        """Whether half of the grace period is over, so that nothing may hold up the script's end."""
        return self.was_thrown and time.monotonic() - self._thrown_at >= self._grace / 2

    def install(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # were it ignored, the kernel would keep exit codes from us

    def throw(self) -> None:
        """As SIGTERM would, from any thread."""
        os.kill(os.getpid(), signal.SIGTERM)

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        """In here a signal, also one that came before, raises `StoppedEarly`; elsewhere it waits for its time."""
        self._is_interruptible = True
        try:
            if self._number:
                raise StoppedEarly(self._number)
            yield
        finally:
            self._is_interruptible = False

    def started(self, script: Script, grace: float) -> None:
        """From now on signals are the script's."""
        self._grace = grace
        self._script = script
        if self._number:
            self._pass_on(script, self._number)
            self._uploads.stop(self._thrown_at, grace)

    def ended(self) -> None:
        """The script is over; from now on signals mean haste, as does one that came before."""
        self._is_over = True
        if self.was_thrown:
            self._haste.be_done_within(max(HASTE, self._grace))
        self._script = None
        if self._killer is not None:
            self._killer.cancel()

    def _on_signal(self, number: int, frame: Optional[FrameType]) -> None:
        if not self.was_thrown:
            self._thrown_at = time.monotonic()
        self.was_thrown = True
        self._number = number
        if self._is_interruptible:
            self._is_interruptible = False
            raise StoppedEarly(number)
        if self._script is not None:
            self._pass_on(self._script, number)
        elif self._is_over:
            self._haste.be_done_within(HASTE)
        self._uploads.stop(self._thrown_at, self._grace)

    def _pass_on(self, script: Script, number: int) -> None:
        script.send(number)
        if self._killer is None:
            kill_after = self._grace - min(2.0, self._grace * 0.1)
            self._killer = threading.Timer(kill_after, script.kill)
            self._killer.daemon = True
            self._killer.start()
