"""What a page shows of a NumPy file (`.npy`): shape, type, the first values, and pictures where it looks like some.

Runs in a sandboxed process, since the file comes from users: its header is Python, read as a literal, and nothing is
unpickled.
"""

from __future__ import annotations

import ast
import base64
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite, prod
from typing import Any

from yardmaster.formats.png import data_address, png_of

MAGIC = b"\x93NUMPY"
ROWS, COLUMNS, PICTURES = 20, 20, 12
LONGEST_HEADER = 10_000
MOST_AXES = 32
_SMALLEST, _LARGEST = 8, 256
_SMALLEST_ALONE = 24
"""A table of numbers has as many axes as one grey picture; those that people keep are larger than most tables' rows."""
_CODES = {
    "u1": "B", "i1": "b", "u2": "H", "i2": "h", "u4": "I", "i4": "i", "u8": "Q", "i8": "q", "f2": "e", "f4": "f",
    "f8": "d", "b1": "?",
}  # fmt: skip
_NAMES = {"u": "uint", "i": "int", "f": "float"}


class NotAnArray(ValueError):
    """The header cannot be read. The message says why."""


@dataclass(frozen=True)
class Header:
    """`code` and `order` are those of `struct`; no code: items that are not shown."""

    dtype: str
    code: str
    order: str
    shape: tuple[int, ...]
    is_fortran: bool
    begins: int
    item: int


def summary(start: str, size: int) -> dict[str, Any]:
    """Of a file of `size` bytes that begins with `start` (in base64). Every list and text in it is bounded. `problem`:
    what is wrong with the file; it has nothing else then where the header cannot be read."""
    data = base64.b64decode(start)
    try:
        header = read_header(data)
    except NotAnArray as error:
        return {"problem": str(error)}
    found: dict[str, Any] = {
        "dtype": header.dtype, "shape": list(header.shape), "order": "Fortran" if header.is_fortran else "C",
        "columns": [], "rows": [], "pictures": [], "note": "", "problem": "",
    }  # fmt: skip
    there, wanted = size - header.begins, prod(header.shape) * header.item
    if header.item and there != wanted:
        found["problem"] = f"The file has {max(0, there):,} bytes of items; its header says {wanted:,}."
    if not header.code:
        found["note"] = "The items are not numbers: they are not shown."
        return found
    if header.is_fortran and len(header.shape) > 1:
        found["note"] = "In Fortran order: the values are not shown."
        return found
    body = data[header.begins :]
    found["columns"], found["rows"] = _table(header, body)
    found["pictures"] = _pictures(header, body)
    return found


def read_header(data: bytes) -> Header:
    """The header at the beginning of a file. Raises `NotAnArray`."""
    if data[:6] != MAGIC or len(data) < 12:
        raise NotAnArray("The file does not begin as a NumPy array.")
    width = 4 if data[6] >= 2 else 2
    length = int.from_bytes(data[8 : 8 + width], "little")
    begins = 8 + width + length
    if length > LONGEST_HEADER:
        raise NotAnArray(f"The header has {length:,} bytes, more than {LONGEST_HEADER:,}.")
    if len(data) < begins:
        raise NotAnArray("The file ends within its header.")
    try:
        members = ast.literal_eval(data[8 + width : begins].decode("latin-1").strip())
        descr, shape, is_fortran = members["descr"], members["shape"], bool(members["fortran_order"])
    except (ValueError, SyntaxError, KeyError, TypeError, RecursionError, MemoryError):
        raise NotAnArray("The header cannot be read.") from None
    if not isinstance(shape, tuple) or len(shape) > MOST_AXES or not all(_is_length(one) for one in shape):
        raise NotAnArray("The header has no shape that can be.")
    text = descr if isinstance(descr, str) else "structured"
    code = _CODES.get(text[1:], "") if text[:1] in "<>|=" else ""
    kind, bits = text[1:2], text[2:3]
    dtype = "bool" if text[1:] == "b1" else f"{_NAMES[kind]}{8 * int(bits)}" if code else _plain(text)
    item = struct.calcsize("<" + code) if code else 0
    return Header(dtype, code, ">" if text[:1] == ">" else "<", shape, is_fortran, begins, item)


def _plain(text: str) -> str:
    """Its beginning, as a page and JSON can have it."""
    return "".join(one if one.isascii() and one.isprintable() else "?" for one in text[:50])


def _is_length(one: object) -> bool:
    return type(one) is int and 0 <= one < 2**63


def _values(header: Header, body: bytes, first: int, count: int) -> list[Any]:
    """As many of these items as are there."""
    piece = body[first * header.item : (first + count) * header.item]
    there = len(piece) // header.item
    return list(struct.unpack(f"{header.order}{there}{header.code}", piece[: there * header.item]))


def _table(header: Header, body: bytes) -> tuple[list[str], list[list[str]]]:
    """The first records, each as the first of its values."""
    width = prod(header.shape[1:])
    records = header.shape[0] if header.shape else 1
    shown = min(width, COLUMNS)
    rows = [_values(header, body, record * width, shown) for record in range(min(ROWS, records))] if shown else []
    cells = [[_cell(one) for one in row] for row in rows if row]
    columns = ["value"] if len(header.shape) < 2 else [str(number) for number in range(shown)]
    return columns, cells


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _pictures(header: Header, body: bytes) -> list[str]:
    """The first pictures in full, as addresses; empty where it does not look like pictures."""
    found = _frames(header.shape)
    if found is None:
        return []
    count, height, width, channels = found
    size = height * width * channels
    out = []
    for number in range(min(count, PICTURES)):
        values = _values(header, body, number * size, size)
        if len(values) < size:
            break
        pixels = bytes(values) if header.dtype == "uint8" else _scaled(values)
        if not pixels:
            break
        out.append(data_address(png_of(pixels, width, channels)))
    return out


def _frames(shape: Sequence[int]) -> tuple[int, int, int, int] | None:
    """How many pictures, their height, width and channels."""

    def fits(height: int, width: int, smallest: int = _SMALLEST) -> bool:
        short, long = sorted((height, width))
        return smallest <= short and long <= min(_LARGEST, 4 * short)

    match tuple(shape):
        case (count, height, width, 1 | 3 as channels) if fits(height, width):
            return count, height, width, channels
        case (height, width, 3) if fits(height, width):
            return 1, height, width, 3
        case (count, height, width) if fits(height, width):
            return count, height, width, 1
        case (height, width) if fits(height, width, _SMALLEST_ALONE):
            return 1, height, width, 1
    return None


def _scaled(values: Iterable[Any]) -> bytes:
    """From the smallest to the largest as 0 to 255; empty where one is not a number."""
    numbers = [float(one) for one in values]
    if not all(map(isfinite, numbers)):
        return b""
    low, high = min(numbers), max(numbers)
    scale = 255 / (high - low) if isfinite(high - low) and high > low else 0.0
    return bytes(round((one - low) * scale) for one in numbers)
