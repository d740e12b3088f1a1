"""The files of one commit, written into a ZIP as they are read: within limits, with no name that leaves its folder, and
with each symbolic link in the place of the file that it leads to.

Knows no library: `Objects` gives the content of an object. Not here: fetching them (`program`).
"""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from yardmaster.git.refusals import Refused

MOST_DEPTH = 60
NAMED = 20
"""Paths that are named of each kind; the others are counted."""
_LINKS_FOLLOWED = 8
_LONGEST_LINK = 4_096
_FOLDER, _LINK, _SUBMODULE, _KINDS = 0o040000, 0o120000, 0o160000, 0o170000
_LFS = b"version https://git-lfs.github.com/spec/"
_LFS_LARGEST = 1_024
_DATE = (1980, 1, 1, 0, 0, 0)

Entries = list[tuple[bytes, int, str]]
"""Of a folder: name, mode and id of each."""


@dataclass(frozen=True)
class Objects:
    """The objects of a repository by id. Each raises `KeyError` for one that is not there."""

    entries: Callable[[str], Entries]
    content: Callable[[str], bytes]


@dataclass
class Written:
    """What was written, and what a person should know of it: first paths, and how many there are."""

    files: int = 0
    size: int = 0
    noted: dict[str, list[str]] = field(default_factory=lambda: {"submodules": [], "lfs": [], "links": []})
    counts: dict[str, int] = field(default_factory=lambda: {"submodules": 0, "lfs": 0, "links": 0})

    def note(self, kind: str, path: str) -> None:
        self.counts[kind] += 1
        if self.counts[kind] <= NAMED:
            self.noted[kind].append(path)

    def as_json(self) -> dict[str, Any]:
        return {"files": self.files, "size": self.size, "noted": self.noted, "counts": self.counts}


class TreeWriter:
    """Writes the files below `folder` of the tree `root`. Raises `Refused`."""

    def __init__(self, objects: Objects, root: str, *, most_files: int, most_bytes: int) -> None:
        self._objects, self._root = objects, root
        self._most_files, self._most_bytes = most_files, most_bytes
        self._seen = 0
        self.written = Written()

    def write(self, folder: str, archive: zipfile.ZipFile, beat: Callable[[Written], None]) -> Written:
        """All of them, in the order in which Git keeps them. `beat` is called after each."""
        for path, mode, oid in self._files(self._folder(folder), folder):
            inner = path[len(folder) + 1 :] if folder else path
            self._write(archive, inner, path, mode, oid)
            beat(self.written)
        if not self.written.files:
            where = f"The folder {folder}" if folder else "The repository"
            message, remedy = f"{where} has no files at this commit.", "Name another folder or ref."
            raise Refused("git_no_files", message, remedy, folder, field="folder")
        return self.written

    def _write(self, archive: zipfile.ZipFile, inner: str, path: str, mode: int, oid: str) -> None:
        if mode & _KINDS == _SUBMODULE:
            self.written.note("submodules", inner)
            return
        content = self._linked(path, oid) if mode & _KINDS == _LINK else self._content(oid)
        if content is None:
            self.written.note("links", inner)
            return
        self.written.files += 1
        self.written.size += len(content)
        if self.written.files > self._most_files:
            raise too_many(self._most_files)
        if self.written.size > self._most_bytes:
            raise too_large(self._most_bytes, inner)
        if len(content) <= _LFS_LARGEST and content.startswith(_LFS):
            self.written.note("lfs", inner)
        archive.writestr(zipfile.ZipInfo(inner, _DATE), content)

    def _files(self, oid: str, above: str) -> Iterator[tuple[str, int, str]]:
        """What lies below this folder, apart from folders themselves."""
        waiting = [(oid, above, 0)]
        while waiting:
            oid, above, depth = waiting.pop()
            if depth > MOST_DEPTH:
                message = f"Folders lie more than {MOST_DEPTH} deep."
                raise Refused("git_too_deep", message, "Name a folder with less in it.", above[:200], field="folder")
            inside = []
            for name, mode, child in self._entries(oid):
                if name.lower() == b".git":
                    continue
                path = _joined(above, name)
                if mode & _KINDS == _FOLDER:
                    inside.append((child, path, depth + 1))
                else:
                    yield path, mode, child
            waiting += reversed(inside)

    def _entries(self, oid: str) -> Entries:
        try:
            found = self._objects.entries(oid)
        except KeyError as error:
            raise incomplete() from error
        self._seen += len(found) + 1
        if self._seen > 4 * self._most_files:  # one folder may stand in another a million times
            raise too_many(self._most_files)
        return found

    def _content(self, oid: str) -> bytes:
        try:
            return self._objects.content(oid)
        except KeyError as error:
            raise incomplete() from error

    def _folder(self, folder: str) -> str:
        """The tree of the folder."""
        oid, above = self._root, ""
        for name in folder.split("/") if folder else ():
            folders = {one: child for one, mode, child in self._entries(oid) if mode & _KINDS == _FOLDER}
            if name.encode() not in folders:
                known = ", ".join(sorted(one.decode("utf-8", "replace")[:60] for one in folders)[:8])
                where = f"The folder {above}" if above else "The repository"
                message = f"The repository has no folder {folder} at this commit."
                remedy = f"{where} has these: {known}." if known else f"{where} has no folders."
                raise Refused("git_folder_not_found", message, remedy, folder, field="folder")
            oid, above = folders[name.encode()], f"{above}/{name}".strip("/")
        return oid

    def _linked(self, path: str, oid: str) -> bytes | None:
        """The content of the file that a link leads to; None: it leads to a folder, or to nothing."""
        for _ in range(_LINKS_FOLLOWED):
            text = self._content(oid)
            target = text.decode("utf-8", "replace") if len(text) <= _LONGEST_LINK else "/"
            place = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
            if target.startswith("/") or place == ".." or place.startswith("../"):
                message = f"The symbolic link {path} leads out of the repository."
                remedy = "Remove the link from the repository, or name a folder without it."
                raise Refused("git_link_outside", message, remedy, path[:200])
            found = self._at(place)
            if found is None or found[0] & _KINDS in (_FOLDER, _SUBMODULE):
                return None
            mode, oid = found
            if mode & _KINDS != _LINK:
                return self._content(oid)
            path = place
        return None

    def _at(self, path: str) -> tuple[int, str] | None:
        """Mode and id of what has this path."""
        mode, oid = _FOLDER, self._root
        for name in path.split("/") if path != "." else ():
            if mode & _KINDS != _FOLDER:
                return None
            found = next(((m, o) for n, m, o in self._entries(oid) if n == name.encode()), None)
            if found is None or name.lower() == ".git":
                return None
            mode, oid = found
        return mode, oid


def _joined(above: str, name: bytes) -> str:
    """The path of an entry. Raises `Refused` for a name that is none."""
    try:
        text = name.decode()
    except UnicodeDecodeError:
        text = ""
    if text in ("", ".", "..") or "/" in text or "\\" in text or "\0" in text:
        shown = f"{above}/{name[:100]!r}".lstrip("/")
        message = f"The repository has a path that cannot be a file: {shown}."
        raise Refused("git_path", message, "Rename it in the repository, or name a folder without it.", shown[:200])
    return f"{above}/{text}" if above else text


def too_many(most: int) -> Refused:
    message = f"This has more than {most:,} files."
    return Refused("git_too_many_files", message, "Name a folder of the repository that has fewer.", field="folder")


def too_large(most: int, value: str = "") -> Refused:
    message = f"This has more than {most:,} bytes."
    remedy = "Name a folder or a ref with less, or keep data in a dataset. The limit is YARDMASTER_GIT_LIMIT."
    return Refused("git_too_large", message, remedy, value[:200])


def incomplete() -> Refused:
    message = "The host sent a commit without all of its files."
    return Refused("git_broken", message, "Check the repository with git fsck.")
