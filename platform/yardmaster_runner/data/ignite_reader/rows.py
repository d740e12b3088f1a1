"""Where the rows of a page lie: the places of keys and values, without looking into them.

Rows of the same length are found all at once; where lengths differ, each tells where the next one begins.
"""

from __future__ import annotations

from typing import Any, List, Sequence, Tuple

import numpy as np

from yardmaster_runner.data.ignite_reader import wire
from yardmaster_runner.data.ignite_reader.sizes import BASE, INT, ITEM, PLACE, after

SHORTEST_RUN = 8
"""Rows of one length behind each other that make it worth while to look for more."""


def places(page: memoryview, at: int, count: int, columns: int = 2) -> Tuple[List[Any], int]:
    """The places of the values of each column of `count` rows from `at` on, and where the page continues after them.
    A row of a cache has two columns, key and value. Raises `IgniteTypeError`."""
    found = np.empty((count, columns), np.int64)
    row, looked_ahead = 0, 0
    while row < count:
        if looked_ahead <= row:
            run = _run(page, at, count - row, columns, found[row:])
            if run >= SHORTEST_RUN:
                row += run
                at = after(page, int(found[row - 1, columns - 1]))
                looked_ahead = row
                continue
            looked_ahead = row + 64
        until = min(count, looked_ahead)
        some, at = _stepped(page, at, until - row, columns)
        found[row:until] = np.array(some, np.int64).reshape(-1, columns)
        row = until
    return [found[:, one] for one in range(columns)], at


def _stepped(page: memoryview, at: int, rows: int, columns: int) -> Tuple[List[int], int]:
    """One value after the other. This loop runs once per value of a row, so it calls as little as it can."""
    found: List[int] = []
    add, base, place, item, number = found.append, BASE, PLACE, ITEM, INT
    for _ in range(rows * columns):
        add(at)
        code = page[at]
        size = base[code]
        if size < 0:
            at = after(page, at)
        elif place[code]:
            at += size + number(page, at + place[code])[0] * item[code]
        else:
            at += size
    return found, at


def _run(page: memoryview, at: int, most: int, columns: int, found: Any) -> int:
    """How many rows from here on have the same length in every column. As each begins where the one before ends, it
    is enough that what says the length is the same at every place where a row would begin."""
    first, end = _stepped(page, at, 1, columns)
    length = end - at
    fitting = min(most, (len(page) - at) // max(1, length))
    if fitting < SHORTEST_RUN:
        return 0
    same = np.ones(fitting, bool)
    for place in first:
        code = page[place]
        if code == wire.STRINGS:
            return 0
        same &= _strided(page, place, length, fitting, 1) == code
        if PLACE[code]:
            counts = _strided(page, place + PLACE[code], length, fitting, 4)
            same &= counts == counts[0]
    run = fitting if same.all() else int(np.argmin(same))
    found[:run] = np.arange(run, dtype=np.int64)[:, None] * length + np.array(first, np.int64)
    return run


def _strided(page: memoryview, at: int, stride: int, count: int, width: int) -> Any:
    return np.ndarray((count,), "<i4" if width == 4 else "u1", page, at, (stride,))


def strings_at(page: memoryview, places: Sequence[int]) -> Tuple[List[bytes], List[int]]:
    """The texts of arrays of strings, all behind each other, and how many each has. A null is an empty text."""
    found: List[bytes] = []
    counts = []
    for at in places:
        count = INT(page, at + 1)[0]
        counts.append(count)
        at += 5
        for _ in range(count):
            length = INT(page, at + 1)[0] if page[at] == wire.STRING else 0
            found.append(bytes(page[at + 5 : at + 5 + length]))
            at = after(page, at)
    return found, counts
