"""Rows of Ignite as features of Examples: what values become, what is noted of them, what a hostile server sends."""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest

from yardmaster_runner.data.description import Feature
from yardmaster_runner.data.ignite_reader import wire
from yardmaster_runner.data.ignite_reader.binary_types import BinaryTypes
from yardmaster_runner.data.ignite_reader.errors import IgniteDataError, IgniteQueryError, IgniteTypeError
from yardmaster_runner.data.ignite_reader.example_rows import Features, examples, refuse_twice

EXPECTED = (IgniteDataError, ValueError, IndexError, struct.error, OverflowError)
NULL = bytes([wire.NULL])


def read(*rows: bytes, noted: Features | None = None, columns: int = 1) -> list[dict[str, Any]]:
    types = BinaryTypes(lambda operation, body: wire.Reader(b"\x00"))
    names = [f"C{one}" for one in range(columns)]
    page = memoryview(b"".join(rows))
    return list(examples(page, 0, names, len(rows) // columns, types, noted or Features()))


@pytest.mark.parametrize(
    ("written", "kind", "values"),
    [
        (struct.pack("<bi", wire.INT, -7), "int64", [-7]),
        (struct.pack("<b?", wire.BOOL, True), "int64", [1]),
        (struct.pack("<bd", wire.DOUBLE, 0.5), "float", [0.5]),
        (struct.pack("<bd", wire.DOUBLE, -1e300), "float", [float("-inf")]),
        (wire.text_bytes("größe"), "bytes", ["größe".encode()]),
        (wire.byte_array(b"\x00\xff"), "bytes", [b"\x00\xff"]),
        (struct.pack("<bi2f", wire.FLOATS, 2, 1, 2), "float", [1.0, 2.0]),
        (struct.pack("<bqi", wire.TIMESTAMP, 3, 5), "int64", [3_000_005]),
        (struct.pack("<bi", wire.STRINGS, 2) + wire.text_bytes("a") + NULL, "bytes", [b"a", b""]),
        (struct.pack("<bQQ", wire.UUID, 1, 2), "bytes", [bytes([0] * 7 + [1] + [0] * 7 + [2])]),
    ],
)
def test_values_become_features(written: bytes, kind: str, values: list[Any]) -> None:
    assert read(written) == [{"C0": (kind, values)}]


def test_what_is_even_in_all_rows_has_a_shape_and_nulls_have_none() -> None:
    noted = Features()
    one, two = struct.pack("<bi2i", wire.INTS, 2, 1, 2), struct.pack("<bi1i", wire.INTS, 1, 1)
    text = wire.text_bytes("a")
    read(one, two, text, NULL, one, one, text, text, noted=noted, columns=4)
    assert noted.rows == 2
    assert noted.described() == {
        "C0": Feature("int64", (2,)), "C1": Feature("int64", None), "C2": Feature("bytes", (), "utf8"),
        "C3": Feature("bytes", None, "utf8"),
    }  # fmt: skip


def test_a_field_of_two_types_and_columns_of_one_name_are_refused() -> None:
    with pytest.raises(IgniteTypeError, match=r"C0 is a int in one row and a String"):
        read(struct.pack("<bi", wire.INT, 1), wire.text_bytes("a"))
    with pytest.raises(IgniteTypeError, match="BigDecimal"):
        read(struct.pack("<biib", wire.DECIMAL, 0, 1, 7))
    with pytest.raises(IgniteQueryError, match="several columns with the name ID"):
        refuse_twice(["ID", "A", "ID"])


def test_random_rows_raise_the_known_errors_alone() -> None:
    random.seed(11)
    codes = [*range(1, 42), 101, 102, 103]
    for _ in range(2_000):
        page = bytes([random.choice(codes)]) + random.randbytes(random.randrange(60))
        try:
            read(page)
        except EXPECTED:
            continue
