"""Which TFRecord file is damaged, and where. TensorFlow's reader says at which byte, but not of which file.

When a script ends with such an error, the shards that were being read are looked through. After the traceback the last
line on stderr names file and record, or says why a shard could not be had.
"""

from __future__ import annotations

import gzip
import os
import re
import struct
import sys
import time
import zlib
from typing import Any, BinaryIO, Callable, Iterable, List, Optional, Tuple

HEADER = struct.Struct("<QI")
"""Length of the record, and a checksum of that; the record and a checksum of its own follow."""
LONGEST_SEARCH = 20.0
LAST_WORDS = "yardmaster: "
"""Before the line that says why the script ended; the runner reports it."""
ERROR = re.compile(r"(?:truncated|corrupted) record at (\d+)|inflate\(\) failed|DataLossError")
ASKED = re.compile(r"\b(?:Data|Ignite\w*)(?:Error|Unavailable): (.+)")
"""An error of ours, which TensorFlow passes on with a traceback of its own."""
_SEEN: List[Tuple[Callable[[], Iterable[str]], str]] = []


def watch(shards: Callable[[], Iterable[str]], compression: str) -> None:
    """Explain errors of the reader in these files, which are asked for when the script ends with one."""
    if not _SEEN:
        _install()
    del _SEEN[:-99]
    _SEEN.append((shards, compression))


def explain(path: str, compression: str, until: float = float("inf")) -> str:
    """What is wrong with this file, in words; empty where nothing is. Checksums of records are not compared."""
    number, at = 0, 0
    try:
        with _opened(path, compression) as file:
            while True:
                if time.monotonic() > until:
                    return ""
                header = file.read(HEADER.size)
                if not header:
                    return ""
                if len(header) == HEADER.size:
                    length, checksum = HEADER.unpack(header)
                    if masked_crc32c(header[:8]) != checksum:
                        return "record %d (from 0, at byte %d) does not begin like one" % (number, at)
                    if _skipped(file, length + 4):
                        number, at = number + 1, at + HEADER.size + length + 4
                        continue
                return "it ends within record %d (from 0, at byte %d)" % (number, at)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        return "its compressed data is damaged after record %d: %s" % (number - 1, error)
    except OSError as error:
        return str(error)


def corrupt_record(path: str, compression: str, position: int, until: float = float("inf")) -> str:
    """The record that is at this byte, or whose content is, where its checksum is wrong; else nothing."""
    number, at = 0, 0
    try:
        with _opened(path, compression) as file:
            while at <= position and time.monotonic() < until:
                header = file.read(HEADER.size)
                if len(header) < HEADER.size:
                    return ""
                length, checksum = HEADER.unpack(header)
                if masked_crc32c(header[:8]) != checksum:
                    return "record %d (from 0, at byte %d) does not begin like one" % (number, at)
                if at in (position, position - HEADER.size):
                    content = file.read(length)
                    if masked_crc32c(content) != struct.unpack("<I", file.read(4))[0]:
                        return "the content of record %d (from 0, at byte %d) is damaged" % (number, at)
                    return ""
                if not _skipped(file, length + 4):
                    return ""
                number, at = number + 1, at + HEADER.size + length + 4
    except (OSError, EOFError, zlib.error, struct.error):
        return ""
    return ""


def found_in(text: str, seen: Iterable[Tuple[Iterable[str], str]], seconds: float = LONGEST_SEARCH) -> Optional[str]:
    """A sentence about the file that an error with this text is about; None where none is found in time."""
    sign = ERROR.search(text)
    if sign is None:
        return None
    until = time.monotonic() + seconds
    files = [(path, compression) for shards, compression in seen for path in shards if os.path.isfile(path)]
    position = sign.group(1)
    for path, compression in files if position else ():
        what = corrupt_record(path, compression, int(position), until)
        if what:
            return "the shard %s is damaged: %s" % (path, what)
    for path, compression in files:
        what = explain(path, compression, until)
        if what:
            return "the shard %s is damaged: %s" % (path, what)
    return None


def masked_crc32c(content: bytes) -> int:
    """The checksum of TFRecord (CRC-32C, rotated and moved)."""
    crc = 0xFFFFFFFF
    table = _TABLE
    for byte in content:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def _table() -> List[int]:
    table = []
    for number in range(256):
        for _ in range(8):
            number = (number >> 1) ^ (0x82F63B78 if number & 1 else 0)
        table.append(number)
    return table


_TABLE = _table()


def _opened(path: str, compression: str) -> Any:
    return gzip.open(path, "rb") if compression else open(path, "rb")


def _skipped(file: BinaryIO, count: int) -> bool:
    """Whether there were so many bytes more."""
    if isinstance(file, gzip.GzipFile):
        while count > 0:
            piece = file.read(min(count, 1 << 20))
            if not piece:
                return False
            count -= len(piece)
        return True
    end = file.seek(count, os.SEEK_CUR)
    return end <= os.fstat(file.fileno()).st_size


def _install() -> None:
    before = sys.excepthook

    def hook(kind: Any, error: Any, trace: Any) -> None:
        before(kind, error, trace)
        if type(error).__module__.startswith("tensorflow"):
            asked = ASKED.search(str(error))
            seen = [(shards(), compression) for shards, compression in _SEEN]
            found = asked.group(1) if asked else found_in(str(error), seen)
            if found:
                sys.stderr.write("%s%s\n" % (LAST_WORDS, found))

    sys.excepthook = hook
