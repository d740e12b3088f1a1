"""What a script reads of Ignite, opened: a cache or a query, its layout, this task's partitions, and passes over it."""

from __future__ import annotations

import difflib
import struct
from dataclasses import dataclass, replace
from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from yardmaster_runner.data.ignite_reader import parts, wire
from yardmaster_runner.data.ignite_reader.access import Access
from yardmaster_runner.data.ignite_reader.agreed import agreed_parts
from yardmaster_runner.data.ignite_reader.binary_types import BinaryTypes, DataObject
from yardmaster_runner.data.ignite_reader.cluster import Cluster, scan_request, translated
from yardmaster_runner.data.ignite_reader.columns import Columns, cut, joined
from yardmaster_runner.data.ignite_reader.decoding import Decoder
from yardmaster_runner.data.ignite_reader.divisible import source_of
from yardmaster_runner.data.ignite_reader.errors import IgniteCacheError, IgniteQueryError, ServerRefusal
from yardmaster_runner.data.ignite_reader.layout import Tree, Wishes, layout_of
from yardmaster_runner.data.ignite_reader.query import Query
from yardmaster_runner.data.ignite_reader.rows import places
from yardmaster_runner.data.ignite_reader.scan import Found, PartitionReader, Scan, Table
from yardmaster_runner.data.ignite_reader.sql import partitions_of, rows_of, sampled
from yardmaster_runner.data.inputs import Share

FEW, MANY = 4, 512
"""Rows that are looked at to find the layout: first a few, and more where some fields are null in all of them."""
PAGE_BYTES = 4 << 20
"""Of a page, about: longer ones are no faster, and a server makes each of them in its memory, several times over."""
LARGEST_PAGE_ROWS = 8192
FEW_ROWS = 32
"""Rows a page below which rows are long: batches of them are made of pages here, as TensorFlow would copy once more."""
AHEAD_BYTES = 128 << 20
"""Of decoded pages that wait for the script."""
LISTED = 10


@dataclass(frozen=True)
class Selection:
    """Which rows: partitions by name or by share, how many rows a page has, and connections at once."""

    partitions: Union[str, Sequence[int], None] = None
    share: Share = None
    is_local: bool = False
    is_partitioned: Optional[bool] = None
    """Of a query: whether each task reads the rows of its partitions. None: where the query allows it."""
    page_rows: Optional[int] = None
    connections: int = 4


class CacheSource:
    """The rows of a cache, `{"key": …, "val": …}`. Opening it asks the cluster; each iteration is a pass of its own.
    Raises `IgniteDataError`, `IgniteUnavailable`."""

    def __init__(
        self, access: Access, cache: str, wishes: Wishes, selection: Selection, environment: Mapping[str, str]
    ) -> None:
        self._cluster = Cluster(access)
        self._types = BinaryTypes(self._cluster.ask)
        self._selection = selection
        where = "cache %r" % cache
        number = wire.java_hash(cache)
        try:
            self.layout, self.row_bytes = self._looked_at(number, where, wishes)
            self.page_rows = selection.page_rows or fitting_rows(self.row_bytes)
            self._table = Table(number, where, self.page_rows, selection.is_local)
            held = self._cluster.held_by(number, self._cluster.home()) if selection.is_local else None
            count = self._cluster.partitions(number)
            self.partitions = parts.chosen(
                count,
                selection.partitions,
                selection.share,
                environment,
                held,
                lambda place: agreed_parts(self._cluster, number, count, place),
            )
        except ServerRefusal as error:
            raise self._explained(error, cache, where) from error
        self._decoder = Decoder(self.layout, self._types, where)
        page_bytes = max(1, self.row_bytes * self.page_rows)
        self._ahead = max(2, min(4 * selection.connections, AHEAD_BYTES // page_bytes))

    def found(self) -> Iterator[Found]:
        """One pass: rows in pages, each row once."""
        yield from Scan(self.partitions, self._reader, self._selection.connections, self._ahead)

    def _reader(self) -> PartitionReader:
        return PartitionReader(self._cluster, self._table, self._decoder)

    def _looked_at(self, cache: int, where: str, wishes: Wishes) -> Tuple[Tree, int]:
        """The layout, and the mean length of a row in bytes."""
        for most in (FEW, MANY):
            rows, length = self._first_rows(cache, most)
            if not rows["key"]:
                message = "The %s has no rows, so the types of its fields are not known."
                raise IgniteCacheError(message % where)
            try:
                return layout_of(rows, self._types, wishes, "The " + where), length // len(rows["key"])
            except IgniteCacheError:
                if most == MANY or len(rows["key"]) < most:
                    raise
        raise AssertionError("not reached")

    def _first_rows(self, cache: int, most: int) -> Tuple[Dict[str, List[DataObject]], int]:
        answer = self._cluster.ask(wire.OP_QUERY_SCAN, scan_request(cache, -1, most))
        cursor, count = answer.int64(), answer.int32()
        page = memoryview(answer.data)
        if page[len(page) - 1]:
            self._cluster.ask(wire.OP_RESOURCE_CLOSE, struct.pack("<q", cursor))
        (keys, values), _ = places(page, answer.at, count)
        return {
            "key": [DataObject(page, at) for at in keys.tolist()],
            "val": [DataObject(page, at) for at in values.tolist()],
        }, len(page)

    def _explained(self, error: ServerRefusal, cache: str, where: str) -> Exception:
        said = translated(error, where)
        if not isinstance(said, IgniteCacheError):
            return said
        answer = self._cluster.ask(wire.OP_CACHE_GET_NAMES)
        names = sorted(answer.text() or "" for _ in range(answer.int32()))
        near = [one for one in names if one.lower().endswith(cache.lower())]
        near += difflib.get_close_matches(cache, names, LISTED)
        shown = list(dict.fromkeys(near)) or names[:LISTED]
        message = "There is no %s. %s%s. The cache of a table is called SQL_PUBLIC_ and the table's name in capitals."
        head = "The nearest names: " if near else "There are: "
        return IgniteCacheError(message % (where, head, ", ".join(map(repr, shown)) or "none"))


class QuerySource:
    """The rows of an SQL query, `{column: …}`; otherwise like `CacheSource`."""

    def __init__(
        self,
        access: Access,
        query: Query,
        wishes: Wishes,
        selection: Selection,
        environment: Optional[Mapping[str, str]] = None,
    ) -> None:
        self._cluster = Cluster(access)
        self._types = BinaryTypes(self._cluster.ask)
        rows = sampled(self._cluster, query, FEW)
        try:
            self.layout = layout_of(rows, self._types, wishes, "The query")
        except IgniteCacheError:
            rows = sampled(self._cluster, query, MANY)
            self.layout = layout_of(rows, self._types, wishes, "The query")
        first = next(iter(rows.values()))
        self.row_bytes = len(first[0].data) // len(first)
        self.page_rows = selection.page_rows or fitting_rows(self.row_bytes)
        self._query = replace(query, page_rows=self.page_rows)
        self.partitions: List[int] = []
        """Those whose rows the query asks for; none: it asks for all rows."""
        self._readers = self._cluster
        if selection.is_partitioned is not False:
            self._divide(access, selection, environment or {})
        self._decoder = Decoder(self.layout, self._types, "The query")

    def found(self) -> Iterator[Found]:
        """One pass."""
        yield from rows_of(self._readers, self._query, self._decoder)

    def _divide(self, access: Access, selection: Selection, environment: Mapping[str, str]) -> None:
        """What decides is the same in every task: the query, what the cluster says of its table, and the division."""
        table = source_of(self._query.text, self._query.schema)
        if table is None or not (table.is_divisible or selection.is_partitioned):
            cache, count, lack = 0, 0, "no table follows its FROM"
        else:
            cache, count, lack = partitions_of(self._cluster, table)
        readers = Cluster(replace(access, features=access.features | 1 << wire.FEATURE_QUERY_PARTITIONS))
        if count and not readers.has(wire.FEATURE_QUERY_PARTITIONS):
            count, lack = 0, "the server is too old: it needs Ignite 2.12"
        if not count:
            readers.close()
            if selection.is_partitioned:
                raise IgniteQueryError("The query cannot be divided by partitions: %s. Leave out partitioned." % lack)
            return
        mine = parts.chosen(
            count, selection.partitions, selection.share, environment,
            agreed=lambda place: agreed_parts(self._cluster, cache, count, place),
        )  # fmt: skip
        if len(mine) == count:
            readers.close()
            return
        self.partitions, self._readers = sorted(mine), readers
        self._query = replace(self._query, partitions=tuple(self.partitions))


Source = Union[CacheSource, QuerySource]


def fitting_rows(row_bytes: int) -> int:
    """Rows a page for rows of this length."""
    return max(1, min(LARGEST_PAGE_ROWS, PAGE_BYTES // max(1, row_bytes)))


def chunks(source: Source, at_least: int) -> Iterator[Found]:
    """The pages of a pass, small ones joined until they have so many rows together."""
    waiting: List[Found] = []
    for one in source.found():
        waiting.append(one)
        if sum(some.rows for some in waiting) >= at_least:
            yield merged(waiting)
            waiting = []
    if waiting:
        yield merged(waiting)


def batches(source: Source, size: int, *, drop_remainder: bool = False) -> Iterator[Found]:
    """The rows of a pass, so many at a time; at the end what is left."""
    waiting: List[Found] = []
    count = 0
    for one in source.found():
        waiting.append(one)
        count += one.rows
        if count < size:
            continue
        whole = merged(waiting)
        for begin in range(0, count - size + 1, size):
            yield _cut(whole, begin, begin + size)
        left = count % size
        waiting = [_cut(whole, count - left, count)] if left else []
        count = left
    if count and not drop_remainder:
        yield merged(waiting)


def merged(some: Sequence[Found]) -> Found:
    """The rows of all, in order."""
    if len(some) == 1:
        return some[0]
    columns: Columns = [joined(one) for one in zip(*(one.columns for one in some))]
    return Found(columns, sum(one.rows for one in some))


def _cut(whole: Found, begin: int, end: int) -> Found:
    return Found([cut(one, begin, end) for one in whole.columns], end - begin)
