"""The files of a version by folder: what lies in one folder, with how many files and bytes lie below each of its
folders. Nothing is stored for it: files stand in the order of their paths, in blocks of a thousand, so what lies in a
folder stands together, and how much that is follows from where it begins and ends.

One page costs the index of the blocks (a row each, without their files) and the blocks in which one of its entries
begins or ends, some at a time: a few statements, also of a million files.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any
from uuid import UUID

from apps.api.paging import ByCursor
from apps.errors import NotFound
from apps.uploads.file_blocks import BLOCK, block_index, block_of, sizes_in_blocks
from apps.uploads.versioned.models import Version
from apps.uploads.versioned.paging import cursor_after, path_of_cursor
from yardmaster.storage.file_list import ListedFile

_AT_ONCE = 32
"""Blocks that are read with one statement."""
_USUAL_PAGE = 100


@dataclass(frozen=True)
class FolderEntry:
    """A folder with all that lies below it, or a file. The path of a folder ends in `/`."""

    name: str
    path: str
    files: int
    size: int
    file: ListedFile | None = None

    @property
    def is_folder(self) -> bool:
        return self.file is None


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
    """So many files, and bytes, come before it."""

    files: int
    size: int


class _Listing:
    """One folder of an upload, read as far as it is asked for."""

    def __init__(self, upload_id: UUID, prefix: str) -> None:
        self._upload_id = upload_id
        self._prefix = prefix
        index = block_index(upload_id)
        self._firsts = [path for path, _ in index]
        self._before = [0, *accumulate(size for _, size in index)]
        self._known: dict[int, tuple[list[str], list[int]]] = {}
        self._whole: tuple[int, tuple[ListedFile, ...]] = (-1, ())
        self._ends = [number for number in range(len(index)) if self._has_an_end(number)]

    def entries(self, after: str) -> Iterator[FolderEntry]:
        """What lies in the folder behind this entry (empty: all of it)."""
        at = max(self._prefix, _behind(after) if after else "")
        start = self._place_of(at)
        while (first := self._path(start.files)).startswith(self._prefix) and first:
            name, is_deeper, _ = first[len(self._prefix) :].partition("/")
            path = self._prefix + name + is_deeper
            if is_deeper:
                end = self._place_of(_behind(path))
                yield FolderEntry(name, path, end.files - start.files, end.size - start.size)
            else:
                file = self._file(start.files)
                end = _Place(start.files + 1, start.size + file.size)
                yield FolderEntry(name, path, 1, file.size, file)
            start = end

    def _place_of(self, path: str) -> _Place:
        """Where the first file stands that has this path or a later one."""
        number = bisect_left(self._firsts, path.encode("utf-8", "surrogatepass")) - 1
        if number < 0:
            return _Place(0, 0)
        paths, sizes = self._block(number)
        at = bisect_left(paths, path)
        return _Place(number * BLOCK + at, self._before[number] + sum(sizes[:at]))

    def _path(self, index: int) -> str:
        """Of the file with this number, without its block where the index says it; empty: there is none."""
        number, at = divmod(index, BLOCK)
        if number >= len(self._firsts):
            return ""
        if not at:
            return self._firsts[number].decode("utf-8", "surrogatepass")
        paths, _ = self._block(number)
        return paths[at] if at < len(paths) else ""

    def _file(self, index: int) -> ListedFile:
        """With all that is known of it."""
        number, at = divmod(index, BLOCK)
        if self._whole[0] != number:
            self._whole = number, block_of(self._upload_id, number)
        return self._whole[1][at]

    def _block(self, number: int) -> tuple[list[str], list[int]]:
        """The paths and sizes of one block; with it those are read in which entries begin or end that follow."""
        if number not in self._known:
            at = bisect_right(self._ends, number)
            self._known = sizes_in_blocks(self._upload_id, [number, *self._ends[at : at + _AT_ONCE - 1]])
        return self._known[number]

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


def _behind(path: str) -> str:
    """The first path that can follow an entry: `0` comes right behind `/`, and no path has a zero byte."""
    return f"{path[:-1]}0" if path.endswith("/") else f"{path}\0"
