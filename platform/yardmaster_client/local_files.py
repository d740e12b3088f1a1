"""The files here that are to be uploaded: a million of them take some hundred megabytes."""

from __future__ import annotations

import heapq
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

_IGNORED = {".git", "__pycache__", ".venv", "node_modules", ".ipynb_checkpoints", ".DS_Store"}
_ANNOUNCED_AT_ONCE = 20_000
_ANNOUNCED_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file here, and the path it gets there."""

    folder: str
    path: str
    size: int

    @property
    def source(self) -> Path:
        return Path(self.folder, self.path)

    def as_json(self) -> dict[str, Any]:
        return {"path": self.path, "size": self.size}


def find_files(
    paths: Iterable[Path], *, follow_links: bool = False, left_out: Callable[[str], object] = lambda path: None
) -> list[LocalFile]:
    """Files as they are, and the content of folders (without caches and version control), in the order of their paths.

    Links in folders are left out, and `left_out` is called with the path of each. With `follow_links` what they lead to
    is meant, and left out is what leads nowhere or to a folder around it.

    Raises:
        FileNotFoundError: a path does not exist. ValueError: there is nothing to upload, or two files get one path.
    """
    links = _Links(follow_links, left_out)
    found = list(heapq.merge(*(_below(Path(path), links) for path in paths), key=lambda file: file.path))
    if not found:
        raise ValueError("Nothing to upload: the paths contain no files.")
    for one, other in pairwise(found):
        if one.path == other.path:
            raise ValueError(f"{one.source} and {other.source} would both become {one.path}: upload a folder of both.")
    return found


@dataclass(frozen=True, slots=True)
class _Links:
    """What becomes of them."""

    are_followed: bool
    left_out: Callable[[str], object]

    def is_taken(self, top: str, path: str, entry: os.DirEntry[str]) -> bool:
        """Whether a file or folder is one to upload."""
        if not entry.is_symlink():
            return True
        if self.are_followed and (entry.is_file() or (entry.is_dir() and not _is_around(top, path))):
            return True
        self.left_out(path)
        return False


def _is_around(top: str, path: str) -> bool:
    """Whether the link leads to a folder that it lies in, by whichever way: following it would never end."""
    target = os.path.realpath(os.path.join(top, path))
    folders = [top, *(os.path.join(top, folder) for folder in _folders_of(path))]
    return any(os.path.realpath(folder) == target for folder in folders)


def _folders_of(path: str) -> Iterator[str]:
    """Of a relative path: the folders that it lies in."""
    at = path.find("/")
    while at != -1:
        yield path[:at]
        at = path.find("/", at + 1)


def announcements(files: Sequence[LocalFile], first: int = 0) -> Iterator[list[LocalFile]]:
    """The files from number `first` on, as many at a time as one request announces."""
    some: list[LocalFile] = []
    size = 0
    for file in files[first:]:
        size += len(json.dumps(file.path)) + 40
        if some and (len(some) == _ANNOUNCED_AT_ONCE or size > _ANNOUNCED_BYTES):
            yield some
            some, size = [], len(json.dumps(file.path)) + 40
        some.append(file)
    if some:
        yield some


def _below(path: Path, links: _Links) -> Iterator[LocalFile]:
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    if path.is_file():
        yield LocalFile(str(path.parent), path.name, path.stat().st_size)
        return
    yield from _in_folder(str(path), "", links)


def _in_folder(top: str, folder: str, links: _Links) -> Iterator[LocalFile]:
    """In the order of the paths: a folder's name counts with the slash behind it."""
    with os.scandir(os.path.join(top, folder)) as found:
        entries = [(one.name, one) for one in found if one.name not in _IGNORED]
    taken = [(name, one) for name, one in entries if links.is_taken(top, f"{folder}{name}", one)]
    for name, entry in sorted((f"{name}/" if one.is_dir() else name, one) for name, one in taken):
        if name.endswith("/"):
            yield from _in_folder(top, f"{folder}{name}", links)
        elif entry.is_file():
            yield LocalFile(top, f"{folder}{name}", entry.stat().st_size)
