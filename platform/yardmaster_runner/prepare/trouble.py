"""What goes wrong in preparation and in batch inference, in words that name the file and the row."""

from __future__ import annotations

import sys
from typing import Callable

from yardmaster_runner.reasons import BAD_DATA


class PrepareError(Exception):
    """It cannot continue: an option, the input as a whole, a model, or a library is at fault."""


class BadRecord(Exception):
    """One record cannot be used. `place` is its file, with the row where there is one."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__("%s: %s" % (place, reason))


def exit_code_of(run: Callable[[Callable[[str], None]], None]) -> int:
    """Run a program, which says its lines to what it is given; bad data is said to the standard error."""
    try:
        run(_say)
    except (PrepareError, BadRecord) as error:
        sys.stderr.write("%s\n" % error)
        return BAD_DATA
    return 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
