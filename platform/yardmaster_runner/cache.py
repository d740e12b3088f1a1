"""Versions of data and code that this machine has already, shared by its tasks: each file is fetched once.

A version never changes, so a file that was checked when it came stays good; a note of its size and time of change shows
when another process has written to it since (it is then fetched again). One task at a time fills a version, the others
wait.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import time
from dataclasses import dataclass
from typing import Dict, Iterator, List, Sequence

from yardmaster_runner.exits import STAGE_IN_FAILED, CannotRun, note
from yardmaster_runner.order import Bundle, RemoteFile

SAFE_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class CachedVersion:
    """The folder of one version. Use it under `locked`."""

    def __init__(self, cache_dir: str, bundle: Bundle) -> None:
        if not SAFE_VERSION.fullmatch(bundle.version):
            raise CannotRun(STAGE_IN_FAILED, "StageInFailed", "%r is no version's id" % bundle.version)
        self.folder = os.path.join(cache_dir, bundle.version)
        self.incoming = self.folder + ".incoming"
        self._files: Sequence[RemoteFile] = bundle.files
        self._notes = self.folder + ".checked"
        self._checked: Dict[str, List[object]] = {}

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the version alone, after its present holder. Where the file system has no locks, two tasks may fetch
        the same files at once: a waste, but files are put in place whole, so no harm."""
        os.makedirs(self.folder, exist_ok=True)
        guard = os.open(self.folder + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            while True:
                try:
                    fcntl.flock(guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    time.sleep(0.1)
                except OSError as error:
                    note("%s cannot be locked: %s" % (self.folder, error))
                    break
            self._checked = self._read_notes()
            yield
        finally:
            os.close(guard)

    def turn_to(self, number: int, files: Sequence[RemoteFile]) -> None:
        """Work on this page of its files, counted from 0. Each page has notes of its own."""
        self._files = files
        if number:
            self._notes = "%s.checked-%d" % (self.folder, number)
            self._checked = self._read_notes()

    def missing(self) -> List[RemoteFile]:
        """The files that are not here as they were when checked."""
        return [file for file in self._files if not self._is_good(file)]

    def prepare(self) -> None:
        """An empty folder for what is being fetched; what an interrupted task left there goes."""
        shutil.rmtree(self.incoming, ignore_errors=True)
        os.makedirs(self.incoming, exist_ok=True)

    def path_of(self, file: RemoteFile) -> str:
        return inside(self.folder, file.path)

    def keep(self, files: List[RemoteFile]) -> None:
        """Note that these files have just been checked."""
        for file in files:
            state = os.stat(self.path_of(file))
            self._checked[file.path] = [state.st_size, state.st_mtime_ns, file.sha256]
        temporary = self._notes + ".new"
        with open(temporary, "w", encoding="utf-8") as notes:
            json.dump(self._checked, notes)
        os.replace(temporary, self._notes)

    def _is_good(self, file: RemoteFile) -> bool:
        try:
            state = os.lstat(self.path_of(file))
        except OSError:
            return False
        now = [state.st_size, state.st_mtime_ns, file.sha256]
        return self._checked.get(file.path) == now and state.st_size == file.size

    def _read_notes(self) -> Dict[str, List[object]]:
        try:
            with open(self._notes, encoding="utf-8") as notes:
                return dict(json.load(notes))
        except (OSError, ValueError, TypeError):
            return {}  # none yet, or unreadable: everything is fetched again


@dataclass(frozen=True)
class Checked:
    """A file that is in the cache as it was when it was checked."""

    path: str
    place: str
    size: int
    sha256: str


def checked_files(cache_dir: str, version: str) -> Iterator[Checked]:
    """All files of a version that were fetched, page by page: the list of many is never here as a whole."""
    folder, number = os.path.join(cache_dir, version), 0
    while True:
        try:
            with open("%s.checked%s" % (folder, "-%d" % number if number else ""), encoding="utf-8") as notes:
                known = json.load(notes)
        except FileNotFoundError:
            return
        for path, (size, _, sha256) in sorted(known.items()):
            yield Checked(path, inside(folder, path), size, sha256)
        number += 1


def inside(folder: str, path: str) -> str:
    """`path` below `folder`; `CannotRun` for one that leads elsewhere. The portal checks paths too."""
    parts = path.split("/")
    if not path or "\\" in path or CONTROL.search(path) or any(part in ("", ".", "..") for part in parts):
        raise CannotRun(STAGE_IN_FAILED, "StageInFailed", "the path %r leads outside its folder" % path)
    return os.path.join(folder, *parts)
