"""All rows of a cache or of an SQL query, page by page over one connection, for a program that copies them: no NumPy,
no threads. Not here: what a row becomes (`example_rows`), and reading for a training (`source`)."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Callable, Iterator, List, Sequence, Tuple

from yardmaster_runner.data.ignite_reader import wire
from yardmaster_runner.data.ignite_reader.cluster import Cluster, scan_request, translated
from yardmaster_runner.data.ignite_reader.connection import Answer, Connection
from yardmaster_runner.data.ignite_reader.errors import IgniteQueryError, IgniteSignInError, ServerRefusal
from yardmaster_runner.data.ignite_reader.query import Query

PAGE_BYTES = 2 << 20
"""Of a page, about."""
MOST_ROWS = 2_048
"""Of a page."""
FEW = 4
"""Rows by which the length of others is judged."""
Page = Tuple[memoryview, int, Sequence[str], int]
"""An answer, where its rows begin, the names of the columns, and how many rows there are."""
Note = Callable[[int], None]
"""Gets the bytes of each answer; may raise."""


def cache_pages(cluster: Cluster, cache: str, note: Note) -> Iterator[Page]:
    """The pages of a cache with rows `key, val`, each good until the next one. Raises `IgniteDataError`,
    `IgniteUnavailable`, and `ConnectionLost`: then it is to be begun again, as no row would be known again."""
    number, names = wire.java_hash(cache), ("key", "val")
    connection = cluster.connect()
    try:
        few = connection.ask(wire.OP_QUERY_SCAN, scan_request(number, -1, FEW))
        rows = _fitting_rows(few, 8, connection)
        answer = connection.ask(wire.OP_QUERY_SCAN, scan_request(number, -1, rows))
        yield from _pages(connection, wire.OP_QUERY_SCAN_PAGE, answer, note, lambda _: names)
    except ServerRefusal as error:
        said = translated(error, "cache %r" % cache)
        raise IgniteQueryError("Ignite refuses to read it: %s" % error) if said is error else said from error
    finally:
        connection.close()


def query_pages(cluster: Cluster, query: Query, note: Note) -> Iterator[Page]:
    """The pages of a query; otherwise like `cache_pages`."""
    connection = cluster.connect()
    try:
        few = connection.ask(wire.OP_QUERY_SQL_FIELDS, query.request(FEW, FEW))
        reader = few.reader()
        reader.int64()
        _names(reader)
        rows = _fitting_rows(few, reader.at, connection)
        answer = connection.ask(wire.OP_QUERY_SQL_FIELDS, replace(query, page_rows=rows).request())
        yield from _pages(connection, wire.OP_QUERY_SQL_FIELDS_PAGE, answer, note, _names)
    except ServerRefusal as error:
        if error.status == wire.STATUS_NOT_ALLOWED:
            raise IgniteSignInError("The user may not run this query: %s" % error) from error
        raise IgniteQueryError("Ignite refuses the query: %s" % error) from error
    finally:
        connection.close()


def _pages(
    connection: Connection, operation: int, answer: Answer, note: Note, names_of: Callable[[wire.Reader], Sequence[str]]
) -> Iterator[Page]:
    reader = answer.reader()
    cursor = struct.pack("<q", reader.int64())
    names = names_of(reader)
    while True:
        page, rows = memoryview(reader.data), reader.int32()
        note(len(page))
        has_more = bool(page[len(page) - 1])
        yield page, reader.at, names, rows
        if not has_more:
            return
        reader = connection.ask(operation, cursor).reader()


def _fitting_rows(few: Answer, at: int, connection: Connection) -> int:
    """Rows of a page, by a few of them; their cursor is closed."""
    page = few.body
    count = int(struct.unpack_from("<i", page, at)[0])
    row_bytes = len(page) // max(1, count)
    if page[len(page) - 1]:
        connection.ask(wire.OP_RESOURCE_CLOSE, bytes(page[:8]))
    return max(1, min(MOST_ROWS, PAGE_BYTES // max(1, row_bytes)))


def _names(reader: wire.Reader) -> List[str]:
    return [reader.text() or "" for _ in range(reader.int32())]
