"""Fetching one commit, as the worker that wants it sees it: a process with limits does it in a folder, and says what it
has found. Not here: what the process does (`program`).
"""

from __future__ import annotations

import json
import os
import re
import ssl
import threading
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, field
from importlib import util
from pathlib import Path
from typing import Any

from yardmaster.git.address import GitAddress
from yardmaster.git.hosts import GitHost
from yardmaster.git.limits import Limits
from yardmaster.git.program import ARCHIVE, PROGRESS
from yardmaster.git.refusals import Reason, reason_from
from yardmaster.sandbox.process import BoundedProcess

AT_ONCE = 2
_MEMORY = 768 << 20
"""Of address space, beside the pack, which is mapped."""
_LOOK_EVERY = 1.0
_LATE = 5
_COMMIT = re.compile(r"[0-9a-f]{40}")
_KINDS = ("submodules", "lfs", "links")


class NotFetched(Exception):
    """Why not. `passes`: the same may succeed later."""

    def __init__(self, reason: Reason, *, passes: bool = False) -> None:
        super().__init__(reason.message)
        self.reason, self.passes = reason, passes


@dataclass(frozen=True)
class Fetched:
    """A commit. `archive` holds its files; None: the commit was known. `notes` count what was found, and name some of
    it: `{"submodules": {"count", "first"}, …}`."""

    commit: str
    ref: str
    archive: Path | None = None
    files: int = 0
    notes: dict[str, Any] = field(default_factory=dict)


def fetch(
    address: GitAddress,
    host: GitHost,
    *,
    folder: Path,
    limits: Limits,
    known: Collection[str] = (),
    token: str = "",
    beat: Callable[[str, int], None] = lambda step, size: None,
) -> Fetched:
    """Fetch the commit into the folder, which is empty and the caller's to remove. With a commit among `known` nothing
    is fetched. `beat` is called every second with the step and how many bytes there are, by the thread that called;
    what it raises ends the wait, and the process soon after. Raises `NotFetched`."""
    task = {
        "address": asdict(address), "host": asdict(host), "folder": str(folder), "known": sorted(known),
        "token": token, "trusted": _trusted(), "most_bytes": limits.most_bytes, "most_files": limits.most_files,
        "seconds": limits.seconds, "wall": limits.seconds + _LATE, "memory": _MEMORY + 2 * limits.most_bytes,
    }  # fmt: skip
    output = _run(json.dumps(task).encode(), limits, folder / PROGRESS, beat)
    said = _read(output)
    if said is None:
        message = f"Fetching took more than {limits.seconds} seconds, or more memory than it may have."
        remedy = "Name a folder or a ref with less, or try again later (YARDMASTER_GIT_TIME, YARDMASTER_GIT_LIMIT)."
        raise NotFetched(Reason("git_too_costly", message, remedy, address.repository))
    if "refused" in said:
        raise NotFetched(reason_from(said["refused"]), passes=bool(said.get("passes")))
    return _fetched(said, folder)


def _run(task: bytes, limits: Limits, progress: Path, beat: Callable[[str, int], None]) -> bytes:
    """What the process wrote. It runs in a thread of its own, so that this one can say that it is alive."""
    program = BoundedProcess("yardmaster.git.program", at_once=AT_ONCE, paths=_library())
    ended: list[bytes] = []

    def run() -> None:
        found = program.run(task, seconds=limits.seconds)
        ended.append(found.output if found is not None and found.is_well else b"")

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_LOOK_EVERY)
        beat(*_progress(progress))
    return ended[0] if ended else b""


def _progress(file: Path) -> tuple[str, int]:
    try:
        said = json.loads(file.read_bytes())
        return str(said["step"]), int(said["bytes"])
    except (OSError, ValueError, KeyError, TypeError):
        return "asking", 0


def _read(output: bytes) -> dict[str, Any] | None:
    try:
        said = json.loads(output)
    except ValueError:
        return None
    return said if isinstance(said, dict) else None


def _fetched(said: dict[str, Any], folder: Path) -> Fetched:
    commit = str(said["commit"])
    if not _COMMIT.fullmatch(commit):
        raise NotFetched(Reason("git_broken", "The host sent what is no commit.", "Check the address."))
    if said["is_known"]:
        return Fetched(commit, str(said["ref"])[:300])
    notes = {
        kind: {"count": int(said["counts"][kind]), "first": [str(one)[:512] for one in said["noted"][kind]]}
        for kind in _KINDS
        if said["counts"][kind]
    }
    return Fetched(commit, str(said["ref"])[:300], folder / ARCHIVE, int(said["files"]), notes)


def _library() -> tuple[str, ...]:
    """Where the process finds what it imports beside the core."""
    found = [util.find_spec(name) for name in ("dulwich", "urllib3")]
    places = [one.submodule_search_locations for one in found if one is not None]
    return tuple(dict.fromkeys(str(Path(place[0]).parent) for place in places if place))


def _trusted() -> dict[str, str | None]:
    """The certificates that this process trusts: the other has none of its environment."""
    paths = ssl.get_default_verify_paths()
    named = {"cafile": paths.cafile, "capath": paths.capath}
    return {name: place if place and os.path.exists(place) else None for name, place in named.items()}
