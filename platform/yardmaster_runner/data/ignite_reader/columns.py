"""Columns of decoded rows: plain arrays, arrays of any length behind each other, texts; joining and cutting them."""

from __future__ import annotations

from typing import Any, List, Sequence, Tuple, Union

import numpy as np

from yardmaster_runner.data.ignite_reader.buffers import Buffers

ALIGNED = 64
"""Bytes: TensorFlow takes over an array that begins at a multiple of this, and copies others."""
LONG_TEXT = 1024
"""Bytes of a text from which on it is worth while not to copy it once more."""
_MEMORY = Buffers()


class Ragged:
    """Items of all rows behind each other; those of row i are `values[splits[i]:splits[i + 1]]`. Rows of one length may
    be given as the rows of an array, which is then copied when the values are asked for."""

    def __init__(self, values: Any, splits: Any) -> None:
        self.given = values
        self.splits = splits

    def __len__(self) -> int:
        return len(self.splits) - 1

    @property
    def values(self) -> Any:
        if self.given.ndim == 2:
            self.given = solid(self.given).reshape(-1)
        return self.given

    @property
    def dtype(self) -> Any:
        return self.given.dtype

    def cut(self, begin: int, end: int) -> "Ragged":
        splits = self.splits[begin : end + 1]
        given = self.given[begin:end] if self.given.ndim == 2 else self.given[splits[0] : splits[-1]]
        return type(self)(given, splits - splits[0])

    def kept(self, mask: Any) -> "Ragged":
        lengths = np.diff(self.splits)
        return type(self)(self.values[np.repeat(mask, lengths)], splits_of(lengths[mask]))


class Text(Ragged):
    """Texts as the bytes of all behind each other."""

    def objects(self) -> Any:
        """An array of `bytes`."""
        made = np.empty(len(self), object)
        if self.given.ndim == 2:
            made[:] = [row.tobytes() for row in self.given]
            return made
        ends = self.splits.tolist()
        if len(self.given) > LONG_TEXT * len(self):
            whole = memoryview(self.given)
            made[:] = [bytes(whole[begin:end]) for begin, end in zip(ends, ends[1:])]
        else:
            short = self.given.tobytes()
            made[:] = [short[begin:end] for begin, end in zip(ends, ends[1:])]
        return made


Column = Union[Any, Ragged]
Columns = List[Column]


def splits_of(lengths: Any) -> Any:
    made = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=made[1:])
    return made


def joined(parts: Sequence[Column]) -> Column:
    """The rows of all parts, in order."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    if not isinstance(first, Ragged):
        return _concatenated(parts)
    given = [one.given for one in parts]
    if any(one.ndim != 2 or one.shape[1:] != given[0].shape[1:] for one in given):
        given = [one.values for one in parts]
    return type(first)(
        _concatenated(given).reshape(-1), splits_of(np.concatenate([np.diff(one.splits) for one in parts]))
    )


def _concatenated(parts: Sequence[Any]) -> Any:
    first = parts[0]
    if first.dtype == object:
        return np.concatenate(parts)
    made = empty((sum(map(len, parts)), *first.shape[1:]), first.dtype)
    return np.concatenate(parts, out=made)


def solid(array: Any) -> Any:
    """The same as an array that TensorFlow can take over as it is."""
    if array.dtype == object or array.flags.c_contiguous:
        return array
    return copied(array)


def copied(array: Any) -> Any:
    made = empty(array.shape, array.dtype)
    made[...] = array
    return made


def cut(column: Column, begin: int, end: int) -> Column:
    return column.cut(begin, end) if isinstance(column, Ragged) else column[begin:end]


def kept(column: Column, mask: Any) -> Column:
    """The rows for which the mask is true."""
    return column.kept(mask) if isinstance(column, Ragged) else column[mask]


def empty(shape: Tuple[int, ...], dtype: Any) -> Any:
    """An array that TensorFlow can take over as it is, with nothing in it yet."""
    kind = np.dtype(dtype)
    count = int(np.prod(shape, dtype=np.int64))
    size = count * kind.itemsize
    if size < 1 << 16:
        return np.empty(shape, kind)
    space = np.frombuffer(_MEMORY.space(size + ALIGNED), np.uint8)
    begin = -space.ctypes.data % ALIGNED
    return space[begin : begin + size].view(kind).reshape(shape)
