"""Examples as rows of a DataFrame: what is done without Spark, on the driver and in each executor."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import pytest

from yardmaster_runner.data.example_bytes import example, field
from yardmaster_runner.data.examples import BadRecord, framed, parsed, records_of
from yardmaster_runner.data.frames import _columns, _encoded, _rows, _write
from yardmaster_runner.data.inputs import DataError

ONE = {
    "label": ("int64", [-3]),
    "x": ("float", [0.5, 2.0]),
    "name": ("bytes", ["größe".encode()]),
    "none": ("int64", []),
}


def file_of(folder: Path, *records: bytes, name: str = "a.tfrecord") -> str:
    path = folder / name
    content = b"".join(map(framed, records))
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return str(path)


def test_an_example_is_read_as_it_was_written() -> None:
    assert parsed(example(ONE)) == {**ONE, "x": ("float", [0.5, 2.0])}


def test_numbers_that_are_not_packed_are_read_as_well() -> None:
    floats = b"".join(b"\x0d" + struct.pack("<f", one) for one in (1.0, 2.0))
    whole = b"\x08\x05\x08" + b"\xff" * 9 + b"\x01"
    entries = [
        b"".join(field(b"\x0a", *field(b"\x0a", name), *field(b"\x12", *field(tag, values))))
        for name, tag, values in ((b"f", b"\x12", floats), (b"i", b"\x1a", whole))
    ]
    assert parsed(b"".join(field(b"\x0a", *entries))) == {"f": ("float", [1.0, 2.0]), "i": ("int64", [5, -1])}


@pytest.mark.parametrize("damage", [b"\x0a\xff", b"\x0a\x05abc", b"\x0f", b"\x08\x01\x0a" + b"\xff" * 11])
def test_what_is_no_example_is_refused(damage: bytes) -> None:
    with pytest.raises(ValueError, match=r"no tf\.train\.Example"):
        parsed(damage)


@pytest.mark.parametrize("name", ["a.tfrecord", "a.tfrecord.gz"])
def test_records_come_with_the_byte_at_which_they_begin(tmp_path: Path, name: str) -> None:
    assert list(records_of(file_of(tmp_path, b"one", b"", b"three", name=name))) == [
        (0, b"one"),
        (19, b""),
        (35, b"three"),
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: data[:-1], "byte 19 cannot be read: the file ends within it"),
        (lambda data: data[:25], "byte 19 cannot be read: the file ends within it"),
        (lambda data: data.replace(b"three", b"thrEe"), "byte 19 cannot be read: its checksum is wrong"),
        (lambda data: data[:20] + b"\x01" + data[21:], "byte 19 cannot be read: the checksum of its length"),
    ],
)
def test_a_bad_record_is_named_with_its_file_and_its_byte(tmp_path: Path, change, words: str) -> None:
    path = Path(file_of(tmp_path, b"one", b"three"))
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(BadRecord) as error:
        list(records_of(str(path)))
    assert str(error.value).startswith(f"{path}: the record at {words}")


def test_the_first_records_say_which_columns_there_are(tmp_path: Path) -> None:
    more = {**ONE, "label": ("int64", [1]), "extra": ("float", [1.0])}
    path = file_of(tmp_path, example(ONE), example(more))
    expected = [("extra", "float", False), ("label", "int64", False), ("name", "bytes", False), ("none", "int64", True)]
    assert _columns([(path, records_of(path))], set(), set()) == [*expected, ("x", "float", True)]
    changed = _columns([(path, records_of(path))], {"label"}, {"x"})
    assert [one for one in changed if one[0] in ("label", "x")] == [("label", "int64", True), ("x", "float", False)]
    with pytest.raises(DataError, match="No feature is called y"):
        _columns([(path, records_of(path))], {"y"}, set())


def test_a_row_has_null_for_what_a_record_lacks(tmp_path: Path) -> None:
    file_of(tmp_path, example(ONE), example({}))
    columns = [("label", "int64", False), ("name", "bytes", False), ("x", "float", True)]
    rows = list(_rows("", str(tmp_path), "", columns, "a.tfrecord"))
    assert rows == [(-3, "größe".encode(), [0.5, 2.0]), (None, None, None)]


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (
            ("x", "float", False),
            r"byte 0 has 2 values in x, the first records have one: call dataframe with arrays=\['x'\]",
        ),
        (("x", "int64", True), "byte 0 has float in x, the first records have int64"),
    ],
)
def test_a_record_that_does_not_fit_is_named(tmp_path: Path, column: tuple[str, str, bool], words: str) -> None:
    path = file_of(tmp_path, example(ONE))
    with pytest.raises(DataError, match=words) as error:
        list(_rows("", str(tmp_path), "", [column], "a.tfrecord"))
    assert str(error.value).startswith(path)


def test_a_partition_is_one_file_and_leaves_nothing_unfinished(tmp_path: Path) -> None:
    kinds = [("label", "int64"), ("name", "bytes"), ("x", "float")]
    rows = [{"label": True, "name": "a", "x": [1, 2.5]}, {"label": None, "name": bytearray(b"b"), "x": None}]
    assert _write(str(tmp_path), 3, _encoded(kinds, rows)) == 2
    assert _write(str(tmp_path), 4, []) == 0
    assert [one.name for one in tmp_path.iterdir()] == ["part-00003.tfrecord"]
    found = [parsed(record) for _, record in records_of(str(tmp_path / "part-00003.tfrecord"))]
    assert found[0] == {"label": ("int64", [1]), "name": ("bytes", [b"a"]), "x": ("float", [1.0, 2.5])}
    assert found[1] == {"name": ("bytes", [b"b"])}
    with pytest.raises(KeyError):
        _write(str(tmp_path), 5, _encoded(kinds, [{}]))
    assert len(list(tmp_path.iterdir())) == 1
