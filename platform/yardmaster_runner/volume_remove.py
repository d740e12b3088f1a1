"""`python -m yardmaster_runner.volume_remove`: remove a version of a dataset from the data volume, or log directories
of deleted jobs from the log volume, as a task of a job.

The marker goes first, so that no task that begins meanwhile takes what is left for the version. Tasks that have it open
fail when its files are gone: the portal does not launch this while jobs read from the volume. Not there: success.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any

from yardmaster_runner.cache import inside
from yardmaster_runner.own_programs import Orders, orders
from yardmaster_runner.volume import OnVolume


def remove(given: Orders) -> None:
    """Nothing of the version, or of these jobs, is on the volume afterwards. Links are removed and not followed. Raises
    `OSError`."""
    for job in str(given.options.get("jobs") or "").split(","):
        if job:
            _remove_folder(inside(given.log_volume, "jobs/" + job))
    if "version" not in given.options:
        return
    there = OnVolume(given.data_volume, str(given.options["version"]))
    if os.path.isdir(there.folder):
        there.unmark()
    _remove_folder(there.folder)


def _remove_folder(folder: str) -> None:
    if os.path.isdir(folder):
        shutil.rmtree(folder)


def main(given: Any = None) -> int:
    """The exit code."""
    try:
        remove(given or orders())
    except OSError as error:
        sys.stderr.write("not removed: %s\n" % error)
        return 1
    sys.stdout.write("removed\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
