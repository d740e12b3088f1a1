"""What a database is made of, as sets of lines that can be compared: tables, columns, indexes, constraints, triggers.

Not compared: in which order a table has its columns.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from django.db import connection

_POSTGRES = {
    "column": """
        SELECT c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
            || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END || ' identity=' || a.attidentity::text
            || coalesce(' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), '')
            || ' collation=' || coalesce(a.attcollation::regcollation::text, '')
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND a.attnum > 0 AND NOT a.attisdropped""",
    "index": "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "invalid index": """
        SELECT indexrelid::regclass::text FROM pg_index WHERE NOT (indisvalid AND indisready)""",
    "constraint": """
        SELECT conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid)
            || CASE WHEN convalidated THEN '' ELSE ' NOT VALID' END
        FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype <> 'n'""",
    "trigger": "SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal",
    "function": "SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace",
    "sequence": """
        SELECT sequencename || ' ' || data_type || ' ' || min_value || ' ' || max_value || ' ' || increment_by
        FROM pg_sequences WHERE schemaname = 'public'""",
    "extension": "SELECT extname FROM pg_extension",
    "other relation": """
        SELECT relkind::text || ' ' || relname FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind NOT IN ('r', 'i', 'S')""",
}


def schema_of_default() -> set[str]:
    """Of the `default` database: one line for each thing in it."""
    return set(_of_postgres() if connection.vendor == "postgresql" else _of_sqlite())


def rows_of_default() -> dict[str, int]:
    """How many rows each table has that has some, but that of the applied migrations."""
    with connection.cursor() as cursor:
        found = {}
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT count(*) FROM "{table}"')
            found[table] = cursor.fetchone()[0]
    return {table: count for table, count in found.items() if count and table != "django_migrations"}


def _of_postgres() -> Iterator[str]:
    with connection.cursor() as cursor:
        for kind, statement in _POSTGRES.items():
            cursor.execute(statement)
            yield from (f"{kind}: {row[0]}" for row in cursor.fetchall())


def _of_sqlite() -> Iterator[str]:
    """The text of each statement; of a table each of its parts, since SQLite has checks nowhere else."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_stat%'")
        for kind, name, table, sql in cursor.fetchall():
            if kind != "table":
                yield f"{kind}: {table} {_plain(sql) if sql else 'of a constraint'}"
                continue
            parts = Counter(_parts(sql[sql.index("(") + 1 : sql.rindex(")")]))
            yield from (f"{name}: {count} times {part}" for part, count in parts.items())


def _parts(body: str) -> Iterator[str]:
    """What stands between the commas outside of brackets and of quotes."""
    depth, quote, part = 0, "", ""
    for one in body:
        if quote:
            quote = "" if one == quote else quote
        elif one in "'\"":
            quote = one
        depth += 0 if quote else {"(": 1, ")": -1}.get(one, 0)
        if one == "," and not depth and not quote:
            yield _plain(part)
            part = ""
        else:
            part += one
    yield _plain(part)


def _plain(sql: str) -> str:
    return re.sub(r"\s+", " ", sql).strip()
