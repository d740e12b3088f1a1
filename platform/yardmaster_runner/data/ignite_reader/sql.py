"""Rows of an SQL query: pages of them over one connection, and what their columns are.

A query is begun again only while none of its rows was handed out: they come in no order that would let it resume.
"""

from __future__ import annotations

import struct
import time
from typing import Dict, Iterator, List, Tuple

from yardmaster_runner.data.ignite_reader import wire
from yardmaster_runner.data.ignite_reader.binary_types import DataObject
from yardmaster_runner.data.ignite_reader.cluster import Cluster
from yardmaster_runner.data.ignite_reader.connection import Connection
from yardmaster_runner.data.ignite_reader.decoding import Decoder
from yardmaster_runner.data.ignite_reader.divisible import Source
from yardmaster_runner.data.ignite_reader.errors import (
    ConnectionLost,
    IgniteCacheError,
    IgniteDataError,
    IgniteQueryError,
    IgniteQueryUnavailable,
    IgniteSignInError,
    IgniteUnavailable,
    ServerRefusal,
)
from yardmaster_runner.data.ignite_reader.query import Query
from yardmaster_runner.data.ignite_reader.rows import places
from yardmaster_runner.data.ignite_reader.scan import Found

MOST_TRIES = 5
CACHE_OF = "SELECT CACHE_NAME FROM SYS.TABLES WHERE SCHEMA_NAME = ? AND TABLE_NAME = ?"


def sampled(cluster: Cluster, query: Query, rows: int) -> Dict[str, List[DataObject]]:
    """The values of the first rows by the name of their column. Raises `IgniteQueryError`, `IgniteCacheError`."""
    try:
        answer = cluster.ask(wire.OP_QUERY_SQL_FIELDS, query.request(rows, rows))
    except ServerRefusal as error:
        raise _refused(error) from error
    cursor = answer.int64()
    names = _names(answer)
    page = memoryview(answer.data)
    count = answer.int32()
    if page[len(page) - 1]:
        cluster.ask(wire.OP_RESOURCE_CLOSE, struct.pack("<q", cursor))
    if not count:
        raise IgniteCacheError("The query finds no rows, so the types of its columns are not known: %s" % query.text)
    columns, _ = places(page, answer.at, count, len(names))
    return {name: [DataObject(page, at) for at in some.tolist()] for name, some in zip(names, columns)}


def partitions_of(cluster: Cluster, table: Source) -> Tuple[int, int, str]:
    """The cache of a table and how many partitions it has; 0 and why, where rows cannot be asked for by partitions."""
    query = Query(CACHE_OF, (table.schema, table.table), schema="SYS")
    try:
        answer = cluster.ask(wire.OP_QUERY_SQL_FIELDS, query.request(1, 1))
        answer.int64()
        _names(answer)
        cache = answer.text() if answer.int32() else None
        if cache is None:
            return 0, 0, "%s.%s is no table" % (table.schema, table.table)
        if not cluster.is_divided(wire.java_hash(cache)):
            return 0, 0, "the rows of %s.%s are on every node" % (table.schema, table.table)
        number = wire.java_hash(cache)
        return number, cluster.partitions(number), ""
    except ServerRefusal as error:
        return 0, 0, str(error)


def rows_of(cluster: Cluster, query: Query, decoder: Decoder) -> Iterator[Found]:
    """All rows. Raises `IgniteQueryUnavailable` where the connection is lost after some were handed out."""
    tries, is_begun = 0, False
    while True:
        connection = cluster.connect()
        try:
            for found in _pages(connection, query, decoder):
                is_begun = True
                yield found
            return
        except ConnectionLost as error:
            tries += 1
            cluster.lost(connection)
            if is_begun:
                message = (
                    "%s, within an SQL query, which cannot resume where it was interrupted. Start again, or read the "
                )
                message += "table's cache instead, which resumes by itself: ignite('SQL_PUBLIC_…')."
                raise IgniteQueryUnavailable(message % error) from error
            if tries >= MOST_TRIES:
                raise IgniteUnavailable("%s. %d attempts in a row failed." % (error, tries)) from error
            time.sleep(0.1 * 2**tries)
        except ServerRefusal as error:
            raise _refused(error) from error
        finally:
            connection.close()


def _pages(connection: Connection, query: Query, decoder: Decoder) -> Iterator[Found]:
    answer = connection.ask(wire.OP_QUERY_SQL_FIELDS, query.request()).reader()
    cursor = struct.pack("<q", answer.int64())
    names = _names(answer)
    while True:
        page, count = memoryview(answer.data), answer.int32()
        has_more = bool(page[len(page) - 1])
        asked = connection.send(wire.OP_QUERY_SQL_FIELDS_PAGE, cursor) if has_more else 0
        columns, _ = places(page, answer.at, count, len(names))
        if count:
            yield Found(decoder.columns(page, dict(zip(names, columns))), count)
        if not has_more:
            return
        answer = connection.receive(asked).reader()


def _names(answer: wire.Reader) -> List[str]:
    return [answer.text() or "" for _ in range(answer.int32())]


def _refused(error: ServerRefusal) -> IgniteDataError:
    if error.status == wire.STATUS_NOT_ALLOWED:
        return IgniteSignInError("The user may not run this query: %s" % error)
    return IgniteQueryError("Ignite refuses the query: %s" % error)
