"""Rows of `.npy` files, read without NumPy: nothing is unpickled, and the header is no program."""

from __future__ import annotations

import array
import ast
import os
import struct
from dataclasses import dataclass
from typing import Any, Sequence, Tuple

from yardmaster_runner.data.description import RAW_TYPES, Feature
from yardmaster_runner.prepare.trouble import PrepareError

TYPES = {"u1": "uint8", "i1": "int8", "u2": "uint16", "i2": "int16", "u4": "uint32", "i4": "int32", "i8": "int64",
         "f2": "float16", "f4": "float32", "f8": "float64", "b1": "bool"}  # fmt: skip
SCALARS = {"uint8": "B", "int8": "b", "uint16": "H", "int16": "h", "uint32": "I", "int32": "i", "int64": "q",
           "float16": "e", "float32": "f", "float64": "d", "bool": "B"}  # fmt: skip
WIDENED = {"uint32": "int64"}
"""Items that TensorFlow cannot decode are written as those of a type that holds them."""
SWAPPED = {2: "H", 4: "I", 8: "Q"}
LONGEST_HEADER = 10_000
LARGEST_ROW = 256 << 20


@dataclass(frozen=True)
class Array:
    """The header of a file: what its rows are, how many, and where they begin. `kind` is that of the items that are
    read; in the file they are `stored`, and perhaps big-endian."""

    path: str
    name: str
    kind: str
    rows: int
    shape: Tuple[int, ...]
    begins: int
    stored: str
    is_swapped: bool

    @property
    def row_bytes(self) -> int:
        """Bytes of a row in the file."""
        return self._row_of(self.stored)

    def _row_of(self, kind: str) -> int:
        size = struct.calcsize(SCALARS[kind])
        for one in self.shape:
            size *= one
        return size

    def feature(self) -> Feature:
        if self.shape:
            return Feature("bytes", self.shape, "raw:" + self.kind)
        return Feature("float" if self.kind.startswith("float") else "int64", ())

    def read(self, first: int, end: int) -> Sequence[Any]:
        """The rows from `first` to `end`, which it has not: bytes of arrays, or numbers."""
        size = self.row_bytes
        with open(self.path, "rb") as file:
            file.seek(self.begins + first * size)
            data = file.read((end - first) * size)
        if len(data) != (end - first) * size:
            raise PrepareError("%s: it changed while it was read" % self.name)
        data, size = self._converted(data), self._row_of(self.kind)
        if self.shape:
            return [data[at : at + size] for at in range(0, len(data), size)]
        return struct.unpack("<%d%s" % (end - first, SCALARS[self.kind]), data)

    def _converted(self, data: bytes) -> bytes:
        """Items of the file as little-endian ones of `kind`."""
        size = struct.calcsize(SCALARS[self.stored])
        if self.is_swapped and size > 1:
            items = array.array(SWAPPED[size], data)
            items.byteswap()
            data = items.tobytes()
        if self.kind != self.stored:
            count = len(data) // size
            values = struct.unpack("<%d%s" % (count, SCALARS[self.stored]), data)
            data = struct.pack("<%d%s" % (count, SCALARS[self.kind]), *values)
        return data


def opened(path: str, shown: str) -> Array:
    """The header of `path`. Raises `PrepareError` for what cannot be read by rows."""
    with open(path, "rb") as file:
        start = file.read(8)
        if start[:6] != b"\x93NUMPY" or len(start) < 8:
            raise PrepareError("%s: not a NumPy array file" % shown)
        wide = start[6] >= 2
        length = int.from_bytes(file.read(4 if wide else 2), "little")
        if length > LONGEST_HEADER:
            raise PrepareError("%s: its header has %d bytes, more than %d" % (shown, length, LONGEST_HEADER))
        text = file.read(length)
        begins = file.tell()
    try:
        header = ast.literal_eval(text.decode("latin-1").strip())
        descr, shape, fortran = header["descr"], header["shape"], header["fortran_order"]
        valid = isinstance(shape, tuple) and all(type(one) is int and one >= 0 for one in shape)
    except (ValueError, SyntaxError, KeyError, TypeError, RecursionError, MemoryError):
        raise PrepareError("%s: its header cannot be read" % shown) from None
    stored = TYPES.get(descr[1:], "") if isinstance(descr, str) and descr[:1] in "<>|" else ""
    kind = WIDENED.get(stored, stored)
    if kind not in RAW_TYPES:
        known = ", ".join([*RAW_TYPES, *WIDENED])
        message = "%s: its items are %r: expected %s; save it as one of them, such as x.astype('int64')"
        raise PrepareError(message % (shown, descr, known))
    if not valid or not shape or (fortran and len(shape) > 1):
        raise PrepareError("%s: expected an array in C order whose first axis counts the records" % shown)
    found = Array(path, shown, kind, shape[0], shape[1:], begins, stored, descr[0] == ">")
    if not 0 < found.row_bytes <= LARGEST_ROW:
        raise PrepareError("%s: a row has %d bytes, expected 1 to %d" % (shown, found.row_bytes, LARGEST_ROW))
    there = os.path.getsize(path) - begins
    if there != found.rows * found.row_bytes:
        raise PrepareError("%s: %d bytes of items, its header says %d" % (shown, there, found.rows * found.row_bytes))
    return found
