"""Which SQL queries each task may ask for its own partitions alone."""

from __future__ import annotations

import pytest

from yardmaster_runner.data.ignite_reader.divisible import Source, source_of


@pytest.mark.parametrize(
    ("text", "schema", "table"),
    [
        ("SELECT NAME, WEIGHT FROM KITTENS WHERE ID > ?", "PUBLIC", "KITTENS"),
        ("select k.* from home.kittens as k where k.name = 'ORDER BY' ;", "HOME", "KITTENS"),
        ('SELECT CAST(P AS DOUBLE) X FROM "one-n"."Num" WHERE (A IN (1, 2)) AND B <> 3', "one-n", "Num"),
        ("SELECT COALESCE(A, 0) FROM B C", "PUBLIC", "B"),
    ],
)
def test_rows_of_one_table_stand_alone(text: str, schema: str, table: str) -> None:
    assert source_of(text, "public") == Source(schema, table, True)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM A", "SELECT SUM (X) FROM A", "SELECT X FROM A, B", "SELECT X FROM A JOIN B ON A.I = B.I",
        "SELECT X FROM A ORDER BY X", "SELECT X FROM A LIMIT 3", "SELECT X FROM A GROUP BY X",
        "SELECT DISTINCT X FROM A",
        "SELECT X FROM A WHERE X = (SELECT MAX(X) FROM B)", "SELECT X FROM A UNION SELECT X FROM B", "DELETE FROM A",
        "SELECT X FROM A /* B */", "SELECT X FROM A -- B", "SELECT RAND() FROM A", "SELECT X FROM (SELECT X FROM A)",
        "SELECT 1", "SELECT TOP 3 X FROM A", "SELECT X FROM A; SELECT X FROM A", "SELECT ROWNUM FROM A",
        "SELECT X FROM A FETCH FIRST 3 ROWS ONLY", "SELECT ROW_NUMBER() OVER (ORDER BY X) FROM A",
        "SELECT X FROM A B C",
        "SELECT X FROM A.B.C", "WITH A AS (SELECT X FROM B) SELECT X FROM A", "SELECT MINE(X) FROM A",
        "SELECT 'A FROM B",
    ],
)  # fmt: skip
def test_what_depends_on_other_rows_or_is_not_understood_is_read_whole(text: str) -> None:
    found = source_of(text, "PUBLIC")
    assert found is None or not found.is_divisible
