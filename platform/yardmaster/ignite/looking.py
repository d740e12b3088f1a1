"""Looking at one cluster, as the worker that wants it sees it: a process with limits does it and says what it found.
Not here: what the process does (`program`)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import util
from pathlib import Path
from typing import Any

from yardmaster.ignite.nodes import policy_to_json, text_of
from yardmaster.ignite.refusals import NotLooked, problem_from, too_costly
from yardmaster.outgoing.targets import Policy
from yardmaster.sandbox.process import BoundedProcess
from yardmaster.storable import storable_json
from yardmaster_runner.data.ignite_reader.access import Address

AT_ONCE = 2
WALL = 60
"""Seconds for one look."""
_SECONDS = 20
_MEMORY = 512 << 20
_MOST_BYTES = 64 << 20
_MOST_RESULT = 1 << 20
LIBRARY = tuple(str(Path(one.origin).parents[1]) for one in [util.find_spec("urllib3")] if one and one.origin)
"""Where the process finds what the guard of addresses imports beside the core."""
_PROGRAM = BoundedProcess("yardmaster.ignite.program", at_once=AT_ONCE, paths=LIBRARY, most_output=_MOST_RESULT)


@dataclass(frozen=True)
class Wanted:
    """What is looked at. `secrets` has the values of `certificate`, `certificate_password`, `ca`, `username` and
    `password`, those that there are. Caches whose names are `passed_over` are not listed."""

    nodes: Sequence[Address]
    secrets: Mapping[str, str] = field(repr=False)
    passed_over: Collection[str] = ()


def look(wanted: Wanted, policy: Policy) -> dict[str, Any]:
    """What the cluster has, as `yardmaster_runner.data.ignite_reader.survey` says it; at most half a megabyte as JSON.
    Raises `NotLooked`."""
    task = {
        "nodes": [list(one) for one in wanted.nodes], "hosts": text_of(wanted.nodes), "secrets": dict(wanted.secrets),
        "policy": policy_to_json(policy), "wall": WALL + 5, "seconds": _SECONDS, "memory": _MEMORY,
        "most_bytes": _MOST_BYTES, "passed_over": sorted(wanted.passed_over),
    }  # fmt: skip
    ended = _PROGRAM.run(json.dumps(task).encode(), seconds=WALL)
    said = _read(ended.output) if ended is not None and ended.is_well else None
    if said is None:
        raise NotLooked(too_costly())
    if "refused" in said:
        raise NotLooked(problem_from(said["refused"]))
    found: dict[str, Any] = storable_json(said["found"])  # a row may have any characters
    return found


def _read(output: bytes) -> dict[str, Any] | None:
    try:
        said = json.loads(output)
    except ValueError:
        return None
    return said if isinstance(said, dict) else None
