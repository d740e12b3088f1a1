"""The event logs of many jobs as the one flat folder that Spark's history server reads.

A log is a hard link: what is added to the file is there at once, and takes no space of its own. Spark takes what stands
behind the last dot of a name for the compression, so no other dot may be in it.
"""

from __future__ import annotations

import contextlib
import os
from typing import Dict

from yardmaster_runner.board_files import LONGEST_NAME
from yardmaster_runner.spark.cluster import EVENTS, RUNS


def mirror(folder: str, shown: str) -> None:
    """Make `shown` have each log below `folder`, and nothing else. May be repeated."""
    wanted = logs_below(folder)
    for name in set(os.listdir(shown)) - wanted.keys():
        os.remove(os.path.join(shown, name))
    for name, path in wanted.items():
        link = os.path.join(shown, name)
        with contextlib.suppress(FileNotFoundError):  # a log may be removed meanwhile
            if os.path.exists(link):
                if os.path.samefile(link, path):
                    continue
                os.remove(link)
            os.link(path, link)


def logs_below(folder: str) -> Dict[str, str]:
    """Paths of the logs by the names that they are shown with. Of an application whose log is complete, what it was
    while the application ran is left out; and what no folder takes: Spark's own names are short."""
    found: Dict[str, str] = {}
    for top, _, names in os.walk(folder):
        if os.path.basename(top) == EVENTS:
            job = os.path.relpath(os.path.dirname(top), folder).replace(os.sep, "-").replace(".", "-")
            found.update({"%s-%s" % (job, name): os.path.join(top, name) for name in names})
    return {name: path for name, path in found.items() if _fits(name) and not _has_ended(name, found)}


def _fits(name: str) -> bool:
    return len(os.fsencode(name)) <= LONGEST_NAME


def _has_ended(name: str, found: Dict[str, str]) -> bool:
    return name.endswith(RUNS) and name[: -len(RUNS)] in found
