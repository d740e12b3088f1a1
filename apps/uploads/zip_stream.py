"""A zip that is made while it is sent, of any number of files: its directory, which comes last, grows in a temporary
file, and no more of a file is in memory than a piece. Zip64 where a number needs it.

Not here: where the bytes of a file are (`delivery`), and zips of others (`yardmaster.storage.zips`).
"""

from __future__ import annotations

import struct
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import IO

from apps.uploads.selectors import StoredFile

_LOCAL = struct.Struct("<4s5H3L2H")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_SIZES_FOLLOW, _UTF8 = 0x8, 0x800
_DEFLATED = 8
_ALWAYS = (0, 0x21)
"""Time and date, 1980-01-01: the same files give the same bytes."""
_MODE = 0o100644 << 16
_FULL, _MANY = 0xFFFF_FFFF, 0xFFFF
_LARGE = 1 << 31
"""Deflated, a file may become a little larger."""
_PIECE = 64 << 10
_IN_MEMORY = 1 << 20


def zip_chunks(files: Iterable[StoredFile], read: Callable[[StoredFile], Iterator[bytes]]) -> Iterator[bytes]:
    """The zip's bytes, piece by piece."""
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as directory:
        yield from _gathered(_all(files, read, directory))


def _all(
    files: Iterable[StoredFile], read: Callable[[StoredFile], Iterator[bytes]], directory: IO[bytes]
) -> Iterator[bytes]:
    offset = count = 0
    for count, file in enumerate(files, 1):  # noqa: B007 - used behind the loop
        start = offset
        crc = size = packed = 0
        deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        header = _local(file)
        yield header
        for chunk in read(file):
            crc, size = zlib.crc32(chunk, crc), size + len(chunk)
            if piece := deflate.compress(chunk):
                packed += len(piece)
                yield piece
        rest = deflate.flush()
        packed += len(rest)
        yield rest
        form = "<4sL2Q" if file.size >= _LARGE else "<4s3L"
        yield struct.pack(form, b"PK\x07\x08", crc, packed, size)
        offset += len(header) + packed + struct.calcsize(form)
        directory.write(_entry(file, crc, packed, size, start))
    length = directory.tell()
    directory.seek(0)
    while piece := directory.read(_PIECE):
        yield piece
    yield _end(count, length, offset)


def _local(file: StoredFile) -> bytes:
    """What comes before the file: its sizes and checksum follow it."""
    name = file.path.encode()
    is_large = file.size >= _LARGE
    extra = struct.pack("<2H2Q", 1, 16, 0, 0) if is_large else b""
    sizes = (_FULL, _FULL) if is_large else (0, 0)
    flags = _SIZES_FOLLOW | _UTF8
    version = 45 if is_large else 20
    fields = (version, flags, _DEFLATED, *_ALWAYS, 0, *sizes, len(name), len(extra))
    return _LOCAL.pack(b"PK\x03\x04", *fields) + name + extra


def _entry(file: StoredFile, crc: int, packed: int, size: int, offset: int) -> bytes:
    name = file.path.encode()
    beyond = [number for number in (size, packed, offset) if number >= _FULL]
    extra = struct.pack(f"<2H{len(beyond)}Q", 1, 8 * len(beyond), *beyond) if beyond else b""
    version = 45 if beyond or file.size >= _LARGE else 20
    size, packed, offset = (min(number, _FULL) for number in (size, packed, offset))
    flags = _SIZES_FOLLOW | _UTF8
    fields = (3 << 8 | version, version, flags, _DEFLATED, *_ALWAYS, crc, packed, size, len(name), len(extra))
    return _ENTRY.pack(b"PK\x01\x02", *fields, 0, 0, 0, _MODE, offset) + name + extra


def _end(count: int, length: int, offset: int) -> bytes:
    more = b""
    if count >= _MANY or length >= _FULL or offset >= _FULL:
        more = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, length, offset)
        more += struct.pack("<4sLQL", b"PK\x06\x07", 0, offset + length, 1)
    counts = (min(count, _MANY), min(count, _MANY), min(length, _FULL), min(offset, _FULL))
    return more + struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, *counts, 0)


def _gathered(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes in fewer pieces: each costs the server a turn."""
    waiting: list[bytes] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= _PIECE:
            yield b"".join(waiting)
            waiting, size = [], 0
    yield b"".join(waiting)
