"""An object as a file that can be read anywhere, for readers (of zips) that jump about."""

from __future__ import annotations

import errno
import io
from typing import Protocol

from yardmaster.storage.base import ByteStream

_PASSED_OVER = 64 << 10
"""Bytes: reading so many on is faster than another request."""


class RangeSource(Protocol):
    def open_range(self, key: str, start: int = 0, length: int | None = None) -> ByteStream: ...


class ObjectReader(io.RawIOBase):
    """Wrap it in `io.BufferedReader`. Reading on is one request; a jump begins another."""

    def __init__(self, store: RangeSource, key: str, size: int) -> None:
        self._store = store
        self._key = key
        self._size = size
        self._position = 0
        self._stream: ByteStream | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if position < 0:
            raise OSError(errno.EINVAL, "a position lies before the object's begin")  # as files do
        if self._stream is not None and 0 < position - self._position <= _PASSED_OVER:
            while self._position < position and self._stream is not None:
                self._pass_over(position - self._position)
        elif position != self._position:
            self._close_stream()
        self._position = position
        return position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        if self._position >= self._size:
            return 0
        if self._stream is None:
            self._stream = self._store.open_range(self._key, self._position)
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def _pass_over(self, size: int) -> None:
        assert self._stream is not None, "the caller looked"
        if data := self._stream.read(size):
            self._position += len(data)
        else:
            self._close_stream()

    def close(self) -> None:
        self._close_stream()
        super().close()

    def _close_stream(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None
