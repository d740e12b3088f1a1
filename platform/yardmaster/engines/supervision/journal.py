"""Which runs have changed: one small file to which supervisors append keys, and from which the portal reads on.

Events carry ids, never truth: a line that is lost (full disk, the moment of rotation) costs time, not facts.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from yardmaster.engines.supervision.facts import key_from_json, key_to_json
from yardmaster.ids import JobKey

_INTERVAL = 0.05
_LIMIT = 1 << 20


class Journal:
    """The journal at `path`, which need not exist yet; past `limit` bytes it starts from the beginning."""

    def __init__(self, path: Path, limit: int = _LIMIT) -> None:
        self.path = path
        self._limit = limit
        self._old = path.with_name(path.name + ".old")

    def note(self, key: JobKey) -> None:
        """Say that this run has changed. Raises `OSError`."""
        line = " ".join(str(part) for part in key_to_json(key)) + "\n"
        # One write of a short line in append mode: writers do not need a lock against each other.
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, line.encode())
            if os.fstat(descriptor).st_size > self._limit and os.path.samestat(
                os.fstat(descriptor), os.stat(self.path)
            ):
                os.replace(self.path, self._old)
        finally:
            os.close(descriptor)

    def follow(self, interval: float = _INTERVAL) -> Iterator[JobKey]:
        """Keys noted from this call on, for ever; each once per look, every `interval` seconds. A look costs two
        system calls."""
        position = _Position(self.path)
        position.skip_to_end()
        return _follow(position, interval)


class _Position:
    """How far one reader has come, over rotations."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._rest = b""

    def __del__(self) -> None:
        self._close()

    def skip_to_end(self) -> None:
        if self._open():
            assert self._descriptor is not None
            os.lseek(self._descriptor, 0, os.SEEK_END)

    def read_on(self) -> list[bytes]:
        """Whole lines since the last call. After a rotation first the rest of the old file, then the new one."""
        if self._descriptor is None and not self._open():
            return []
        assert self._descriptor is not None
        is_old = self._was_rotated()
        data = self._rest + _read_all(self._descriptor)
        *lines, self._rest = data.split(b"\n")
        if is_old:
            self._close()
            self._rest = b""
        return lines

    def _was_rotated(self) -> bool:
        assert self._descriptor is not None
        try:
            return not os.path.samestat(os.fstat(self._descriptor), os.stat(self._path))
        except FileNotFoundError:
            return True

    def _open(self) -> bool:
        with contextlib.suppress(FileNotFoundError):
            self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        return self._descriptor is not None

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _follow(position: _Position, interval: float) -> Iterator[JobKey]:
    while True:
        keys = dict.fromkeys(_parsed(position.read_on()))
        yield from keys
        if not keys:
            time.sleep(interval)


def _read_all(descriptor: int) -> bytes:
    parts = []
    while part := os.read(descriptor, 1 << 16):
        parts.append(part)
    return b"".join(parts)


def _parsed(lines: list[bytes]) -> Iterator[JobKey]:
    for line in lines:
        with contextlib.suppress(ValueError, IndexError):  # a line cut by a full disk
            yield key_from_json(line.decode().split())
