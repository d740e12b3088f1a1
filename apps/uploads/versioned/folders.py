"""The files of a version by folder: what lies in one folder, with how many files and bytes lie below each of its
folders. Nothing is stored for it: files stand in the order of their paths, in blocks of a thousand, so what lies in a
folder stands together, and how much that is follows from where it begins and ends.

One page costs the index of the blocks (a row each, without their files) and the paths and sizes of the blocks in which
one of its entries begins or ends, many at a time: a few statements, also of a million files.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, chain, repeat
from typing import Any
from uuid import UUID

from apps.api.paging import ByCursor
from apps.errors import NotFound
from apps.uploads.file_blocks import BLOCK, block_index, packed_numbered
from apps.uploads.versioned.models import Version
from apps.uploads.versioned.paging import cursor_after, path_of_cursor
from yardmaster.storage.file_list import paths_and_sizes

_AT_ONCE = (8, 128)
"""Blocks that are read with one statement: few at first, since the entries of most pages lie in few."""
_START = 12 << 10
"""Bytes at the start of a block that usually hold its paths and sizes: a quarter of it. The rest is checksums."""
_USUAL_PAGE = 100


@dataclass(frozen=True)
class FolderEntry:
    """A folder with all that lies below it, or a file. The path of a folder ends in `/`."""

    name: str
    path: str
    files: int
    size: int

    @property
    def is_folder(self) -> bool:
        return self.path.endswith("/")


@dataclass(frozen=True)
class FolderPage:
    """Some entries of a folder, in the order of their paths, and the cursor of those that follow (None: none)."""

    folder: str
    rows: list[FolderEntry]
    next: str | None


def folder_page(version: Version, folder: str, cursor: str, size: int = _USUAL_PAGE) -> FolderPage:
    """The entries of a folder (empty: the outermost) behind the cursor. Raises `NotFound` where nothing lies in it, and
    `Invalid` for what is no cursor."""
    folder = folder.strip("/")
    prefix = f"{folder}/" if folder else ""
    after = path_of_cursor(cursor)
    found = _Listing(version.upload_id, prefix).entries(after)
    rows = [entry for _, entry in zip(range(size), found, strict=False)]
    if folder and not rows and not after:
        raise NotFound("This version has no such folder.", remedy="List the folder above it.")
    more = next(found, None) is not None if len(rows) == size else False
    return FolderPage(folder, rows, cursor_after(rows[-1].path) if more else None)


class ByFolder(ByCursor):
    """The entries of one folder of a version: rows are the version and the folder."""

    usual_page = _USUAL_PAGE

    def read(self, rows: Any, cursor: str, size: int) -> tuple[list[Any], str | None, str | None]:
        version, folder = rows
        page = folder_page(version, folder, cursor, size)
        return page.rows, page.next, None


@dataclass(frozen=True)
class _Place:
    """So many files, and bytes, come before it, counted from the first block that may hold a file of the folder."""

    files: int
    size: int


class _Listing:
    """One folder of an upload, read as far as it is asked for."""

    def __init__(self, upload_id: UUID, prefix: str) -> None:
        self._prefix = prefix
        index = block_index(upload_id, prefix, _behind(prefix) if prefix else "")
        self._firsts = [path for _, path, _ in index]
        self._before = [0, *accumulate(size for _, _, size in index)]
        ends = [at for at in range(len(index)) if self._has_an_end(at)]
        self._blocks = _Blocks(upload_id, index[0][0] if index else 0, ends)

    def entries(self, after: str) -> Iterator[FolderEntry]:
        """What lies in the folder behind this entry (empty: all of it)."""
        at = max(self._prefix, _behind(after) if after else "")
        start = self._place_of(at)
        while (first := self._path(start.files)).startswith(self._prefix) and first:
            name, is_deeper, _ = first[len(self._prefix) :].partition("/")
            path = self._prefix + name + is_deeper
            end = self._place_of(_behind(path))
            yield FolderEntry(name, path, end.files - start.files, end.size - start.size)
            start = end

    def _place_of(self, path: str) -> _Place:
        """Where the first file stands that has this path or a later one."""
        number = bisect_left(self._firsts, path.encode("utf-8", "surrogatepass")) - 1
        if number < 0:
            return _Place(0, 0)
        paths, sizes = self._blocks.read(number)
        at = bisect_left(paths, path)
        return _Place(number * BLOCK + at, self._before[number] + sum(sizes[:at]))

    def _path(self, index: int) -> str:
        """Of the file with this number, without its block where the index says it; empty: there is none."""
        number, at = divmod(index, BLOCK)
        if number >= len(self._firsts):
            return ""
        if not at:
            return self._firsts[number].decode("utf-8", "surrogatepass")
        paths, _ = self._blocks.read(number)
        return paths[at] if at < len(paths) else ""

    def _has_an_end(self, number: int) -> bool:
        """Whether an entry of the folder ends in this block, as far as its neighbours say: not where it and the next
        one begin within the same folder below."""
        if number + 1 == len(self._firsts):
            return True
        return self._child(number) != self._child(number + 1)

    def _child(self, number: int) -> bytes:
        """Which entry the block begins with; empty where it begins outside of the folder."""
        prefix = self._prefix.encode("utf-8", "surrogatepass")
        first = self._firsts[number]
        return first[: first.find(b"/", len(prefix)) + 1 or None] if first.startswith(prefix) else b""


class _Blocks:
    """The paths and sizes of blocks, by their numbers from the first one on. With one, those are fetched in which
    entries end that follow."""

    def __init__(self, upload_id: UUID, first: int, ends: list[int]) -> None:
        self._upload_id = upload_id
        self._first = first
        self._ends = ends
        self._sizes_of_fetches = chain(_AT_ONCE, repeat(_AT_ONCE[-1]))
        self._first_bytes: int | None = _START
        self._packed: dict[int, bytes] = {}
        self._latest: tuple[int, list[str], list[int]] = (-1, [], [])

    def read(self, number: int) -> tuple[list[str], list[int]]:
        """Of all files of this block."""
        if self._latest[0] != number:
            if number not in self._packed:
                self._fetch(number)
            if (found := paths_and_sizes(self._packed[number])) is None:
                self._first_bytes = None  # paths are long in this version: all of what follows is fetched whole
                self._fetch(number)
                found = paths_and_sizes(self._packed[number])
                assert found is not None, "it is whole"
            self._latest = number, *found
        return self._latest[1:]

    def _fetch(self, number: int) -> None:
        at = bisect_right(self._ends, number)
        others = self._ends[at : at + next(self._sizes_of_fetches) - 1]
        numbers = [self._first + one for one in (number, *others)]
        found = packed_numbered(self._upload_id, numbers, self._first_bytes)
        self._packed = {one - self._first: packed for one, packed in found.items()}


def _behind(path: str) -> str:
    """The first path that can follow an entry: `0` comes right behind `/`, and no path has a zero byte."""
    return f"{path[:-1]}0" if path.endswith("/") else f"{path}\0"
