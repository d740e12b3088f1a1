"""The program behind `patterns`: one search with one regular expression, from stdin to stdout, then it is over.

Expressions see one line at a time, decoded. It limits its own memory and processor time, should its parent die. Not
here: when it is late and must be killed (`patterns`).
"""

from __future__ import annotations

import json
import re
import resource
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from yardmaster.logs.levels import Level, level_of
from yardmaster.logs.lines import without_colours
from yardmaster.logs.reading import Gap, Line, open_for_reading

_REPORT_EVERY = 0.1
_MEMORY = 1 << 30


class Reports:
    """Tells the parent, ten times a second, what was found and where to continue."""

    def __init__(self, limit: int, bytes_left: int, deadline: float) -> None:
        self._limit, self._bytes_left, self._deadline = limit, bytes_left, deadline
        self._found: list[tuple[int, int, int, str]] = []
        self._due = 0.0

    def add(self, stream: int, line: Line) -> None:
        self._found.append((stream, line.number, line.time, line.text.decode("latin-1")))
        self._limit -= 1
        self._bytes_left -= len(line.text)

    def is_over(self, stream: int, line: int) -> bool:
        """To be asked after each line, with the next one. True when it is time to stop; that has then been said."""
        now = time.monotonic()
        over = now >= self._deadline or self._limit <= 0 or self._bytes_left <= 0
        if over or now >= self._due:
            self.say((stream, line))
            self._due = now + _REPORT_EVERY
        return over

    def say(self, place: tuple[int, int] | None) -> None:
        sys.stdout.write(json.dumps({"next": place, "found": self._found}) + "\n")
        sys.stdout.flush()
        self._found = []


def search(task: dict[str, Any], pattern: re.Pattern[str], reports: Reports) -> None:
    """Look through the folders of all streams, from the task's start on."""
    level = Level.DEBUG if task["level"] is None else Level(task["level"])
    first_stream, first_line = task["start"]
    for stream in range(first_stream, len(task["folders"])):
        with open_for_reading(Path(task["folders"][stream])) as reader:
            for piece in reader.spans(first_line if stream == first_stream else 0) if reader else ():
                for line in () if isinstance(piece, Gap) else piece.lines():
                    if pattern.search(without_colours(line.text).decode("utf-8", "replace")) and (
                        task["level"] is None or (level_of(line.text) or 0) >= level
                    ):
                        reports.add(stream, line)
                    if reports.is_over(stream, line.number + 1):
                        return
    reports.say(None)


def main() -> None:
    """Read a task from stdin, write reports to stdout."""
    task = json.load(sys.stdin)
    deadline = time.monotonic() + task["seconds"]
    seconds = int(task["seconds"]) + 2
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    warnings.simplefilter("ignore", FutureWarning)  # of a later Python's syntax: no user would read it here
    reports = Reports(task["limit"], task["bytes"], deadline)
    try:
        pattern = re.compile(task["pattern"], 0 if task["case"] else re.IGNORECASE)
    except (re.error, RecursionError, OverflowError) as error:
        sys.stdout.write(json.dumps({"error": str(error)}) + "\n")
        return
    reports.say(task["start"])
    search(task, pattern, reports)


if __name__ == "__main__":
    main()
