"""What the portal says of the event files that a TensorBoard shows, as frozen values, and which of them to fetch. Pure.

The portal's listing comes from files of users: a path that could leave the folder, or a listing with holes, is none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Dict, FrozenSet, Mapping, Optional, Sequence, Set, Tuple

from yardmaster_runner.output_files import has_events
from yardmaster_runner.spark.cluster import EVENTS

LONGEST_NAME = 255
MOST_PARTS = 64
_BEGUN_AT = re.compile(r"tfevents\.(\d{1,12})(?:\.|$)")


@dataclass(frozen=True)
class Segment:
    """Bytes of a file from `start` on, and where they are to be had."""

    start: int
    size: int
    url: str


@dataclass(frozen=True)
class BoardFile:
    """One event file. Its bytes are those of its segments, one after the other."""

    path: str
    size: int
    segments: Tuple[Segment, ...]


@dataclass(frozen=True)
class Listing:
    """One answer. `folders` are all that are shown now, `files` those that changed."""

    cursor: str
    more: bool
    wait: float
    folders: FrozenSet[str]
    files: Tuple[BoardFile, ...]
    selection: str = ""
    """What the log is to say of jobs that are left out."""


def read_listing(answer: Mapping[str, Any]) -> Listing:
    """From the portal's JSON, without files that cannot be. Raises `ValueError` where it is no listing."""
    try:
        folders = frozenset(one for one in map(str, answer["folders"]) if is_name(one))
        files = [_file(one) for one in answer["files"]]
        found = tuple(one for one in files if one is not None and is_below(one.path, folders))
        wait = min(60.0, max(0.5, float(answer.get("wait") or 2.0)))
        selection = str(answer.get("selection") or "")[:LONGEST_NAME]
        return Listing(str(answer["cursor"]), bool(answer.get("more")), wait, folders, found, selection)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError("the portal's list of event files is not understood: %s" % error) from error


def _file(value: Mapping[str, Any]) -> Optional[BoardFile]:
    """None where its segments are not the whole file."""
    segments = [Segment(int(one["start"]), int(one["size"]), str(one["url"])) for one in value["segments"]]
    end = 0
    for one in segments:
        if one.start != end or one.size < 0:
            return None
        end += one.size
    return BoardFile(str(value["path"]), end, tuple(segments)) if end == int(value["size"]) else None


def is_below(path: str, folders: FrozenSet[str]) -> bool:
    """Whether it is the path of an event file in one of these folders, and leads nowhere else."""
    parts = path.split("/")
    return 2 <= len(parts) <= MOST_PARTS and parts[0] in folders and all(map(is_name, parts)) and _is_shown(path)


def _is_shown(path: str) -> bool:
    """Whether a TensorBoard reads it, or a Spark history: which of them asks, the portal knows."""
    return has_events(path) or path.split("/")[-2:-1] == [EVENTS]


def is_name(part: str) -> bool:
    """Whether a file or folder may have this name."""
    try:
        size = len(part.encode())
    except UnicodeEncodeError:
        return False
    return 0 < size <= LONGEST_NAME and part not in (".", "..") and not set(part) & {"/", "\\", "\0"}


@dataclass(frozen=True)
class Choice:
    """What to do: `fetched` are wanted and have a place, `left_out` have none, `removed` lose theirs."""

    fetched: Tuple[BoardFile, ...]
    left_out: Tuple[BoardFile, ...]
    removed: Tuple[str, ...]


def chosen(wanted: Sequence[BoardFile], held: Mapping[str, int], most: int, most_files: int) -> Choice:
    """The newest of all that are wanted or held have a place, as long as they have at most `most` bytes. The order does
    not change as files grow, so that none is removed and fetched in turns."""
    sizes = {**held, **{one.path: one.size for one in wanted}}
    more = [one for one in wanted if one.size != held.get(one.path, 0)]
    if sum(sizes.values()) <= most and len(sizes) <= most_files:
        return Choice(tuple(sorted(more, key=lambda one: _age(one.path))), (), ())
    kept: Set[str] = set()
    total = 0
    for path in sorted(sizes, key=_age):
        if total + sizes[path] <= most and len(kept) < most_files:
            kept.add(path)
            total += sizes[path]
    fetched = tuple(sorted((one for one in more if one.path in kept), key=lambda one: _age(one.path)))
    left_out = tuple(one for one in more if one.path not in kept)
    return Choice(fetched, left_out, tuple(path for path in held if path not in kept))


def newest(files: Mapping[str, BoardFile], most: int) -> Dict[str, BoardFile]:
    """The newest `most` of them."""
    if len(files) <= most:
        return dict(files)
    return {path: files[path] for path in sorted(files, key=_age)[:most]}


def begun_at(path: str) -> int:
    """When an event file was begun, as its name says; 0 where it does not."""
    found = _BEGUN_AT.search(path.rpartition("/")[2])
    return int(found.group(1)) if found else 0


def _age(path: str) -> Tuple[int, str]:
    """Sorts the newest first."""
    return -begun_at(path), path


def without(files: Dict[str, BoardFile], folders: FrozenSet[str]) -> Dict[str, BoardFile]:
    """Those that lie in one of these folders."""
    return {path: one for path, one in files.items() if path.partition("/")[0] in folders}
