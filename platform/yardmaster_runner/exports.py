"""Whether what lies in the model directory is a whole export, to be kept as the job's model.

A script that ended with exit code 0 has written all that it wanted to. One that was stopped may have exported in its
grace period and then have ended with another code, or have been killed in the middle of it. TensorFlow writes
`saved_model.pb` last, so a SavedModel that has it is whole; of other files nothing says so. A script that failed
without being stopped keeps no model.
"""

from __future__ import annotations

import re
from typing import Iterable

from yardmaster_runner.upload import files_below

SAVED_MODEL = "saved_model.pb"
UNFINISHED = re.compile(r"(^|/)(variables_temp|[^/]*_temp|[^/]*\.tempstate[^/]*|[^/]*\.tmp)(/|$)")
SHARD = re.compile(r"^(.*/variables/variables)\.data-\d{5}-of-(\d{5})$")
HALF = (
    "no model was saved: the script was stopped, did not end with exit code 0, and its model directory does not hold a "
    "complete SavedModel and nothing else"
)


def may_keep(exit_code: int, was_stopped: bool) -> bool:
    """Whether a script that ended like this leaves a model at all. `exit_code` is its own."""
    return exit_code == 0 or was_stopped


def half_export(model_dir: str, exit_code: int) -> str:
    """Why the files in the model directory are not kept; empty where they are, or there are none."""
    if exit_code == 0:
        return ""
    paths = files_below(model_dir)
    return HALF if paths and not is_whole(paths) else ""


def is_whole(paths: Iterable[str]) -> bool:
    """Whether these files (with slashes, relative to the model directory) are complete SavedModels and nothing else."""
    found = set(paths)
    tops = [path[: -len(SAVED_MODEL)] for path in found if path == SAVED_MODEL or path.endswith("/" + SAVED_MODEL)]
    if not all(any(path.startswith(top) for top in tops) for path in found):
        return False
    if any(UNFINISHED.search(path) for path in found):
        return False
    shards = [match for match in map(SHARD.match, ("/" + path for path in found)) if match]
    return all(
        "%s.index" % match.group(1)[1:] in found
        and sum(other.group(1) == match.group(1) for other in shards) == int(match.group(2))
        for match in shards
    )
