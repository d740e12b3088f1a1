"""The bytes that a compressed stream stands for, read piece by piece; the memory that takes is bounded whatever the
stream says. Recognized by its first bytes, not by a name.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable
from typing import Any, Protocol

from backports import zstd

from yardmaster.storage.archives import MAX_RATIO, RATIO_MATTERS_FROM, ArchiveRefused, bomb
from yardmaster.storage.base import Readable

LARGEST_WINDOW = 27
"""As a power of two: 128 MiB, what `zstd --long` writes at most. `xz -9` needs half of it."""
_PIECE = 1 << 18
_FIRST_STEP = 1 << 10
_STREAMS_FREE = 1_000
_LEAST_PER_STREAM = 256
"""Bytes that streams stand for on average where there are many: to begin one costs as much as to unpack some thousand.
Those of `bgzip` and `pigz` stand for 64 KiB and more."""
_BROKEN = (zlib.error, lzma.LZMAError, zstd.ZstdError, OSError, EOFError, MemoryError, ValueError)


class Decompressor(Protocol):
    """One stream of bytes, up to its end; then `unused_data` is what followed."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class _Gzip:
    """`zlib`'s, in the form of the others. It checks length and CRC at the end."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max(max_length, 0))


def _zstd() -> Any:
    return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: LARGEST_WINDOW})


_KINDS: tuple[tuple[bytes, Callable[[], Any]], ...] = (
    (b"\x1f\x8b", _Gzip),
    (b"BZh", bz2.BZ2Decompressor),
    (b"\xfd7zXZ\0", lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=1 << LARGEST_WINDOW)),
    (b"\x28\xb5\x2f\xfd", _zstd),
)


def decompressor_for(start: bytes) -> Callable[[], Decompressor] | None:
    """What reads a stream that begins so; None: it is none that is known here."""
    return next((make for magic, make in _KINDS if start.startswith(magic)), None)


class Decompressed:
    """A reader of what `source` stands for, of `size` bytes. Streams that follow each other are one. Raises
    `ArchiveRefused` for one that is broken, ends too early, or stands for improbably much."""

    def __init__(self, source: Readable, size: int, make: Callable[[], Decompressor]) -> None:
        self._source = source
        self._size = size
        self._make = make
        self._stream: Decompressor | None = None
        self._read = b""
        self._at = 0  # where in `_read` what was not yet given to a stream begins
        self._step = _FIRST_STEP
        self._piece = memoryview(b"")
        self._given = self._streams = 0

    def read(self, size: int = -1, /) -> bytes:
        """Up to `size` bytes; empty at the end."""
        if not self._piece:  # unpacked ahead: what is left of the input is copied with each call
            self._piece = memoryview(self._unpacked())
        most = len(self._piece) if size < 0 else size
        piece, self._piece = self._piece[:most], self._piece[most:]
        return bytes(piece)

    def _unpacked(self) -> bytes:
        try:
            piece = self._next()
        except _BROKEN as error:
            raise damaged(f"its compressed data is broken ({error})") from error
        self._given += len(piece)
        if self._given > RATIO_MATTERS_FROM and self._given > MAX_RATIO * self._size:
            raise bomb(self._given, self._size)
        return piece

    def _next(self) -> bytes:
        while True:
            stream = self._stream
            if stream is not None and stream.eof:
                self._at -= len(stream.unused_data)
                stream = self._stream = None
            if stream is None:
                if not self._has_another():
                    return b""
                stream = self._stream = self._begun()
            if piece := stream.decompress(self._more() if stream.needs_input else b"", _PIECE):
                return piece

    def _has_another(self) -> bool:
        """Whether another stream begins, behind the padding."""
        while True:
            if self._given:
                while self._at < len(self._read) and not self._read[self._at]:
                    padding = self._read[self._at : self._at + _FIRST_STEP]
                    self._at += len(padding) - len(padding.lstrip(b"\0"))
            if self._at < len(self._read):
                return True
            if not self._fill():
                return False

    def _begun(self) -> Decompressor:
        self._streams += 1
        self._step = _FIRST_STEP
        if self._streams > _STREAMS_FREE and self._given < _LEAST_PER_STREAM * self._streams:
            message = f"The archive's compressed data is {self._streams} streams of next to nothing each."
            raise ArchiveRefused("too_many_streams", message, "Compress it as one, and send it again.")
        return self._make()

    def _more(self) -> bytes:
        """Little at first, as a stream hands back what follows it: of thousands in a piece each would copy the rest."""
        if self._at >= len(self._read) and not self._fill():
            raise EOFError("it ends too early")
        data = self._read[self._at : self._at + self._step]
        self._at += len(data)
        self._step = min(2 * self._step, _PIECE)
        return data

    def _fill(self) -> bool:
        self._read, self._at = self._source.read(_PIECE), 0
        return bool(self._read)


def damaged(what: str) -> ArchiveRefused:
    """It is not whole."""
    return ArchiveRefused("archive_damaged", f"The archive is damaged: {what}.", "Create it again and send it again.")
