"""How the runner itself ends: its own exit codes, the typed failure that leads there, and the last fact on disk.

The script's exit code is passed on as it is; these codes are only for what went wrong before the script began.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import Any, Dict, List

PREFIX = "yardmaster-runner: "
CUT_OFF = "yardmaster: this task was killed, and what it printed last may be missing here"
"""The line in a log between what a killed runner has sent and what follows. What was never read cannot be counted."""
STAGE_IN_FAILED = 90
PORTAL_UNREACHABLE = 91
TOKEN_REFUSED = 92
NOT_PUBLISHED = 93
PACKAGES_FAILED = 94
SECRET_CODES = frozenset({"secret_missing", "secret_too_large", "secret_unreadable"})
"""Answers of the portal that mean that a secret of the job is not to be had."""


@dataclass(frozen=True)
class Ending:
    """Why the task is over. `exit_code` is the script's own (128 + N for a signal) or one of the runner's."""

    exit_code: int
    reason: str
    message: str = ""
    signature: str = ""
    """The same for the same failure of the script (`uncaught`); empty where the next start may well do better."""
    reached: int = 0
    """How far the script came."""


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
            json.dump(_without_blanks(asdict(ending)), file)
        os.replace(temporary, path)
    except OSError as error:
        note("could not write %s: %s" % (path, error))


def _without_blanks(ending: Dict[str, Any]) -> Dict[str, Any]:
    """What only some failures have is left out of the others."""
    return {key: value for key, value in ending.items() if value or key not in ("signature", "reached")}


def last_words(ending: Ending) -> List[str]:
    """What the runner says last on its stderr, for an engine that sees no more of a task than that."""
    words = ["%s: %s" % (ending.reason, ending.message)]
    if ending.signature:
        words.insert(0, "signature %s, reached %d" % (ending.signature, ending.reached))
    return [PREFIX + line for line in words]


def note(text: str) -> None:
    """One line about the runner's own doings, on its stderr: for the operator, never part of the script's log."""
    say(PREFIX + text)


def say(text: str) -> None:
    """This line on stderr."""
    line = (text + "\n").encode("utf-8", "replace")
    try:
        os.write(2, line)
    except OSError:
        return  # it cannot be determined: stderr is closed or its disk is full
