"""Copying a cache or the rows of a query into files, as the worker that wants it sees it: a process with limits does
it, and says how far it is. Not here: what the process does (`copy_program`)."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yardmaster.errors import Problem
from yardmaster.ignite.copy_program import DATA, PROGRESS
from yardmaster.ignite.looking import LIBRARY, Wanted
from yardmaster.ignite.nodes import policy_to_json, text_of
from yardmaster.ignite.refusals import NotLooked, problem_from
from yardmaster.outgoing.targets import Policy
from yardmaster.sandbox.process import BoundedProcess
from yardmaster_runner.data.description import FILE_NAME

WALL = 3_600
"""Seconds for one copy."""
MOST_WRITTEN = 64 << 30
"""Bytes of the files of one copy."""
SHARD_BYTES = 64 << 20
_MEMORY = 768 << 20
_MOST_READ = 4
"""Bytes that are read, for each that may be written."""
_PROGRAM = BoundedProcess("yardmaster.ignite.copy_program", at_once=2, paths=LIBRARY, most_output=1 << 20)


@dataclass(frozen=True)
class CopyWanted:
    """What is copied: a cache, or else the rows of a query; into files of so many bytes together."""

    cluster: Wanted
    cache: str
    query: str
    most_written: int


@dataclass(frozen=True)
class Copied:
    """The rows, and the files by the paths that they get in the version."""

    rows: int
    files: dict[str, Path]


def copied(wanted: CopyWanted, policy: Policy, folder: Path, stop: threading.Event) -> Copied:
    """Copy into this folder, which is empty. When `stop` is set, the process is ended. Raises `NotLooked`."""
    nodes = wanted.cluster.nodes
    task = {
        "nodes": [list(one) for one in nodes], "hosts": text_of(nodes), "secrets": dict(wanted.cluster.secrets),
        "policy": policy_to_json(policy), "wall": WALL + 5, "seconds": WALL, "memory": _MEMORY,
        "most_bytes": _MOST_READ * max(wanted.most_written, SHARD_BYTES), "cache": wanted.cache, "query": wanted.query,
        "folder": str(folder), "most_written": wanted.most_written, "shard_bytes": SHARD_BYTES,
    }  # fmt: skip
    ended = _PROGRAM.run(json.dumps(task).encode(), seconds=WALL, stop=stop)
    said = _read(ended.output) if ended is not None and ended.is_well else None
    if said is None:
        message = "The copy needed more time, memory or data than its limits allow."
        raise NotLooked(
            Problem("query", "ignite_too_costly", message, "Copy fewer rows or fields at a time, with a query.")
        )
    if "refused" in said:
        raise NotLooked(problem_from(said["refused"]))
    found = said["found"]
    return Copied(int(found["rows"]), {path: folder / DATA / path for path in (*found["shards"], FILE_NAME)})


def progress(folder: Path) -> tuple[int, int]:
    """Rows and bytes so far."""
    try:
        rows, size = (folder / PROGRESS).read_bytes().split()
        return int(rows), int(size)
    except (OSError, ValueError):
        return 0, 0


def _read(output: bytes) -> dict[str, Any] | None:
    try:
        said = json.loads(output)
    except ValueError:
        return None
    return said if isinstance(said, dict) else None
