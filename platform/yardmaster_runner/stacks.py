"""Where the Pythons of a script stand: each writes the stacks of its threads to the log when it gets a signal.

They have registered it at their start (`script_start.py`). A process that has not is left alone: the signal
would end it.
"""

from __future__ import annotations

import contextlib
import os
import signal
from typing import Callable, List, Optional

from yardmaster_runner.processes import descendants

MOST_PROCESSES = 8


class StacksAsked:
    """Users who ask for the stacks, as the portal counts them. `write` is what to do, while a script runs."""

    def __init__(self) -> None:
        self._known: Optional[int] = None
        self.write: Optional[Callable[[], None]] = None

    def received(self, count: int) -> None:
        """So often they were asked for. What was asked before this start of the task is not its business."""
        is_news = self._known is not None and count != self._known
        self._known = count
        if is_news and self.write is not None:
            self.write()


def number() -> int:
    """The signal; 0 where the system has none to spare."""
    return int(getattr(signal, "SIGRTMAX", 2)) - 2


def write_stacks(script: int) -> int:
    """Have the process `script`, and those below it, write their stacks; how many were asked."""
    asked = 0
    for pid in [script, *_below(script)]:
        if asked < MOST_PROCESSES and catches(pid):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number())
                asked += 1
    return asked


def catches(pid: int) -> bool:
    """Whether the process has a handler for the signal."""
    if not number():
        return False
    try:
        with open("/proc/%d/status" % pid, encoding="ascii", errors="replace") as file:
            caught = next((line for line in file if line.startswith("SigCgt:")), "SigCgt: 0")
    except OSError:
        return False
    return bool(int(caught.split()[1], 16) >> (number() - 1) & 1)


def _below(pid: int) -> List[int]:
    return [one.pid for one in descendants(pid) if not one.is_zombie]
