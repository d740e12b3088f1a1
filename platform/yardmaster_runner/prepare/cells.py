"""Cells of tables: the kinds of their columns, and their values. No whole number is changed: those that a float of 32
bits does not hold stay whole numbers, or become text where cells are empty."""

from __future__ import annotations

import struct
from typing import Any, List, Sequence

from yardmaster_runner.prepare.schema import LARGEST_FLOAT

NAN = float("nan")
EMPTY = frozenset(("", "NA", "N/A", "n/a", "na", "null", "NULL", "Null", "NaN", "nan", "NAN"))
"""What stands for no value in a column of numbers, and in the label."""
FEATURES = {"int64": "int64", "wide": "int64", "gaps": "float", "inexact": "bytes", "float": "float", "bytes": "bytes"}
"""By what was seen of a column, narrowest first, the kind of its feature: whole numbers, `wide` ones that a float of 32
bits does not hold, those with `gaps` of empty cells, both or more than 64 bits (`inexact`), numbers, anything."""
ORDER = list(FEATURES)
EXACT = 2**24
"""All whole numbers up to it are floats of 32 bits."""


def both(one: str, other: str) -> str:
    """The kind of a column with cells of two kinds."""
    if {one, other} == {"wide", "gaps"}:
        return "inexact"
    return max(one, other, key=ORDER.index)


def is_empty(text: str) -> bool:
    return text in EMPTY or text.strip() in EMPTY


def cell_kind(text: str) -> str:
    """The narrowest kind that holds a cell."""
    if is_empty(text):
        return "gaps"
    if "_" in text:
        return "bytes"
    try:
        return _kind_of_whole([int(text)])
    except ValueError:
        pass  # no whole number: perhaps one of the wider kinds below
    try:
        number = float(text)
    except ValueError:
        return "bytes"
    is_infinite = abs(number) == float("inf") and not any(one.isdigit() for one in text)
    return "float" if abs(number) < LARGEST_FLOAT or is_infinite else "bytes"


def _kind_of_whole(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    if low >= -EXACT and high <= EXACT:
        return "int64"
    if low < -(2**63) or high >= 2**63:
        return "inexact"
    form = "<%df" % len(numbers)
    return "int64" if struct.unpack(form, struct.pack(form, *numbers)) == tuple(numbers) else "wide"


def column_kind(cells: Sequence[str], known: str) -> str:
    """The kind with these cells, too. Most columns are looked at as a whole."""
    if known == "bytes" or not cells:
        return known
    filled = cells if EMPTY.isdisjoint(cells) else [one for one in cells if one not in EMPTY]
    if len(filled) < len(cells):
        known = both(known, "gaps")
    if not filled:
        return known
    found = _kind_of_all(filled, known)
    if found:
        return both(known, found)
    for text in filled:
        known = both(known, cell_kind(text))
        if known == "bytes":
            break
    return known


def _kind_of_all(filled: Sequence[str], known: str) -> str:
    """The kind of cells that are all numbers; "" where each has to be looked at."""
    if "_" in "".join(filled):
        return ""
    try:
        if known != "float":
            return _kind_of_whole(list(map(int, filled)))
    except ValueError:
        pass  # not all are whole numbers: perhaps one of the wider kinds below
    try:
        numbers = list(map(float, filled))
    except ValueError:
        return ""
    total = sum(numbers)  # NaN, if one of them is
    return "float" if total == total and max(numbers) < LARGEST_FLOAT and min(numbers) > -LARGEST_FLOAT else ""


def converted(cells: Sequence[str], kind: str) -> List[Any]:
    """The cells of a column as values. An empty cell of a column of numbers is NaN. Raises ValueError."""
    if kind == "int64":
        return list(map(int, cells))
    if kind == "bytes":
        return list(cells)
    try:
        return list(map(float, cells))
    except ValueError:
        return [NAN if is_empty(one) else float(one) for one in cells]
