"""How long a value is on the wire, by its type code: where the next one begins. Needs the standard library alone."""

from __future__ import annotations

import struct

from yardmaster_runner.data.ignite_reader import wire
from yardmaster_runner.data.ignite_reader.errors import IgniteTypeError

INT = struct.Struct("<i").unpack_from
_SIZES = {
    # Type code: bytes without its items, place of the number of items (0: there are none), bytes of each item.
    1: (2, 0, 0), 2: (3, 0, 0), 3: (5, 0, 0), 4: (9, 0, 0), 5: (5, 0, 0), 6: (9, 0, 0), 7: (3, 0, 0), 8: (2, 0, 0),
    9: (5, 1, 1), 10: (17, 0, 0), 11: (9, 0, 0), 12: (5, 1, 1), 13: (5, 1, 2), 14: (5, 1, 4), 15: (5, 1, 8),
    16: (5, 1, 4), 17: (5, 1, 8), 18: (5, 1, 2), 19: (5, 1, 1), 27: (9, 1, 1), 28: (9, 0, 0), 30: (9, 5, 1),
    33: (13, 0, 0), 36: (9, 0, 0), 38: (9, 0, 0), 101: (1, 0, 0), 103: (0, 12, 1),
}  # fmt: skip
BASE, PLACE, ITEM = ([_SIZES.get(code, (-1, 0, 0))[part] for code in range(256)] for part in range(3))


def after(page: memoryview, at: int) -> int:
    """Where the value at this place ends."""
    code = page[at]
    base, place, item = BASE[code], PLACE[code], ITEM[code]
    if base < 0:
        return at + _size_of_strings(page, at) if code == wire.STRINGS else _unfit(code)
    return int(at + base + (INT(page, at + place)[0] * item if place else 0))


def _size_of_strings(page: memoryview, at: int) -> int:
    """An array of strings, of which each may be null."""
    begin, count = at, INT(page, at + 1)[0]
    at += 5
    for _ in range(count):
        at = after(page, at)
    return at - begin


def _unfit(code: int) -> int:
    message = "A key or a value is a %s, which no tensor can hold. Read what is needed of it with an SQL query."
    raise IgniteTypeError(message % wire.name_of(code))
