"""Objects of Ignite, looked at one by one: data objects in a message, and what the cluster knows of their types.

Enough to find out what rows are; rows themselves are decoded many at a time (`decoding`).
"""

from __future__ import annotations

import struct
import threading
from dataclasses import dataclass
from typing import Callable, Dict, List, Tuple

from yardmaster_runner.data.ignite_reader import wire
from yardmaster_runner.data.ignite_reader.errors import IgniteTypeError

HAS_SCHEMA, HAS_RAW = 2, 4
ONE_BYTE, TWO_BYTES, COMPACT = 8, 16, 32
HEADER = 24
_INT = struct.Struct("<i").unpack_from


@dataclass(frozen=True)
class BinaryType:
    """A type of objects. `fields` has a type code and the field's id by name, `schemas` the ids of the fields that an
    object with this schema has, in their order."""

    type_id: int
    name: str
    fields: Dict[str, Tuple[int, int]]
    schemas: Dict[int, Tuple[int, ...]]


class BinaryTypes:
    """The types that were asked for so far. `ask` gets the server's answer. Safe to use from several threads."""

    def __init__(self, ask: Callable[[int, bytes], wire.Reader]) -> None:
        self._ask = ask
        self._lock = threading.Lock()
        self._known: Dict[int, BinaryType] = {}

    def of(self, type_id: int) -> BinaryType:
        with self._lock:
            if type_id not in self._known:
                self._known[type_id] = self._fetched(type_id)
            return self._known[type_id]

    def fields_of(self, type_id: int, schema_id: int) -> Tuple[int, ...]:
        """The ids of an object's fields in their order. A schema that came later is asked for once."""
        found = self.of(type_id)
        if schema_id not in found.schemas:
            with self._lock:
                found = self._known[type_id] = self._fetched(type_id)
        if schema_id not in found.schemas:
            raise IgniteTypeError("The cluster does not know the schema %d of the type %s." % (schema_id, found.name))
        return found.schemas[schema_id]

    def _fetched(self, type_id: int) -> BinaryType:
        answer = self._ask(wire.OP_GET_BINARY_TYPE, struct.pack("<i", type_id))
        if not answer.int8():
            raise IgniteTypeError("The cluster does not know the type %d of an object." % type_id)
        answer.int32()
        name = answer.text() or "type %d" % type_id
        answer.text()  # the field that decides where an object lies
        fields = {}
        for _ in range(answer.int32()):
            field = answer.text() or ""
            fields[field] = (answer.int32(), answer.int32())
        if answer.int8():
            for _ in range(answer.int32()):
                answer.text(), answer.int32()
        schemas = {}
        for _ in range(answer.int32()):
            schema = answer.int32()
            schemas[schema] = tuple(answer.int32s())
        return BinaryType(type_id, name, fields, schemas)


@dataclass(frozen=True)
class DataObject:
    """A value with its type code, at a place in a message."""

    data: memoryview
    at: int

    @property
    def code(self) -> int:
        return self.data[self.at]

    def resolved(self) -> "DataObject":
        """Itself, or what it wraps or refers to."""
        if self.code == wire.WRAPPED:
            length = _INT(self.data, self.at + 1)[0]
            return DataObject(self.data, self.at + 5 + _INT(self.data, self.at + 5 + length)[0])
        if self.code == wire.HANDLE:
            return DataObject(self.data, self.at - _INT(self.data, self.at + 1)[0])
        return self

    def opened(self) -> "BinaryObject":
        return BinaryObject(self.data, self.at)


@dataclass(frozen=True)
class BinaryObject:
    """An object with fields, at a place in a message."""

    data: memoryview
    at: int

    @property
    def type_id(self) -> int:
        return int(_INT(self.data, self.at + 4)[0])

    def field(self, kind: BinaryType, number: int) -> List[DataObject]:
        """The field with this id, where the object has it."""
        flags = struct.unpack_from("<h", self.data, self.at + 2)[0]
        schema = _INT(self.data, self.at + 16)[0]
        order = kind.schemas.get(schema, ())
        if number not in order or not flags & HAS_SCHEMA:
            return []
        width = offset_width(flags)
        place = self.at + _INT(self.data, self.at + 20)[0] + order.index(number) * (width + id_width(flags))
        place += id_width(flags)
        offset = int.from_bytes(self.data[place : place + width], "little")
        return [DataObject(self.data, self.at + offset)]


def offset_width(flags: int) -> int:
    """Bytes of each offset at an object's end."""
    return 1 if flags & ONE_BYTE else 2 if flags & TWO_BYTES else 4


def id_width(flags: int) -> int:
    """Bytes of the field's id before each offset: none where the cluster knows the order (a compact footer)."""
    return 0 if flags & COMPACT else 4
