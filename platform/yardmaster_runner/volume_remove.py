"""`python -m yardmaster_runner.volume_remove`: remove a version of a dataset from the data volume, or log directories
of deleted jobs from the log volume, as a task of a job.

What cannot be removed of one job does not keep the
logs of the others there: the last line says of which jobs something is left, and the portal reads it (`left_of`).

The marker goes first, so that no task that begins meanwhile takes what is left for the version. Tasks that have it open
fail when its files are gone: the portal does not launch this while jobs read from the volume. Not there: success.
"""

from __future__ import annotations

import os
import re
import sys
from typing import Any, List, Optional, Sequence, Tuple

from yardmaster_runner.cache import inside
from yardmaster_runner.own_programs import Orders, orders
from yardmaster_runner.removing import remove_tree
from yardmaster_runner.volume import OnVolume

_LEFT = re.compile(
    r"not removed: logs of \d+ of (?P<asked>\d+) jobs, numbers (?P<numbers>\d+(?:-\d+)?(?:, \d+(?:-\d+)?)*): "
)


class Left(Exception):
    """Something of these jobs is still there."""

    def __init__(self, numbers: Sequence[int], asked: int, first: OSError) -> None:
        """`numbers` counted from 1, in their order. However many they are, the words fit into a task's message."""
        spans: List[Tuple[int, int]] = []
        for number in numbers:
            is_next = bool(spans) and spans[-1][1] == number - 1
            spans.append((spans.pop()[0] if is_next else number, number))
        named = ", ".join(str(a) if a == b else "%d-%d" % (a, b) for a, b in spans)
        super().__init__("logs of %d of %d jobs, numbers %s: %s" % (len(numbers), asked, named, str(first)[:200]))


def left_of(message: str, asked: Sequence[str]) -> Optional[List[str]]:
    """Of which of the jobs that were asked for something is left, where a task's message is that of `main`. None: it is
    another one, and nothing can be said."""
    said = _LEFT.match(message)
    if said is None or int(said.group("asked")) != len(asked):
        return None
    left: List[str] = []
    for span in said.group("numbers").split(", "):
        first, _, last = span.partition("-")
        left += asked[int(first) - 1 : int(last or first)]
    return left


def remove(given: Orders) -> None:
    """Nothing of the version, or of these jobs, is on the volume afterwards. Links are removed and not followed. Raises
    `Left` where something of some of the jobs is, and `OSError`."""
    if "jobs" in given.options:
        _remove_logs(given.log_volume, str(given.options["jobs"]).split(","))
    if "version" not in given.options:
        return
    there = OnVolume(given.data_volume, str(given.options["version"]))
    if os.path.isdir(there.folder):
        there.unmark()
    _remove_folder(there.folder)


def _remove_logs(volume: str, jobs: Sequence[str]) -> None:
    left: List[Tuple[int, OSError]] = []
    for number, job in enumerate(jobs, 1):
        try:
            _remove_folder(inside(volume, "jobs/" + job))
        except OSError as error:
            left.append((number, error))
    if left:
        raise Left([number for number, _ in left], len(jobs), left[0][1])


def _remove_folder(folder: str) -> None:
    try:
        os.lstat(folder)
    except FileNotFoundError:
        return
    remove_tree(folder)


def main(given: Any = None) -> int:
    """The exit code."""
    try:
        remove(given or orders())
    except (Left, OSError) as error:
        sys.stderr.write("not removed: %s\n" % error)
        return 1
    sys.stdout.write("removed\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
