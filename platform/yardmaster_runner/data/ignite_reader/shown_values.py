"""A few rows as texts for people: one path and one text for each field. Needs the standard library alone.

What a server sends may be anything: each text, the number of fields and their depth are bounded, and what cannot be
read raises `IgniteTypeError`, `ValueError`, `IndexError` or `struct.error`, nothing else.
"""

from __future__ import annotations

import datetime
import struct
import uuid
from typing import Any, Dict, Iterator, List, Optional, Tuple

from yardmaster_runner.data.ignite_reader import wire
from yardmaster_runner.data.ignite_reader.binary_types import BinaryTypes, DataObject
from yardmaster_runner.data.ignite_reader.sizes import INT, after

LONGEST = 80
"""Characters of a text."""
LONGEST_PATH = 200
MOST_FIELDS = 64
"""Of a row."""
DEEPEST = 4
FEW = 4
"""Items of an array that are shown."""
Field = Tuple[str, str, Optional[str]]
"""The path, the type in the words of Java, and the value; None: it is null."""

_NUMBERS = {
    wire.BYTE: "b", wire.SHORT: "h", wire.INT: "i", wire.LONG: "q", wire.FLOAT: "f", wire.DOUBLE: "d",
}  # fmt: skip
_ARRAYS = {
    wire.BYTES: "b", wire.SHORTS: "h", wire.INTS: "i", wire.LONGS: "q", wire.FLOATS: "f", wire.DOUBLES: "d",
    wire.CHARS: "H", wire.BOOLS: "?",
}  # fmt: skip
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def rows_shown(page: memoryview, at: int, names: List[str], rows: int, types: BinaryTypes) -> List[List[Field]]:
    """The fields of so many rows from this place on; `names` are those of the columns."""
    found = []
    for _ in range(rows):
        row: List[Field] = []
        for name in names:
            row.extend(_fields(name, DataObject(page, at), types, MOST_FIELDS - len(row), 0))
            at = _next(page, at)
        found.append(row)
    return found


def values(page: memoryview, at: int, columns: int, rows: int) -> List[List[Optional[str]]]:
    """Rows of plain values, such as those of a view of the system, whole."""
    found = []
    for _ in range(rows):
        row: List[Optional[str]] = []
        for _ in range(columns):
            row.append(_plain(DataObject(page, at), 1 << 16))
            at = _next(page, at)
        found.append(row)
    return found


def table_of(rows: List[List[Field]]) -> Tuple[List[Dict[str, Any]], List[List[Optional[str]]]]:
    """Columns `{"name", "type"}` of all these rows, and the values of each row in their order."""
    kinds: Dict[str, str] = {}
    for row in rows:
        for path, kind, value in row:
            if kinds.get(path, "null") == "null" or value is not None:
                kinds[path] = kind
    names = list(kinds)[:MOST_FIELDS]
    cells = [{path: value for path, _, value in row} for row in rows]
    return [{"name": one, "type": kinds[one]} for one in names], [[row.get(one) for one in names] for row in cells]


def _next(page: memoryview, at: int) -> int:
    following = after(page, at)
    if following <= at:
        raise ValueError("a length is negative")
    return following


def _fields(path: str, one: DataObject, types: BinaryTypes, most: int, depth: int) -> Iterator[Field]:
    if most <= 0:
        return
    value = one.resolved()
    if value.code != wire.OBJECT:
        yield path, wire.name_of(value.code), _plain(value)
        return
    opened = value.opened()
    kind = types.of(opened.type_id)
    if depth >= DEEPEST:
        yield path, kind.name[:LONGEST], "…"
        return
    count = 0
    for name, (_, number) in list(kind.fields.items())[:most]:
        inner = opened.field(kind, number)
        below = ("%s.%s" % (path, name))[:LONGEST_PATH]
        some = _fields(below, inner[0], types, most - count, depth + 1) if inner else iter([(below, "null", None)])
        for found in some:
            count += 1
            yield found


def _plain(one: DataObject, longest: int = LONGEST) -> Optional[str]:
    """The value of anything but an object."""
    data, at, code = one.data, one.at, one.code
    if code == wire.NULL:
        return None
    if code in _NUMBERS:
        return _number(struct.unpack_from("<" + _NUMBERS[code], data, at + 1)[0])
    if code == wire.BOOL:
        return "true" if data[at + 1] else "false"
    if code == wire.CHAR:
        return chr(struct.unpack_from("<H", data, at + 1)[0])
    if code == wire.STRING:
        return _cut(_text(data, at, 4 * longest), longest)
    if code == wire.UUID:
        high, low = struct.unpack_from("<QQ", data, at + 1)
        return str(uuid.UUID(int=(high << 64) | low))
    if code in (wire.DATE, wire.TIMESTAMP):
        return _moment(struct.unpack_from("<q", data, at + 1)[0])
    if code in _ARRAYS:
        return _array(data, at, code)
    return wire.name_of(code)


def _text(data: memoryview, at: int, most: int) -> str:
    length = INT(data, at + 1)[0]
    if length < 0:
        raise ValueError("a length is negative")
    return bytes(data[at + 5 : at + 5 + min(length, most)]).decode("utf-8", "replace")


def _array(data: memoryview, at: int, code: int) -> str:
    count = INT(data, at + 1)[0]
    if count < 0:
        raise ValueError("a length is negative")
    form = "<%d%s" % (min(count, FEW), _ARRAYS[code])
    some: List[Any] = list(struct.unpack_from(form, data, at + 5))
    shown = ", ".join(_number(one) for one in some)
    return _cut("%d: [%s%s]" % (count, shown, ", …" if count > FEW else ""), LONGEST)


def _number(value: Any) -> str:
    return "%.6g" % value if isinstance(value, float) else str(value).lower()


def _moment(milliseconds: int) -> str:
    try:
        return (_EPOCH + datetime.timedelta(milliseconds=milliseconds)).strftime("%Y-%m-%d %H:%M:%S UTC")
    except OverflowError:
        return str(milliseconds)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
