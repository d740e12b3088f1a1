"""How a task ended, in the vocabulary of `failures`: from its exit status, the runner's note, and what we know of it.

Pure. Not here: whether it is started again (`restarts`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from yardmaster.lifecycle.failures import REASONS, reason_of_exit
from yardmaster.lifecycle.restarts import NO_TRACE, Trace
from yardmaster.quantity import format_bytes

_LONGEST_MESSAGE = 2000
_LARGEST_CODE = 255


@dataclass(frozen=True)
class Ending:
    """`exit_code` None: no process saw it end and it left no note."""

    exit_code: int | None
    reason: str = ""
    message: str = ""
    trace: Trace = NO_TRACE


def exit_code_of(wait_status: int) -> int:
    """A shell's view of a wait status: 128 + N for a death by signal N."""
    code = os.waitstatus_to_exitcode(wait_status)
    return code if code >= 0 else 128 - code


def ending_of(seen: int | None, note: Mapping[str, Any] | None, memory_limit: int | None, peak: int | None) -> Ending:
    """The ending of a task whose process ended with `seen` (None: not our child, so its exit code is unknown).

    `note` is what the runner left in `exit.json`. It counts where it speaks of the same end: the same code, or a code
    that no process saw. `memory_limit` is given where the task was killed for passing it.
    """
    noted = _code_in(note)
    code = noted if seen is None else seen
    if memory_limit is not None:
        used = "" if peak is None else f"It used {format_bytes(peak)}. "
        return Ending(code, "OutOfMemory", f"{used}Its limit is {format_bytes(memory_limit)}.")
    if note is None or noted is None or noted != code:
        return Ending(code, "" if code == 0 else reason_of_exit(code))
    reason = note.get("reason")
    if code != 0 and not (isinstance(reason, str) and reason in REASONS):
        reason = reason_of_exit(code)
    message = note.get("message")
    return Ending(
        code,
        reason if isinstance(reason, str) and code != 0 else "",
        message[:_LONGEST_MESSAGE] if isinstance(message, str) else "",
        Trace.in_note(note),
    )


def _code_in(note: Mapping[str, Any] | None) -> int | None:
    code = None if note is None else note.get("exit_code")
    return code if isinstance(code, int) and not isinstance(code, bool) and 0 <= code <= _LARGEST_CODE else None
