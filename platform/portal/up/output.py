"""What the portal's processes print, in files that are bounded while they grow: each process has a file and the one
before it, and all of them together never hold more than they may.

A process writes into a pipe, so that no line is torn or lost where one file ends and the next begins. Where the disk
takes nothing, output is dropped and counted: a process is never held up for its log.
"""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

MOST_FILES = 10
"""Two of each of the five processes."""
_CHUNK = 64 << 10


class Outputs:
    """The files of one folder. `total` is in bytes."""

    def __init__(self, folder: Path, total: int) -> None:
        self._folder = folder
        self._most = total // MOST_FILES
        self._files: dict[str, _RotatingFile] = {}
        self._readers: list[threading.Thread] = []

    def file_of(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def open(self, name: str) -> int:
        """Where a new process of this name is to write: a descriptor that the caller closes once it has started it."""
        file = self._files.setdefault(name, _RotatingFile(self.file_of(name), self._most))
        file.open()
        reader, writer = os.pipe()
        thread = threading.Thread(target=_copy, args=(reader, file), name=f"output of {name}", daemon=True)
        thread.start()
        self._readers = [one for one in self._readers if one.is_alive()] + [thread]
        return writer

    def settle(self, seconds: float = 1.0) -> None:
        """Wait for the last words of processes that have ended, but no longer than this for each."""
        for reader in self._readers:
            reader.join(seconds)


class _RotatingFile:
    """Appends; past half of what the name may hold, the file becomes the one before, which goes."""

    def __init__(self, path: Path, most: int) -> None:
        self._path, self._most = path, most
        self._lock = threading.Lock()
        self._file = -1
        self._size = self._dropped = 0

    def open(self) -> None:
        with self._lock, contextlib.suppress(OSError):
            if self._file < 0:
                self._open()

    def write(self, data: bytes) -> None:
        with self._lock:
            try:
                if self._file < 0:
                    self._open()
                if self._dropped:
                    note = b"--- %d bytes of output could not be written here ---\n" % self._dropped
                    os.write(self._file, note)
                    self._size, self._dropped = self._size + len(note), 0
                if self._size + len(data) > self._most:
                    data = self._begin_next(data)
                self._append(data)
            except OSError:
                self._dropped += len(data)

    def _begin_next(self, data: bytes) -> bytes:
        """Fill the file up to the last line that fits, and begin the next with what is left."""
        end = data.rfind(b"\n", 0, max(0, self._most - self._size)) + 1
        self._append(data[:end])
        os.close(self._file)
        self._file = -1
        self._path.replace(self._path.with_suffix(".log.1"))
        self._open()
        return data[end:]

    def _append(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            written = os.write(self._file, view)
            view, self._size = view[written:], self._size + written

    def _open(self) -> None:
        if self._path.exists() and self._path.stat().st_size >= self._most:
            self._path.replace(self._path.with_suffix(".log.1"))
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._size = os.fstat(self._file).st_size


def _copy(reader: int, file: _RotatingFile) -> None:
    try:
        while data := os.read(reader, _CHUNK):
            file.write(data)
    finally:
        os.close(reader)
