"""The thin client protocol of Apache Ignite as bytes: operations, type codes, and reading and writing small messages.

All numbers are little-endian. Not here: rows, which are decoded many at a time (`rows`, `decoding`).
"""

from __future__ import annotations

import struct
from typing import List, Optional, Union

OP_RESOURCE_CLOSE = 0
OP_CACHE_GET_SIZE = 1020
OP_CACHE_GET = 1000
OP_CACHE_PUT = 1001
OP_CACHE_CONTAINS_KEYS = 1012
OP_CACHE_REMOVE_KEYS = 1018
OP_CACHE_GET_NAMES = 1050
OP_CACHE_GET_OR_CREATE_WITH_CONFIGURATION = 1054
OP_CACHE_GET_CONFIGURATION = 1055
OP_CACHE_PARTITIONS = 1101
OP_QUERY_SCAN = 2000
OP_QUERY_SCAN_PAGE = 2001
OP_QUERY_SQL_FIELDS = 2004
OP_QUERY_SQL_FIELDS_PAGE = 2005
OP_GET_BINARY_TYPE = 3002
OP_NODE_ENDPOINTS = 5102

FLAG_ERROR = 1
FLAG_TOPOLOGY_CHANGED = 2
FLAG_NOTIFICATION = 4

STATUS_INVALID_NODE_STATE = 10
STATUS_NO_SUCH_CACHE = 1000
STATUS_TOO_MANY_CURSORS = 1010
STATUS_NO_SUCH_RESOURCE = 1011
STATUS_NOT_ALLOWED = 1012
STATUS_SIGN_IN_FAILED = 2000

FEATURE_NODE_ENDPOINTS = 3
"""The addresses of all nodes. Always asked for."""
FEATURE_QUERY_PARTITIONS = 7
"""Each SQL query says which partitions it is for. Asked for where it does."""

BYTE, SHORT, INT, LONG, FLOAT, DOUBLE, CHAR, BOOL, STRING, UUID, DATE = range(1, 12)
BYTES = 12
SHORTS, INTS, LONGS, FLOATS, DOUBLES, CHARS, BOOLS, STRINGS = range(13, 21)
WRAPPED, ENUM, DECIMAL, TIMESTAMP, TIME, BINARY_ENUM = 27, 28, 30, 33, 36, 38
NULL, HANDLE, OBJECT = 101, 102, 103

NAMES = {
    1: "byte", 2: "short", 3: "int", 4: "long", 5: "float", 6: "double", 7: "char", 8: "boolean", 9: "String",
    10: "UUID", 11: "Date", 12: "byte[]", 13: "short[]", 14: "int[]", 15: "long[]", 16: "float[]", 17: "double[]",
    18: "char[]", 19: "boolean[]", 20: "String[]", 21: "UUID[]", 22: "Date[]", 23: "Object[]", 24: "Collection",
    25: "Map", 26: "Map.Entry", 27: "object", 28: "enum", 29: "enum[]", 30: "BigDecimal", 31: "BigDecimal[]",
    32: "Class", 33: "Timestamp", 34: "Timestamp[]", 35: "Proxy", 36: "Time", 37: "Time[]", 38: "enum", 101: "null",
    102: "reference", 103: "object",
}  # fmt: skip


def name_of(code: int) -> str:
    """A type code in the words of Java."""
    return NAMES.get(code, "type %d" % code)


def java_hash(text: str) -> int:
    """`String.hashCode` of Java: the number of a cache or of a type, by its name."""
    units = text.encode("utf-16-le")
    value = 0
    for (unit,) in struct.iter_unpack("<H", units):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


class Reader:
    """A message that is read from front to back."""

    def __init__(self, data: Union[bytes, bytearray, memoryview], at: int = 0) -> None:
        self.data = data
        self.at = at

    def number(self, form: str) -> int:
        one = struct.Struct("<" + form)
        value = one.unpack_from(self.data, self.at)[0]
        self.at += one.size
        return int(value)

    def int8(self) -> int:
        return self.number("b")

    def int16(self) -> int:
        return self.number("h")

    def int32(self) -> int:
        return self.number("i")

    def int64(self) -> int:
        return self.number("q")

    def raw(self, count: int) -> bytes:
        found = bytes(self.data[self.at : self.at + count])
        self.at += count
        return found

    def text(self) -> Optional[str]:
        """A string with its type code; None for a null."""
        if self.int8() == NULL:
            return None
        return self.raw(self.int32()).decode("utf-8", "replace")

    def byte_array(self) -> bytes:
        """Bytes with their type code; none for a null."""
        return b"" if self.int8() == NULL else self.raw(self.int32())

    def int32s(self) -> List[int]:
        count = self.int32()
        found = list(struct.unpack_from("<%di" % count, self.data, self.at))
        self.at += 4 * count
        return found


def text_bytes(text: Optional[str]) -> bytes:
    """A string with its type code."""
    if text is None:
        return bytes([NULL])
    content = text.encode("utf-8")
    return struct.pack("<bi", STRING, len(content)) + content


def byte_array(content: bytes) -> bytes:
    """Bytes with their type code."""
    return struct.pack("<bi", BYTES, len(content)) + content
