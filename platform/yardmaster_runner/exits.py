"""How the runner itself ends: its own exit codes, the typed failure that leads there, and the last fact on disk.

The script's exit code is passed on as it is; these codes are only for what went wrong before the script began.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass

STAGE_IN_FAILED = 90
PORTAL_UNREACHABLE = 91
TOKEN_REFUSED = 92


@dataclass(frozen=True)
class Ending:
    """Why the task is over. `exit_code` is the script's own (128 + N for a signal) or one of the runner's."""

    exit_code: int
    reason: str
    message: str = ""


class CannotRun(Exception):
    """The script cannot be started, and starting the task again as it is will not help. Carries the ending."""

    def __init__(self, exit_code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.ending = Ending(exit_code, reason, message)


class StoppedEarly(Exception):
    """SIGTERM or SIGINT came before the script was started."""

    def __init__(self, number: int) -> None:
        super().__init__("stopped by signal %d before the script began" % number)
        self.ending = Ending(128 + number, "Killed", str(self))


def write_ending(work_dir: str, ending: Ending) -> None:
    """Leave `exit.json` for the engine, whole or not at all. A full disk is no failure: the exit code remains."""
    path = os.path.join(work_dir, "exit.json")
    temporary = path + ".new"
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(asdict(ending), file)
        os.replace(temporary, path)
    except OSError as error:
        note("could not write %s: %s" % (path, error))


def note(text: str) -> None:
    """One line about the runner's own doings, on its stderr: for the operator, never part of the script's log."""
    line = ("yardmaster-runner: %s\n" % text).encode("utf-8", "replace")
    try:
        os.write(2, line)
    except OSError:
        return  # nobody can be told: stderr is closed or its disk is full
