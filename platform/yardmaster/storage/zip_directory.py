"""The directory of a zip, entry by entry: it may have a million entries, so none is kept. It is copied to a temporary
file, since it stands at the end and is read more than once.

Not here: what is refused of the entries (`zips`).
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Any, Self

from yardmaster.storage.archives import ArchiveRefused

_ENTRY = struct.Struct("<4s4B4HL2L5H2L")
_END = struct.Struct("<4s4H2LH")
_END64_LOCATOR = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_DIRECTORY_FREE, _DIRECTORY_PER_ENTRY = 16 << 20, 256
"""Bytes that a directory may have; an entry has some 140."""
_UTF8 = 0x800
_FULL = 0xFFFF_FFFF
_COPIED_AT_ONCE = 1 << 18


class ZipRefused(ArchiveRefused):
    """The zip will never be unpacked."""

    code = "zip_refused"


@dataclass(frozen=True, slots=True)
class ZipEntry:
    """One entry of the directory. `offset` is that of its own header in the file."""

    path: str
    raw_path: bytes
    size: int
    packed_size: int
    offset: int
    crc: int
    method: int
    flags: int
    mode: int


@dataclass(frozen=True)
class _End:
    """Where the directory lies, and how many entries there should be. `before`: bytes that were put before the zip."""

    start: int
    length: int
    count: int
    before: int


class Directory:
    """The entries of a zip, to be gone through as often as needed. A context manager. Raises `ZipRefused`."""

    def __init__(self, file: IO[bytes], size: int, *, most_entries: int, beat: Callable[[], None]) -> None:
        self._end = _find_end(file, size, most_entries)
        self._most = most_entries
        self._beat = beat
        self._copy = tempfile.TemporaryFile()  # noqa: SIM115 - closed at the end of ours
        try:
            self._copy_from(file)
        except BaseException:
            self._copy.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._copy.close()

    def __iter__(self) -> Iterator[ZipEntry]:
        self._copy.seek(0)
        for _ in range(self._most + 1):
            fixed = self._copy.read(_ENTRY.size)
            if len(fixed) < _ENTRY.size:
                return
            yield self._entry(_ENTRY.unpack(fixed))
        raise too_many(self._most)

    def _entry(self, fields: tuple[Any, ...]) -> ZipEntry:
        if fields[0] != b"PK\x01\x02":
            raise damaged("an entry of its directory is none")
        flags, method, _, _, crc, packed, size, name_length, extra_length, comment_length = fields[5:15]
        attributes, offset = fields[17:]
        raw = self._copy.read(name_length)
        extra = self._copy.read(extra_length)
        self._copy.seek(comment_length, 1)
        if len(raw) < name_length or len(extra) < extra_length:
            raise damaged("its directory ends within an entry")
        size, packed, offset = _with_extra(extra, size, packed, offset)
        path = _text(raw, bool(flags & _UTF8))
        return ZipEntry(path, raw, size, packed, offset + self._end.before, crc, method, flags, attributes >> 16)

    def _copy_from(self, file: IO[bytes]) -> None:
        file.seek(self._end.start)
        left = self._end.length
        while left:
            if not (data := file.read(min(left, _COPIED_AT_ONCE))):
                raise damaged("its directory ends too early")
            self._copy.write(data)
            left -= len(data)
            self._beat()


def _find_end(file: IO[bytes], size: int, most: int) -> _End:
    start = max(0, size - _END.size - 0xFFFF)
    file.seek(start)
    tail = file.read()
    at = len(tail) - _END.size
    if at < 0 or not (tail[at:].startswith(b"PK\x05\x06") and tail.endswith(b"\0\0")):
        at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < _END.size:
        raise ZipRefused("not_a_zip", "The file is not a zip.", "Send a zip, or complete without unpacking.")
    _, _, _, _, count, length, offset, _ = _END.unpack_from(tail, at)
    end, locator = start + at, start + at - _END64_LOCATOR.size
    if locator >= 0:
        file.seek(locator)
        signature, _, place, _ = _END64_LOCATOR.unpack(file.read(_END64_LOCATOR.size))
        if signature == b"PK\x06\x07":
            count, length, offset = _end64(file, locator, place)
            end = locator - _END64.size
    if count > most or length > _DIRECTORY_FREE + most * _DIRECTORY_PER_ENTRY:
        raise too_many(most)
    if length > end or offset > end - length:
        raise damaged("its directory is larger than the file, or not where it should be")
    return _End(end - length, length, count, end - length - offset)


def _end64(file: IO[bytes], locator: int, place: int) -> tuple[int, int, int]:
    # Some readers look right before the locator and ignore the offset, so both places must be the same.
    if place != locator - _END64.size:
        raise damaged("its end record is not where it should be")
    file.seek(place)
    raw = file.read(_END64.size)
    if len(raw) < _END64.size or not raw.startswith(b"PK\x06\x06"):
        raise damaged("its end record is damaged")
    fields = _END64.unpack(raw)
    return fields[7], fields[8], fields[9]


def _with_extra(extra: bytes, size: int, packed: int, offset: int) -> tuple[int, int, int]:
    """The numbers that do not fit into 32 bits stand in a field of their own, in this order."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        if at + 4 + length > len(extra):
            raise damaged("an extra field of an entry is longer than all of them")
        if kind == 1:
            numbers = iter(struct.unpack_from(f"<{length // 8}Q", extra, at + 4))
            try:
                size = next(numbers) if size == _FULL else size
                packed = next(numbers) if packed == _FULL else packed
                offset = next(numbers) if offset == _FULL else offset
            except StopIteration:
                raise damaged("an entry lacks its size") from None
        at += 4 + length
    return size, packed, offset


def _text(raw: bytes, is_utf8: bool) -> str:
    """As UTF-8 where it says so; programs that do not say so wrote the characters of DOS."""
    try:
        path = raw.decode("utf-8" if is_utf8 else "cp437")
    except UnicodeDecodeError as error:
        raise damaged(f"{raw[:600]!r}: this path is not UTF-8") from error
    return path


def too_many(most: int) -> ZipRefused:
    """More entries than are read."""
    message = f"The zip has more than {most} entries."
    return ZipRefused("zip_too_many_files", message, "Pack many small files into TFRecord shards.")


def damaged(what: str) -> ZipRefused:
    """It is not whole."""
    return ZipRefused("zip_damaged", f"The zip is damaged: {what}", "Create the ZIP again and send it again.")
