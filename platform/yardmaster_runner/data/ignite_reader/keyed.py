"""Values by key in a cache of Apache Ignite, and SQL statements that change rows, over one connection.

Keys are texts, values bytes. Each function is one request, or several that wait for their answers at the same time.
They raise what `Connection.ask` raises. Needs the standard library alone: the portal uses it, too. Not here: reading
many rows into arrays (`scan`, `sql`), and what may be repeated after a lost connection.
"""

from __future__ import annotations

import struct
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from yardmaster_runner.data.ignite_reader import wire
from yardmaster_runner.data.ignite_reader.connection import Connection

PARTITIONED, ATOMIC, FULL_SYNC = 2, 1, 0
_ANY_STATEMENT = 0
_PAGE = 1024
"""Rows of one answer to a statement."""

Value = Any
"""What a row holds: an int, a float, a bool, a text, bytes or None."""


def cache_make(connection: Connection, name: str, backups: int, region: str = "") -> None:
    """Make a cache in which a write is answered when every copy has it, unless there is one of this name. `region`:
    the data region of the servers in which it lies; empty: the default one."""
    properties = [
        struct.pack("<h", 0) + wire.text_bytes(name),
        struct.pack("<hi", 1, PARTITIONED),
        struct.pack("<hi", 2, ATOMIC),
        struct.pack("<hi", 3, backups),
        struct.pack("<hi", 4, FULL_SYNC),
    ]
    if region:
        properties.append(struct.pack("<h", 100) + wire.text_bytes(region))
    body = struct.pack("<h", len(properties)) + b"".join(properties)
    connection.ask(wire.OP_CACHE_GET_OR_CREATE_WITH_CONFIGURATION, struct.pack("<i", len(body)) + body)


def put_all(connection: Connection, cache: int, values: Mapping[str, bytes]) -> None:
    """Write these values; when it returns, all of them are there."""
    head = _head(cache)
    waiting = {
        connection.send(wire.OP_CACHE_PUT, head + wire.text_bytes(key) + wire.byte_array(value))
        for key, value in values.items()
    }
    while waiting:
        waiting.discard(connection.receive_any()[0])


def get_all(connection: Connection, cache: int, keys: Sequence[str]) -> List[Optional[bytes]]:
    """The values of these keys in their order; None for one that is not there."""
    head = _head(cache)
    waiting = {connection.send(wire.OP_CACHE_GET, head + wire.text_bytes(key)): at for at, key in enumerate(keys)}
    found: Dict[int, Optional[bytes]] = {}
    while waiting:
        number, answer = connection.receive_any()
        at = waiting.pop(number, None)
        if at is not None:
            value = value_of(answer.reader())
            found[at] = value if isinstance(value, bytes) else None
    return [found[at] for at in range(len(keys))]


def are_there(connection: Connection, cache: int, keys: Sequence[str]) -> bool:
    """Whether every one of these keys has a value."""
    answer = connection.ask(wire.OP_CACHE_CONTAINS_KEYS, _head(cache) + _listed(keys))
    return bool(answer.reader().int8())


def remove_all(connection: Connection, cache: int, keys: Sequence[str]) -> None:
    """Remove these keys, whether they are there or not."""
    connection.ask(wire.OP_CACHE_REMOVE_KEYS, _head(cache) + _listed(keys))


def statement(
    connection: Connection, text: str, arguments: Sequence[Value] = (), seconds: float = 0.0
) -> List[Tuple[Value, ...]]:
    """Run a statement of SQL in the schema PUBLIC, with a value for each of its question marks. The rows that it finds;
    of one that changes rows, their number. `seconds`: after which the server gives it up; 0: never."""
    body = b"".join((
        struct.pack("<ib", 0, 1), wire.text_bytes("PUBLIC"), struct.pack("<ii", _PAGE, -1), wire.text_bytes(text),
        struct.pack("<i", len(arguments)), *map(value_bytes, arguments),
        # As in `sql.Query`, but any statement, and without the names of its columns.
        struct.pack("<b??????q?", _ANY_STATEMENT, False, False, False, False, False, True, int(seconds * 1000), False),
    ))  # fmt: skip
    answer = connection.ask(wire.OP_QUERY_SQL_FIELDS, body).reader()
    cursor = struct.pack("<q", answer.int64())
    columns = answer.int32()
    found: List[Tuple[Value, ...]] = []
    while True:
        for _ in range(answer.int32()):
            found.append(tuple(value_of(answer) for _ in range(columns)))
        if not answer.int8():
            return found
        answer = connection.ask(wire.OP_QUERY_SQL_FIELDS_PAGE, cursor).reader()


def value_bytes(value: Value) -> bytes:
    """A value with its type code. Raises `TypeError`."""
    if value is None:
        return bytes([wire.NULL])
    if isinstance(value, bool):
        return struct.pack("<b?", wire.BOOL, value)
    if isinstance(value, int):
        return struct.pack("<bq", wire.LONG, value)
    if isinstance(value, str):
        return wire.text_bytes(value)
    if isinstance(value, bytes):
        return wire.byte_array(value)
    raise TypeError("no value of a statement: %s" % type(value).__name__)


_NUMBERS = {wire.BYTE: "b", wire.SHORT: "h", wire.INT: "i", wire.LONG: "q"}


def value_of(answer: wire.Reader) -> Value:
    """The next value of an answer. Raises `ValueError` for a type that no statement here asks for."""
    code = answer.int8()
    if code == wire.NULL:
        return None
    if code in _NUMBERS:
        return answer.number(_NUMBERS[code])
    if code == wire.BOOL:
        return bool(answer.int8())
    if code == wire.STRING:
        return answer.raw(answer.int32()).decode("utf-8", "replace")
    if code == wire.BYTES:
        return answer.raw(answer.int32())
    raise ValueError("a %s, which is not read here" % wire.name_of(code))


def _head(cache: int) -> bytes:
    return struct.pack("<ib", cache, 0)


def _listed(keys: Sequence[str]) -> bytes:
    return struct.pack("<i", len(keys)) + b"".join(map(wire.text_bytes, keys))
