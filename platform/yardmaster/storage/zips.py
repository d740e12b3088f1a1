"""Zips from strangers: what is in one, and whether it may be unpacked. Nothing is unpacked to find out.

Refused: bombs (too many entries, an improbable ratio, overlapping entries), paths that lead out, links and devices,
encryption, methods other than stored and deflated. Zips within zips are files like others.
"""

from __future__ import annotations

import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from yardmaster.storage.archives import MAX_RATIO, RATIO_MATTERS_FROM, ArchiveRefused
from yardmaster.storage.paths import path_problems

_DIRECTORY_ENTRY = 46 + 512 + 128
"""What an entry takes in the directory, at most: fixed part, longest path, some extras."""
_LOCAL_HEADER = 30
_ENTRY = struct.Struct("<4s24x3H12x")
"""Of a directory entry: signature, and how long its name, extras and comment are."""
_END = struct.Struct("<4s4H2LH")
_END64_LOCATOR = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_ENCRYPTED = 0x1
_LEFT_OUT = "__MACOSX/"
"""What macOS adds to every zip: no files of the user's."""

_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, struct.error, ValueError)
"""What the library raises for zips that are not whole; NotImplementedError: packed in a way that it does not know."""


MOST_ZIPPED = 100_000
"""Files of a zip: its directory is read into memory as a whole."""


class ZipRefused(ArchiveRefused):
    """The zip will never be unpacked."""

    code = "zip_refused"


@dataclass(frozen=True)
class ZipEntry:
    """One file of a zip."""

    path: str
    size: int
    info: zipfile.ZipInfo


def open_zip(file: IO[bytes], size: int, *, max_files: int) -> tuple[zipfile.ZipFile, list[ZipEntry]]:
    """The zip and its files, all checked. Raises `ZipRefused`."""
    _check_end(file, size, max_files)
    try:
        archive = zipfile.ZipFile(file)
        infos = [info for info in archive.infolist() if not info.filename.startswith(_LEFT_OUT)]
    except (
        zipfile.BadZipFile,
        NotImplementedError,
        UnicodeDecodeError,
        struct.error,
        ValueError,
        OverflowError,
    ) as error:
        raise _damaged(str(error)) from error
    if len(infos) > 2 * max_files:
        raise _too_many(len(infos), max_files)
    entries = [ZipEntry(info.filename, info.file_size, info) for info in infos if not info.filename.endswith("/")]
    _check_entries(entries, archive.infolist(), size, max_files)
    return archive, entries


def read_entry(archive: zipfile.ZipFile, entry: ZipEntry) -> EntryReader:
    """The entry's bytes: exactly as many as declared, its CRC checked at the end. Raises `ZipRefused` while reading."""
    return EntryReader(archive, entry)


class EntryReader:
    """One entry being read; the library's errors become `ZipRefused`."""

    def __init__(self, archive: zipfile.ZipFile, entry: ZipEntry) -> None:
        self._entry = entry
        self._left = entry.size
        try:
            self._file = archive.open(entry.info)
        except _BROKEN as error:
            raise _damaged(f"{entry.path!r}: {error}") from error

    def read(self, size: int = -1, /) -> bytes:
        try:
            data = self._file.read(size)
        except _BROKEN as error:
            raise _damaged(f"{self._entry.path!r}: {error}") from error
        self._left -= len(data)
        if self._left < 0 or (not data and self._left and size != 0):
            raise _damaged(f"{self._entry.path!r} has another size than declared")
        return data

    def close(self) -> None:
        self._file.close()


def _check_end(file: IO[bytes], size: int, max_files: int) -> None:
    """Refuse by the end record and a walk over the directory, before a million entries become objects in memory."""
    start = max(0, size - _END.size - 0xFFFF)
    file.seek(start)
    tail = file.read()
    at = len(tail) - _END.size
    if at < 0 or not (tail[at:].startswith(b"PK\x05\x06") and tail.endswith(b"\0\0")):
        at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < _END.size:
        raise ZipRefused("not_a_zip", "The file is not a zip.", "Send a zip, or complete without unpacking.")
    _, _, _, _, count, length, _, _ = _END.unpack_from(tail, at)
    end, locator = start + at, start + at - _END64_LOCATOR.size
    if locator >= 0:
        file.seek(locator)
        signature, _, offset, _ = _END64_LOCATOR.unpack(file.read(_END64_LOCATOR.size))
        if signature == b"PK\x06\x07":
            count, length = _end64(file, locator, offset)
            end = offset
    if count > 2 * max_files or length > 2 * max_files * _DIRECTORY_ENTRY:
        raise _too_many(count, max_files)
    if length > end:
        raise _damaged("its directory is larger than the file")
    file.seek(end - length)
    _check_directory(file.read(length), max_files)


def _check_directory(directory: bytes, max_files: int) -> None:
    """The number of entries that are really there: the end record may lie."""
    at = count = 0
    while at + _ENTRY.size <= len(directory):
        _, *lengths = _ENTRY.unpack_from(directory, at)
        at += _ENTRY.size + sum(lengths)
        count += 1
        if count > 2 * max_files:
            raise _too_many(count, max_files)


def _end64(file: IO[bytes], locator: int, offset: int) -> tuple[int, int]:
    # Python's reader looks right before the locator and ignores the offset, so both places must be the same.
    if offset != locator - _END64.size:
        raise _damaged("its end record is not where it should be")
    file.seek(offset)
    raw = file.read(_END64.size)
    if len(raw) < _END64.size or not raw.startswith(b"PK\x06\x06"):
        raise _damaged("its end record is damaged")
    fields = _END64.unpack(raw)
    return fields[7], fields[8]


def _check_entries(entries: list[ZipEntry], infos: list[zipfile.ZipInfo], size: int, max_files: int) -> None:
    if not entries:
        raise ZipRefused("zip_empty", "The zip holds no file.")
    if len(entries) > max_files:
        raise _too_many(len(entries), max_files)
    for code, what, found in _kinds(entries):
        first = found[0]
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        raise ZipRefused(code, f"{first!r}{more}: {what}", "Create the ZIP again without it.")
    if problems := path_problems([entry.path for entry in entries], "zip.{index}"):
        message = f"{problems[0].value!r}: {problems[0].message}"
        raise ZipRefused(problems[0].code, message, problems[0].remedy, tuple(problems))
    total = sum(entry.size for entry in entries)
    if total > RATIO_MATTERS_FROM and total > MAX_RATIO * size:
        message = f"The zip would unpack to {total} bytes, more than {MAX_RATIO} times its own {size}."
        raise ZipRefused("zip_bomb", message, "Send the files themselves instead of a zip.")
    _check_overlap(infos, size)


def _kinds(entries: list[ZipEntry]) -> Iterator[tuple[str, str, list[str]]]:
    rules = (
        ("link_refused", "links are refused.", _is_link),
        ("special_file_refused", "devices, pipes and sockets are refused.", _is_special),
        ("zip_encrypted", "encrypted entries cannot be read.", lambda info: bool(info.flag_bits & _ENCRYPTED)),
        (
            "zip_method",
            "only the methods stored and deflated are read.",
            lambda info: info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED),
        ),
    )
    for code, what, applies in rules:
        if found := [entry.path for entry in entries if applies(entry.info)]:
            yield code, what, found


def _is_link(info: zipfile.ZipInfo) -> bool:
    return stat.S_ISLNK(info.external_attr >> 16)


def _is_special(info: zipfile.ZipInfo) -> bool:
    kind = stat.S_IFMT(info.external_attr >> 16)
    return kind not in (0, stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK)


def _check_overlap(infos: list[zipfile.ZipInfo], size: int) -> None:
    """Entries that share bytes let a small zip hold a large one many times over."""
    end = 0
    for info in sorted(infos, key=lambda info: info.header_offset):
        if info.header_offset < end:
            raise ZipRefused(
                "zip_bomb", f"{info.filename!r} shares its bytes with another entry.", "Create the ZIP again."
            )
        end = info.header_offset + _LOCAL_HEADER + info.compress_size
        if end > size:
            raise _damaged(f"{info.filename!r} ends behind the end of the zip")


def _too_many(count: int, most: int) -> ZipRefused:
    message = f"The zip has about {count} entries; at most {most} files are unpacked."
    return ZipRefused("zip_too_many_files", message, "Send a tar archive: .tar.gz or .tar.zst.")


def _damaged(what: str) -> ZipRefused:
    return ZipRefused("zip_damaged", f"The zip is damaged: {what}", "Create the ZIP again and send it again.")
