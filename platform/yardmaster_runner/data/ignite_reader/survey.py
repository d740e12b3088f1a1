"""What a cluster has: its caches with their partitions, rows and fields, its SQL tables, and a few rows of each.

For people who look, not for scripts that read. Needs the standard library alone. All lists are bounded; what one cache
does not tell is that cache's `problem`, and the others are shown.
"""

from __future__ import annotations

import struct
from typing import Any, Callable, Collection, Dict, List, Optional, Tuple

from yardmaster_runner.data.ignite_reader import wire
from yardmaster_runner.data.ignite_reader.binary_types import BinaryTypes
from yardmaster_runner.data.ignite_reader.cluster import Cluster, scan_request, translated
from yardmaster_runner.data.ignite_reader.errors import IgniteDataError, ServerRefusal
from yardmaster_runner.data.ignite_reader.query import Query
from yardmaster_runner.data.ignite_reader.shown_values import rows_shown, table_of, values

MOST_CACHES = 100
MOST_COLUMNS = 64
ROWS = 5
"""Rows that are shown of each."""
LONGEST_NAME = 200
LONGEST_WORDS = 500
"""Of what a server says in place of an answer."""
TABLES = "SELECT SCHEMA_NAME, TABLE_NAME, CACHE_NAME FROM SYS.TABLES ORDER BY SCHEMA_NAME, TABLE_NAME"
COLUMNS = (
    "SELECT SCHEMA_NAME, TABLE_NAME, COLUMN_NAME, TYPE, PK FROM SYS.TABLE_COLUMNS "
    "WHERE SCHEMA_NAME = ? AND TABLE_NAME = ?"
)
HIDDEN = ("_KEY", "_VAL")
"""Columns that every table has beside its own."""
Ask = Callable[[int, bytes], wire.Reader]
Shown = Tuple[List[Dict[str, Any]], List[List[Optional[str]]]]
"""Columns, and a few rows of their values."""


class Survey:
    """One look at a cluster. `ask` asks it; raises what that raises of the whole cluster (`IgniteUnavailable`, …).
    `passed_over`: names of caches that are not for those who look."""

    def __init__(self, cluster: Cluster, ask: Ask, passed_over: Collection[str] = ()) -> None:
        self._cluster = cluster
        self._passed_over = passed_over
        self._ask = ask
        self._types = BinaryTypes(ask)

    def found(self) -> Dict[str, Any]:
        """`{"caches": [{"name", "tables", "partitions", "rows", "columns", "preview", "problem"}], "count", "notes"}`.
        `count` is that of all caches; those beyond the first `MOST_CACHES` are not looked at."""
        notes: List[str] = []
        every = self._names()
        names = [one for one in every if one not in self._passed_over]
        if len(names) < len(every):
            notes.append("The portal keeps checkpoints in this cluster. Its own tables are not shown.")
        tables = self._tables(notes)
        caches = [self._cache(name, tables.get(name, [])) for name in names[:MOST_CACHES]]
        return {"caches": caches, "count": len(names), "notes": notes}

    def _names(self) -> List[str]:
        answer = self._ask(wire.OP_CACHE_GET_NAMES, b"")
        return sorted((answer.text() or "") for _ in range(answer.int32()))

    def _tables(self, notes: List[str]) -> Dict[str, List[Tuple[str, str]]]:
        """Schema and name of the tables of each cache. A cluster without SQL has none."""
        found: Dict[str, List[Tuple[str, str]]] = {}
        try:
            rows = self._selected(Query(TABLES, schema="SYS"), 10 * MOST_CACHES)
        except ServerRefusal as error:
            notes.append("SQL tables cannot be listed: %s" % str(error)[:LONGEST_WORDS])
            return found
        for schema, table, cache in rows:
            found.setdefault(cache or "", []).append((schema or "", table or ""))
        return found

    def _cache(self, name: str, tables: List[Tuple[str, str]]) -> Dict[str, Any]:
        one: Dict[str, Any] = {
            "name": name[:LONGEST_NAME], "tables": [".".join(table)[:LONGEST_NAME] for table in tables[:MOST_COLUMNS]],
            "partitions": None, "rows": None, "columns": [], "preview": [], "problem": "",
        }  # fmt: skip
        number = wire.java_hash(name)
        try:
            one["rows"] = self._ask(wire.OP_CACHE_GET_SIZE, struct.pack("<ibi", number, 0, 0)).int64()
            one["partitions"] = self._cluster.partitions(number)
            one["columns"], one["preview"] = self._of_table(*tables[0]) if tables else self._of_cache(number)
        except ServerRefusal as error:
            one["problem"] = str(translated(error, "cache %r" % name))[:LONGEST_WORDS]
        except IgniteDataError as error:
            one["problem"] = str(error)[:LONGEST_WORDS]
        return one

    def _of_table(self, schema: str, table: str) -> Shown:
        said = self._selected(Query(COLUMNS, (schema, table), schema="SYS"), MOST_COLUMNS + len(HIDDEN))
        columns: List[Dict[str, Any]] = [
            {"name": str(name)[:LONGEST_NAME], "type": _java(str(kind)), "is_key": key == "true"}
            for _, _, name, kind, key in said
            if name not in HIDDEN
        ][:MOST_COLUMNS]
        text = "SELECT %s FROM %s.%s LIMIT %d"
        wanted = ", ".join(_quoted(one["name"]) for one in columns) or "*"
        query = Query(text % (wanted, _quoted(schema), _quoted(table), ROWS), schema=schema)
        page, at, names, count = self._page(query, ROWS)
        rows = rows_shown(page, at, names, count, self._types)
        shown = [{path: value for path, _, value in row} for row in rows]
        wanted_names = [str(one["name"]) for one in columns]
        return columns, [[row.get(name) for name in wanted_names] for row in shown]

    def _of_cache(self, number: int) -> Shown:
        answer = self._ask(wire.OP_QUERY_SCAN, scan_request(number, -1, ROWS))
        cursor, count = answer.int64(), answer.int32()
        page = memoryview(answer.data)
        if page[len(page) - 1]:
            self._close(cursor)
        return table_of(rows_shown(page, answer.at, ["key", "val"], min(count, ROWS), self._types))

    def _selected(self, query: Query, most: int) -> List[List[Optional[str]]]:
        """Plain values of at most so many rows."""
        page, at, names, count = self._page(query, most)
        return values(page, at, len(names), count)

    def _page(self, query: Query, most: int) -> Tuple[memoryview, int, List[str], int]:
        answer = self._ask(wire.OP_QUERY_SQL_FIELDS, query.request(most, most))
        cursor = answer.int64()
        names = [answer.text() or "" for _ in range(min(answer.int32(), 10 * MOST_COLUMNS))]
        page, count = memoryview(answer.data), answer.int32()
        if page[len(page) - 1]:
            self._close(cursor)
        return page, answer.at, names, min(count, most)

    def _close(self, cursor: int) -> None:
        self._ask(wire.OP_RESOURCE_CLOSE, struct.pack("<q", cursor))


def _quoted(name: str) -> str:
    return '"%s"' % name.replace('"', '""')


def _java(name: str) -> str:
    """A class of Java without its package."""
    return name.rpartition(".")[2][:LONGEST_NAME]
