"""The `Range` header (RFC 9110): one range of bytes. Pure.

Several ranges at once are answered with the whole, which the RFC allows: nobody here needs them, and a hundred
overlapping ones would be an attack.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_RANGE = re.compile(r"bytes=\s*([0-9]{0,18})-([0-9]{0,18})\s*")


class RangeRefused(ValueError):
    """The range lies outside the object (416)."""


@dataclass(frozen=True)
class ByteRange:
    """`length` bytes from `start`."""

    start: int
    length: int


def parse_range(header: str, size: int) -> ByteRange | None:
    """The range asked for, within `size`; None: the whole. Raises `RangeRefused`."""
    found = _RANGE.fullmatch(header)
    if found is None or not (found[1] or found[2]):
        return None
    if not found[1]:  # the last bytes
        length = min(int(found[2]), size)
        if length == 0:
            raise RangeRefused(header)
        return ByteRange(size - length, length)
    start, last = int(found[1]), int(found[2]) if found[2] else size - 1
    if found[2] and last < start:
        return None  # not a range at all
    if start >= size:
        raise RangeRefused(header)
    return ByteRange(start, min(last, size - 1) - start + 1)
