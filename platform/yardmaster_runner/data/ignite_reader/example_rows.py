"""Rows one by one as the features of a `tf.train.Example`: for a program without NumPy that copies them to files.

    long 7, {"name": "WARM", "size": {"width": 3}}  ─▶  {"key": [7], "val.name": [b"WARM"], "val.size.width": [3]}

Needs the standard library alone. What a server sends may be anything: what cannot be read raises `IgniteTypeError`,
`ValueError`, `IndexError`, `OverflowError`, `RecursionError` or `struct.error`, nothing else.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from yardmaster_runner.data.description import Feature
from yardmaster_runner.data.ignite_reader import wire
from yardmaster_runner.data.ignite_reader.binary_types import BinaryTypes, DataObject
from yardmaster_runner.data.ignite_reader.errors import IgniteQueryError, IgniteTypeError
from yardmaster_runner.data.ignite_reader.sizes import INT, after

Values = Tuple[str, Sequence[Any]]
"""A kind (int64, float, bytes) and the values of one feature."""
DEEPEST = 16
"""Objects within objects."""
MOST_FEATURES = 2_000
_SCALARS = {
    wire.BYTE: ("int64", "<b"), wire.SHORT: ("int64", "<h"), wire.INT: ("int64", "<i"), wire.LONG: ("int64", "<q"),
    wire.FLOAT: ("float", "<f"), wire.DOUBLE: ("float", "<d"), wire.CHAR: ("int64", "<H"), wire.BOOL: ("int64", "<B"),
    wire.DATE: ("int64", "<q"), wire.TIME: ("int64", "<q"),
}  # fmt: skip
_ARRAYS = {
    wire.SHORTS: ("int64", "h"), wire.INTS: ("int64", "i"), wire.LONGS: ("int64", "q"), wire.FLOATS: ("float", "f"),
    wire.DOUBLES: ("float", "d"), wire.CHARS: ("int64", "H"), wire.BOOLS: ("int64", "B"),
}  # fmt: skip
_LARGEST_FLOAT = 3.4028234663852886e38


def examples(
    page: memoryview, at: int, names: Sequence[str], rows: int, types: BinaryTypes, features: "Features"
) -> Iterator[Dict[str, Values]]:
    """So many rows from this place on; `names` are those of the columns. Each is noted in `features`."""
    for _ in range(rows):
        found: Dict[str, Values] = {}
        codes: Dict[str, int] = {}
        for name in names:
            _add(name, DataObject(page, at), types, found, codes, 0)
            at = _next(page, at)
        features.note(found, codes)
        yield found


def refuse_twice(names: Sequence[str]) -> None:
    """Raise `IgniteQueryError` where two columns have one name."""
    twice = sorted({one for one in names if names.count(one) > 1})
    if twice:
        message = "The query has several columns with the name %s. Give each its own: SELECT A.ID AS A_ID, …"
        raise IgniteQueryError(message % " and ".join(twice))


@dataclass
class _Seen:
    code: int
    kind: str
    rows: int = 0
    length: Optional[int] = None
    is_even: bool = True


class Features:
    """What was seen of each feature in all rows so far."""

    def __init__(self) -> None:
        self.rows = 0
        self._seen: Dict[str, _Seen] = {}

    def note(self, found: Dict[str, Values], codes: Dict[str, int]) -> None:
        """One row. Raises `IgniteTypeError` where a field is of another type than in rows before."""
        self.rows += 1
        for path, (kind, values) in found.items():
            seen = self._seen.get(path)
            if seen is None:
                seen = self._seen[path] = _Seen(codes[path], kind, length=len(values))
                if len(self._seen) > MOST_FEATURES:
                    raise IgniteTypeError("The rows have more than %d fields." % MOST_FEATURES)
            if seen.kind != kind or (seen.code != codes[path] and wire.STRING in (seen.code, codes[path])):
                message = "%s is a %s in one row and a %s in another one. Select the rows of one type with a query."
                raise IgniteTypeError(message % (path, wire.name_of(seen.code), wire.name_of(codes[path])))
            seen.rows += 1
            seen.is_even = seen.is_even and seen.length == len(values)

    def described(self) -> Dict[str, Feature]:
        """As `dataset.json` says them: a feature that a row lacks, or that differs in length, is a list of any length.
        Arrays that are as long in each row have that shape."""
        return {path: self._one(seen) for path, seen in self._seen.items()}

    def _one(self, seen: _Seen) -> Feature:
        shape: Optional[Tuple[int, ...]] = ()
        if seen.rows < self.rows or not seen.is_even:
            shape = None
        elif seen.code in _ARRAYS or seen.code == wire.STRINGS:
            shape = (seen.length or 0,)
        encoding = "utf8" if seen.code in (wire.STRING, wire.STRINGS) else ""
        return Feature(seen.kind, shape, encoding)


def _add(
    path: str, one: DataObject, types: BinaryTypes, found: Dict[str, Values], codes: Dict[str, int], depth: int
) -> None:
    value = one.resolved()
    code = value.code
    if code == wire.NULL:
        return
    if code != wire.OBJECT:
        found[path], codes[path] = _values(path, value), code
        return
    if depth >= DEEPEST:
        raise IgniteTypeError("%s: objects are nested more than %d deep." % (path, DEEPEST))
    opened = value.opened()
    kind = types.of(opened.type_id)
    for name, (_, number) in kind.fields.items():
        for inner in opened.field(kind, number):
            _add("%s.%s" % (path, name), inner, types, found, codes, depth + 1)


def _values(path: str, one: DataObject) -> Values:
    data, at, code = one.data, one.at, one.code
    if code in _SCALARS:
        kind, form = _SCALARS[code]
        return kind, [_fitting(struct.unpack_from(form, data, at + 1)[0], code)]
    if code in (wire.STRING, wire.BYTES):
        return "bytes", [_bytes(data, at)]
    if code == wire.UUID:
        return "bytes", [bytes(data[at + 1 : at + 9][::-1]) + bytes(data[at + 9 : at + 17][::-1])]
    if code in _ARRAYS:
        kind, form = _ARRAYS[code]
        items: List[Any] = list(struct.unpack_from("<%d%s" % (_count(data, at), form), data, at + 5))
        return kind, [_fitting(item, code) for item in items] if code == wire.DOUBLES else items
    if code == wire.STRINGS:
        return "bytes", _texts(data, at)
    if code == wire.TIMESTAMP:
        moment, rest = struct.unpack_from("<qi", data, at + 1)
        return "int64", [moment * 1_000_000 + rest]
    if code in (wire.ENUM, wire.BINARY_ENUM):
        return "int64", [INT(data, at + 5)[0]]
    message = "%s is a %s, which an Example cannot hold. Copy what is needed with a query, a BigDecimal with "
    message += "CAST(… AS DOUBLE)."
    raise IgniteTypeError(message % (path, wire.name_of(code)))


def _fitting(value: Any, code: int) -> Any:
    """Floats of an Example have 32 bits: of what is larger, infinity."""
    if code in (wire.DOUBLE, wire.DOUBLES) and abs(value) > _LARGEST_FLOAT:
        return float("inf") if value > 0 else float("-inf")
    return value


def _count(data: memoryview, at: int) -> int:
    count = int(INT(data, at + 1)[0])
    if count < 0 or count > len(data):
        raise ValueError("a length is wrong")
    return count


def _bytes(data: memoryview, at: int) -> bytes:
    count = _count(data, at)
    if at + 5 + count > len(data):
        raise ValueError("a length is wrong")
    return bytes(data[at + 5 : at + 5 + count])


def _texts(data: memoryview, at: int) -> List[bytes]:
    """A null is an empty text."""
    found, count = [], _count(data, at)
    at += 5
    for _ in range(count):
        found.append(_bytes(data, at) if data[at] == wire.STRING else b"")
        at = _next(data, at)
    return found


def _next(page: memoryview, at: int) -> int:
    following = after(page, at)
    if following <= at or following > len(page):
        raise ValueError("a length is wrong")
    return following
