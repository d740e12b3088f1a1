"""How large an upload may be, and in which parts it comes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta

from yardmaster.storage.base import MAX_OBJECT_SIZE, MAX_PARTS

MAX_FILES = 20_000
MAX_FILE_SIZE = MAX_OBJECT_SIZE
PART_SIZE = 8 << 20
FILE_LIST_BYTES = 16 << 20
"""Of JSON that begins an upload: as many files as there may be, with paths and checksums as long as they may be."""
PARTS_AT_ONCE = 1_000
ADDRESS_LIFE = timedelta(hours=1)

CRC_BUDGET = 8 << 20
"""Bytes of records per upload whose checksums are verified when it comes: half a second of work."""

INLINE_BYTES = 256 << 20
INLINE_FILES = 500
"""Up to here `complete` does its work within the request, a second or two; beyond, a worker does it."""
INLINE_ZIP_BYTES = 16 << 20
"""The same for a zip that is unpacked: it may hold many times its own size."""


def part_size_for(largest: int) -> int:
    """8 MiB, doubled until the largest file has at most 10,000 parts. The same for all files of an upload."""
    size = PART_SIZE
    while size * MAX_PARTS < largest:
        size *= 2
    return size


def part_count(size: int, part_size: int) -> int:
    """How many parts a file has; an empty one has none."""
    return -(-size // part_size)


def part_length(size: int, part_size: int, part: int) -> int:
    """How many bytes part `part` (from 1) of a file has."""
    return min(part_size, size - (part - 1) * part_size)


def crc_budgets(sizes: Iterable[int]) -> Iterator[int]:
    """For each file, how many bytes of its records may have their checksums verified."""
    left = CRC_BUDGET
    for size in sizes:
        yield left
        left = max(0, left - size)
