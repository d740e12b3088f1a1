"""`tf.train.Example` of many records at a time. Not here: a single one (`yardmaster_runner.data.example_bytes`)."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Sequence, Union

from yardmaster_runner.data.example_bytes import feature, field, varint
from yardmaster_runner.prepare.trouble import PrepareError


def require_numpy() -> None:
    """Raise `PrepareError` where NumPy is missing."""
    try:
        import numpy  # noqa: F401
    except ImportError:
        raise PrepareError("preparing data needs NumPy: choose an image that has it") from None


_MOST_KEPT = 50_000


class Encoder:
    """Examples of records whose features have one value each, many at a time: what is the same in all of them is made
    once. Needs NumPy."""

    def __init__(self, kinds: Mapping[str, str]) -> None:
        """`kinds` by the names of the features."""
        self._floats = {name: self._entry(name, kind, 0.0)[:-4] for name, kind in kinds.items() if kind == "float"}
        self._numbers: Dict[str, Dict[int, bytes]] = {name: {} for name, kind in kinds.items() if kind == "int64"}
        self._heads: Dict[str, Dict[int, bytes]] = {name: {} for name in self._numbers}
        self._texts: Dict[str, Dict[int, bytes]] = {name: {} for name, kind in kinds.items() if kind == "bytes"}
        self._lengths: Dict[int, bytes] = {}

    @staticmethod
    def _entry(name: str, kind: str, value: Union[int, float, bytes]) -> bytes:
        key = name.encode()
        return b"".join(field(b"\x0a", *field(b"\x0a", key), *field(b"\x12", *feature(kind, [value]))))

    def examples(self, columns: Mapping[str, Sequence[Any]]) -> List[bytes]:
        """The serialized Examples of these columns: numbers, or bytes."""
        parts: List[Sequence[bytes]] = [self._whole_numbers(name, columns[name]) for name in self._numbers]
        parts += [self._bytes(name, columns[name]) for name in self._texts]
        if self._floats:
            parts.append(self._rows_of_floats(columns))
        bodies = parts[0] if len(parts) == 1 else [b"".join(one) for one in zip(*parts)]
        lengths = self._lengths
        for size in set(map(len, bodies)) - lengths.keys():
            lengths[size] = b"\x0a" + varint(size)
        out = [lengths[len(body)] + body for body in bodies]
        _bound(lengths)
        return out

    def _rows_of_floats(self, columns: Mapping[str, Sequence[float]]) -> List[bytes]:
        """The entries of all features of floats, which are as long in each record."""
        import numpy

        rows = len(columns[next(iter(self._floats))])
        width = sum(len(head) + 4 for head in self._floats.values())
        table, at = numpy.empty((rows, width), numpy.uint8), 0
        for name, head in self._floats.items():
            table[:, at : at + len(head)] = numpy.frombuffer(head, numpy.uint8)
            at += len(head) + 4
            table[:, at - 4 : at] = numpy.asarray(columns[name], "<f4").view(numpy.uint8).reshape(rows, 4)
        data = table.tobytes()
        return [data[begin : begin + width] for begin in range(0, len(data), width)]

    def _whole_numbers(self, name: str, column: Sequence[int]) -> List[bytes]:
        known, heads = self._numbers[name], self._heads[name]
        for one in set(column) - known.keys():
            written = varint(one)
            head = heads.get(len(written))
            if head is None:
                head = heads[len(written)] = self._entry(name, "int64", one)[: -len(written)]
            known[one] = head + written
        out = [known[one] for one in column]
        _bound(known)
        return out

    def _bytes(self, name: str, column: Sequence[bytes]) -> List[bytes]:
        known = self._texts[name]
        for size in set(map(len, column)) - known.keys():
            whole = self._entry(name, "bytes", bytes(size))
            known[size] = whole[: len(whole) - size]
        out = [known[len(one)] + one for one in column]
        _bound(known)
        return out


def _bound(kept: Dict[int, bytes]) -> None:
    if len(kept) > _MOST_KEPT:
        kept.clear()
