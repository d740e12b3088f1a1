"""Columns of decoded rows: plain arrays, arrays of any length behind each other, texts; joining and cutting them."""

from __future__ import annotations

from typing import Any, List, Sequence, Tuple, Union

import numpy as np

ALIGNED = 64
"""Bytes: TensorFlow takes over an array that begins at a multiple of this, and copies others."""


class Ragged:
    """Items of all rows behind each other; those of row i are `values[splits[i]:splits[i + 1]]`."""

    def __init__(self, values: Any, splits: Any) -> None:
        self.values = values
        self.splits = splits

    def __len__(self) -> int:
        return len(self.splits) - 1

    def cut(self, begin: int, end: int) -> "Ragged":
        splits = self.splits[begin : end + 1]
        return type(self)(self.values[splits[0] : splits[-1]], splits - splits[0])

    def kept(self, mask: Any) -> "Ragged":
        lengths = np.diff(self.splits)
        return type(self)(self.values[np.repeat(mask, lengths)], splits_of(lengths[mask]))


class Text(Ragged):
    """Texts as the bytes of all behind each other."""

    def objects(self) -> Any:
        """An array of `bytes`."""
        whole, ends = self.values.tobytes(), self.splits.tolist()
        made = np.empty(len(self), object)
        made[:] = [whole[begin:end] for begin, end in zip(ends, ends[1:])]
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
    values = _concatenated([one.values for one in parts])
    return type(first)(values, splits_of(np.concatenate([np.diff(one.splits) for one in parts])))


def _concatenated(parts: Sequence[Any]) -> Any:
    first = parts[0]
    if first.dtype == object:
        return np.concatenate(parts)
    made = empty((sum(map(len, parts)), *first.shape[1:]), first.dtype)
    return np.concatenate(parts, out=made)


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
    space = np.empty(size + ALIGNED, np.uint8)
    begin = -space.ctypes.data % ALIGNED
    return space[begin : begin + size].view(kind).reshape(shape)
