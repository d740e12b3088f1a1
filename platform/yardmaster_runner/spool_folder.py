"""A spool's folder: its segments, the note of how far shipping has come, and the lock that makes it one process's.

Trouble with the disk is said once and otherwise borne: a spool works without its folder, only shorter and forgetful.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

from yardmaster_runner.exits import note
from yardmaster_runner.segments import FileSegment, Gap, found_segments


class SpoolInUse(Exception):
    """Another process ships from this spool."""


@dataclass(frozen=True)
class State:
    """What must be known beside the segments. `base` is the portal's number of line 0, None before it is known;
    `writer` is who its lines are from there under this base, 0 before that."""

    base: Optional[int] = None
    shipped: int = 0
    gaps: Tuple[Gap, ...] = ()
    writer: int = 0


class SpoolFolder:
    """Locked from the start until `release`, or the process's death. Raises `SpoolInUse` when that takes too long."""

    def __init__(self, path: str, lock_wait: float) -> None:
        self._path = path
        self._state_path = os.path.join(path, "state.json")
        self._said = ""
        self._lock = self._take_lock(lock_wait)

    def new_segment(self, first: int) -> FileSegment:
        """Raises OSError."""
        return FileSegment(self._path, first)

    def segments(self) -> List[FileSegment]:
        """What a predecessor left, in order of lines."""
        try:
            return found_segments(self._path)
        except OSError as error:
            self.say(error)
            return []

    def read_state(self) -> State:
        try:
            with open(self._state_path, encoding="utf-8") as file:
                return _state(json.load(file))
        except (OSError, ValueError, TypeError, AttributeError):
            return State()  # none yet, or cut short by a full disk: the segments still tell what is there

    def write_state(self, state: State) -> None:
        """Whole or not at all. An old state makes lines be sent twice, which is harmless."""
        gaps = [[one.first, one.lines, one.size] for one in state.gaps]
        temporary = self._state_path + ".new"
        try:
            with open(temporary, "w", encoding="utf-8") as file:
                json.dump({"base": state.base, "shipped": state.shipped, "gaps": gaps, "writer": state.writer}, file)
            os.replace(temporary, self._state_path)
        except OSError as error:
            self.say(error)
            with contextlib.suppress(OSError):
                os.unlink(temporary)

    def forget_state(self) -> None:
        """What a predecessor noted is not true of our lines."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(self._state_path)

    def release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def say(self, error: OSError) -> None:
        """Tell the operator, once per kind of trouble."""
        text = "the log spool has trouble with its disk and does what it can without: %s" % error
        if text != self._said:
            self._said = text
            note(text)

    def _take_lock(self, wait: float) -> Optional[int]:
        try:
            os.makedirs(self._path, exist_ok=True)
            lock = os.open(os.path.join(self._path, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            self.say(error)
            return None
        until = time.monotonic() + wait
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return lock
            except BlockingIOError as error:
                if time.monotonic() >= until:
                    os.close(lock)
                    raise SpoolInUse("%s is used by another process" % self._path) from error
            except OSError as error:
                self.say(error)  # a file system without locks: we must trust that we are alone
                return lock
            time.sleep(0.05)


def _state(value: Dict[str, Any]) -> State:
    base = value.get("base")
    gaps = tuple(Gap(int(first), int(lines), int(size)) for first, lines, size in value.get("gaps", ()))
    shipped, writer = int(value.get("shipped", 0)), int(value.get("writer", 0))
    return State(None if base is None else int(base), shipped, gaps, writer)
