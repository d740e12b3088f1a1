"""Zips from strangers: what is in one, and whether it may be unpacked. Nothing is unpacked to find out.

Refused: bombs (too many entries, an improbable ratio, overlapping entries), paths that lead out, links and devices,
encryption, methods other than stored and deflated. Zips within zips are files like others. Not Python's `zipfile`: it
keeps a kilobyte of each entry, and a zip may have a million.
"""

from __future__ import annotations

import stat
import struct
import zlib
from array import array
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import IO, Self

from yardmaster.storage.archives import MAX_RATIO, RATIO_MATTERS_FROM, Paths
from yardmaster.storage.zip_directory import Directory, ZipEntry, ZipRefused, damaged

_LOCAL = struct.Struct("<4s5H3L2H")
_ENCRYPTED = 0x1
_STORED, _DEFLATED = 0, 8
_PIECE = 1 << 18
_LEFT_OUT = "__MACOSX/"
"""What macOS adds to every zip: no files of the user's."""
_REMEDY = "Create the ZIP again without it."


class Zip:
    """A zip whose files are all checked, `count` of them with `total` bytes. A context manager. Raises `ZipRefused`,
    or `ArchiveRefused` for a path. `beat` is called now and then."""

    def __init__(self, file: IO[bytes], size: int, *, max_files: int, beat: Callable[[], None] = lambda: None) -> None:
        self.count = self.total = 0
        self._file = file
        self._beat = beat
        self._directory = Directory(file, size, most_entries=2 * max_files, beat=beat)
        try:
            self._check(size, max_files)
        except BaseException:
            self._directory.__exit__(None, None, None)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._directory.__exit__(kind, error, trace)

    def entries(self) -> Iterator[EntryReader]:
        """Each file, in the order of the directory. Its bytes are read before the next is asked for, or never."""
        for entry in self._directory:
            if _is_file(entry):
                yield EntryReader(self._file, entry)

    def _check(self, size: int, max_files: int) -> None:
        paths, places = Paths(max_files), _Places(size)
        for entry in self._directory:
            self._beat()
            places.add(entry)
            if not _is_file(entry):
                continue
            if self.count == max_files:
                message = f"The zip has more than {max_files} files."
                raise ZipRefused("zip_too_many_files", message, "Pack many small files into TFRecord shards.")
            _check_kind(entry)
            paths.add(entry.path)
            self.count, self.total = self.count + 1, self.total + entry.size
        if not self.count:
            raise ZipRefused("zip_empty", "The zip holds no file.")
        if self.total > RATIO_MATTERS_FROM and self.total > MAX_RATIO * size:
            message = f"The zip would unpack to {self.total} bytes, more than {MAX_RATIO} times its own {size}."
            raise ZipRefused("zip_bomb", message, "Send the files themselves instead of a zip.")
        places.check()


class EntryReader:
    """One file being read: exactly as many bytes as declared, its CRC checked with the last of them. Raises
    `ZipRefused` while reading."""

    def __init__(self, file: IO[bytes], entry: ZipEntry) -> None:
        self.path, self.size = entry.path, entry.size
        self._file = file
        self._entry = entry
        self._left, self._packed_left = entry.size, entry.packed_size
        self._crc = 0
        self._inflate = zlib.decompressobj(-zlib.MAX_WBITS) if entry.method == _DEFLATED else None
        self._is_open = False

    def read(self, size: int = -1, /) -> bytes:
        """Up to `size` of its bytes, and not more than some at a time; empty at the end."""
        if size == 0:
            return b""
        if not self._is_open:
            self._open()
        most = _PIECE if size < 0 else min(size, _PIECE)
        try:
            data = self._inflated(min(most, self._left + 1)) if self._inflate else self._packed(most)
        except zlib.error as error:
            raise self._damaged(str(error)) from error
        self._left -= len(data)
        self._crc = zlib.crc32(data, self._crc)
        if self._left < 0 or (not data and self._left):
            raise self._damaged("it has another size than declared")
        if not data and self._crc != self._entry.crc:
            raise self._damaged("its checksum is wrong")
        return data

    def _open(self) -> None:
        """Its own header, behind which the data begins, must be of the same file."""
        self._file.seek(self._entry.offset)
        raw = self._file.read(_LOCAL.size)
        if len(raw) < _LOCAL.size or not raw.startswith(b"PK\x03\x04"):
            raise self._damaged("its header is not where it should be")
        name_length, extra_length = _LOCAL.unpack(raw)[-2:]
        if self._file.read(name_length) != self._entry.raw_path:
            raise self._damaged("its header has another path")
        self._file.seek(extra_length, 1)
        self._is_open = True

    def _packed(self, most: int) -> bytes:
        data = self._file.read(min(most, self._packed_left))
        self._packed_left -= len(data)
        return data

    def _inflated(self, most: int) -> bytes:
        inflate = self._inflate
        assert inflate is not None, "the entry is deflated"
        while not inflate.eof:
            given = inflate.unconsumed_tail or self._packed(_PIECE)
            if data := inflate.decompress(given, most):
                return data
            if not given and not inflate.eof:
                raise self._damaged("it ends too early")
        return b""

    def _damaged(self, what: str) -> ZipRefused:
        return damaged(f"{self.path[:600]!r}: {what}")


class _Places:
    """Where entries lie. Those that share bytes let a small zip hold a large one many times over."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._starts = array("Q")
        self._ends = array("Q")

    def add(self, entry: ZipEntry) -> None:
        end = entry.offset + _LOCAL.size + entry.packed_size
        if end > self._size:
            raise damaged(f"{entry.path[:600]!r} ends behind the end of the zip")
        self._starts.append(entry.offset)
        self._ends.append(end)

    def check(self) -> None:
        """Raises `ZipRefused` where two overlap."""
        end = 0
        for at in sorted(range(len(self._starts)), key=self._starts.__getitem__):
            if self._starts[at] < end:
                message = f"Two entries share their bytes, at {self._starts[at]}."
                raise ZipRefused("zip_bomb", message, "Create the ZIP again.")
            end = self._ends[at]


def _is_file(entry: ZipEntry) -> bool:
    return not entry.path.endswith("/") and not entry.path.startswith(_LEFT_OUT)


def _check_kind(entry: ZipEntry) -> None:
    kind = stat.S_IFMT(entry.mode)
    if kind == stat.S_IFLNK:
        raise _refused("link_refused", entry, "links are refused.")
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise _refused("special_file_refused", entry, "devices, pipes and sockets are refused.")
    if entry.flags & _ENCRYPTED:
        raise _refused("zip_encrypted", entry, "encrypted entries cannot be read.")
    if entry.method not in (_STORED, _DEFLATED):
        raise _refused("zip_method", entry, "only the methods stored and deflated are read.")


def _refused(code: str, entry: ZipEntry, what: str) -> ZipRefused:
    return ZipRefused(code, f"{entry.path[:600]!r}: {what}", _REMEDY)
