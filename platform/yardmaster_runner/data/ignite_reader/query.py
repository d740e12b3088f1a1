"""An SQL query as bytes. Needs the standard library alone."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Optional, Tuple

from yardmaster_runner.data.ignite_reader import wire
from yardmaster_runner.data.ignite_reader.errors import IgniteQueryError

SELECT = 1


@dataclass(frozen=True)
class Query:
    """A SELECT, with a value for each of its question marks: numbers, texts, bytes, booleans or None."""

    text: str
    arguments: Tuple[Any, ...] = ()
    schema: str = "PUBLIC"
    page_rows: int = 1024
    partitions: Tuple[int, ...] = ()
    """Only rows of these, in order; none: all. The connection must have `FEATURE_QUERY_PARTITIONS`."""

    def request(self, most_rows: int = -1, page_rows: Optional[int] = None) -> bytes:
        arguments = b"".join(map(_argument, self.arguments))
        return b"".join((
            struct.pack("<ib", 0, 1), wire.text_bytes(self.schema),
            struct.pack("<ii", page_rows or self.page_rows, most_rows), wire.text_bytes(self.text),
            struct.pack("<i", len(self.arguments)), arguments,
            # Only SELECT; no distributed joins, not local, not only replicated, no fixed order, not collocated; lazy:
            # rows are sent as they are found. No limit of time. With the names of the columns.
            struct.pack("<b??????q?", SELECT, False, False, False, False, False, True, 0, True),
            self._divided(),
        ))  # fmt: skip

    def _divided(self) -> bytes:
        """The partitions, and how many updates go together."""
        count = len(self.partitions)
        return struct.pack("<i%dii" % count, count, *self.partitions, 1) if count else b""


def _argument(value: Any) -> bytes:
    if value is None:
        return bytes([wire.NULL])
    if isinstance(value, bool):
        return struct.pack("<b?", wire.BOOL, value)
    if isinstance(value, int):
        return struct.pack("<bq", wire.LONG, value)
    if isinstance(value, float):
        return struct.pack("<bd", wire.DOUBLE, value)
    if isinstance(value, str):
        return wire.text_bytes(value)
    if isinstance(value, (bytes, bytearray)):
        return wire.byte_array(bytes(value))
    raise IgniteQueryError("arguments has a %s: expected numbers, texts, bytes or None" % type(value).__name__)
