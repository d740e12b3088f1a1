"""The files here that are to be uploaded: a million of them take some hundred megabytes."""

from __future__ import annotations

import heapq
import json
import os
from collections.abc import Iterable, Iterator, Sequence
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


def find_files(paths: Iterable[Path]) -> list[LocalFile]:
    """Files as they are, and the content of folders (without caches and version control), in the order of their paths.

    Raises:
        FileNotFoundError: a path does not exist. ValueError: there is nothing to upload, or two files get one path.
    """
    found = list(heapq.merge(*(_below(Path(path)) for path in paths), key=lambda file: file.path))
    if not found:
        raise ValueError("Nothing to upload: the paths contain no files.")
    for one, other in pairwise(found):
        if one.path == other.path:
            raise ValueError(f"{one.source} and {other.source} would both become {one.path}: upload a folder of both.")
    return found


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


def _below(path: Path) -> Iterator[LocalFile]:
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    if path.is_file():
        yield LocalFile(str(path.parent), path.name, path.stat().st_size)
        return
    yield from _in_folder(str(path), "")


def _in_folder(top: str, folder: str) -> Iterator[LocalFile]:
    """In the order of the paths: a folder's name counts with the slash behind it."""
    with os.scandir(os.path.join(top, folder)) as found:
        entries = [(one.name, one) for one in found if one.name not in _IGNORED and not one.is_symlink()]
    named = sorted((f"{name}/" if one.is_dir() else name, one) for name, one in entries)
    for name, entry in named:
        if name.endswith("/"):
            yield from _in_folder(top, f"{folder}{name}")
        elif entry.is_file():
            yield LocalFile(top, f"{folder}{name}", entry.stat().st_size)
