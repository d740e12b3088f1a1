"""What a hostile server may send to who looks at it: nothing but the known errors, and bounded texts."""

from __future__ import annotations

import json
import random
import struct
from typing import Any

import pytest

from yardmaster_runner.data.ignite_reader import wire
from yardmaster_runner.data.ignite_reader.binary_types import BinaryTypes
from yardmaster_runner.data.ignite_reader.errors import IgniteDataError, ServerRefusal
from yardmaster_runner.data.ignite_reader.shown_values import LONGEST, MOST_FIELDS, rows_shown, table_of, values
from yardmaster_runner.data.ignite_reader.survey import LONGEST_WORDS, Survey

EXPECTED = (IgniteDataError, ValueError, IndexError, struct.error, OverflowError)


def no_types() -> BinaryTypes:
    def ask(operation: int, body: bytes) -> wire.Reader:
        return wire.Reader(b"\x00")

    return BinaryTypes(ask)


def shown(*parts: bytes) -> list[Any]:
    page = memoryview(b"".join(parts))
    return [value for _, _, value in rows_shown(page, 0, [str(one) for one in range(len(parts))], 1, no_types())[0]]


def test_values_are_texts_for_people() -> None:
    assert shown(
        struct.pack("<bi", wire.INT, -7), struct.pack("<bd", wire.DOUBLE, 0.1), struct.pack("<b?", wire.BOOL, True),
        wire.text_bytes("warm"), bytes([wire.NULL]), struct.pack("<bq", wire.DATE, 86_400_000),
        struct.pack("<bi5f", wire.FLOATS, 5, 1, 2, 3, 4, 5), wire.text_bytes("x" * 1_000),
    ) == [
        "-7", "0.1", "true", "warm", None, "1970-01-02 00:00:00 UTC", "5: [1, 2, 3, 4, …]", "x" * 79 + "…",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "page",
    [
        b"", bytes([wire.STRING]), struct.pack("<bi", wire.STRING, -1), struct.pack("<bi", wire.INTS, -100),
        struct.pack("<bi", wire.STRINGS, 1 << 30), bytes([23]) + bytes(20), struct.pack("<bi", wire.WRAPPED, 1 << 30),
        bytes([wire.OBJECT]) * 40,
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_one_of_the_known_errors(page: bytes) -> None:
    with pytest.raises(EXPECTED):
        rows_shown(memoryview(page), 0, ["val"], 5, no_types())


def test_random_pages_raise_nothing_else_and_stay_small() -> None:
    random.seed(7)
    codes = [*range(1, 42), 101, 102, 103]
    for _ in range(3_000):
        size = random.randrange(1, 200)
        page = bytes(random.choice(codes) if random.random() < 0.3 else random.randrange(256) for _ in range(size))
        for read in (
            lambda: rows_shown(memoryview(page), 0, ["key", "val"], 5, no_types()),  # noqa: B023
            lambda: values(memoryview(page), 0, 3, 5),  # noqa: B023
        ):
            try:
                found = read()
            except EXPECTED:
                continue
            assert len(json.dumps(found)) < 1 << 20


def test_a_row_has_a_bound_of_fields() -> None:
    row = [(f"val.{one}", "int", "1") for one in range(1_000)]
    columns, rows = table_of([row])
    assert len(columns) == len(rows[0]) == MOST_FIELDS
    assert all(len(one or "") <= LONGEST for one in rows[0])


def test_one_cache_that_cannot_be_read_does_not_hide_the_others() -> None:
    class Cluster:
        def partitions(self, number: int) -> int:
            if number == wire.java_hash("bad"):
                raise IgniteDataError("it is closed")
            return 8

    def ask(operation: int, body: bytes) -> wire.Reader:
        if operation == wire.OP_CACHE_GET_NAMES:
            return wire.Reader(struct.pack("<i", 2) + wire.text_bytes("bad") + wire.text_bytes("good"))
        if operation == wire.OP_CACHE_GET_SIZE:
            return wire.Reader(struct.pack("<q", 1))
        if operation == wire.OP_QUERY_SCAN:
            row = struct.pack("<bi", wire.INT, 1) + wire.text_bytes("cat")
            return wire.Reader(struct.pack("<qi", 0, 1) + row + b"\x00")
        return wire.Reader(struct.pack("<qiii", 0, 0, 0, 0) + b"\x00")

    hidden = Survey(Cluster(), ask, {"bad"}).found()  # type: ignore[arg-type]
    assert ([one["name"] for one in hidden["caches"]], hidden["count"]) == (["good"], 1)
    assert "own tables are not shown" in hidden["notes"][-1]
    found = Survey(Cluster(), ask).found()  # type: ignore[arg-type]
    assert [(one["name"], one["problem"], one["preview"]) for one in found["caches"]] == [
        ("bad", "it is closed", []), ("good", "", [["1", "cat"]]),
    ]  # fmt: skip


def test_what_a_server_says_in_place_of_answers_is_cut() -> None:
    def ask(operation: int, body: bytes) -> wire.Reader:
        if operation == wire.OP_CACHE_GET_NAMES:
            return wire.Reader(struct.pack("<i", 1) + wire.text_bytes("one"))
        raise ServerRefusal(1, "x" * 1_000_000)

    found = Survey(object(), ask).found()  # type: ignore[arg-type]
    assert len(found["caches"][0]["problem"]) == LONGEST_WORDS
    assert len(found["notes"][0]) < 2 * LONGEST_WORDS
