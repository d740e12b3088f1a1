"""How many records a data file holds, found while its bytes pass by."""

from __future__ import annotations

import io
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.formats.records import Format, counter_for, first_row, format_of, has_heading
from yardmaster.formats.tfrecord import masked_crc
from yardmaster.storage.facts import FactFinder, find_facts


def _count(path: str, data: bytes, piece: int = 1 << 20):
    counter = counter_for(path, data[:12], crc_budget=0)
    for start in range(0, len(data), piece):
        counter.feed(data[start : start + piece])
    return counter.finish()


def _record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc(length)) + data + struct.pack("<I", masked_crc(data))


@pytest.mark.parametrize(
    ("path", "start", "expected"),
    [
        ("a.csv", b"x,y", Format.CSV),
        ("a.CSV", b"x,y", Format.CSV),
        ("a.tsv", b"", Format.TSV),
        ("a.jsonl", b"{}", Format.JSONL),
        ("a.tfrecord", b"damaged from the start", Format.TFRECORD),
        ("a.tfrecord-00000-of-00010", b"", Format.TFRECORD),
        ("train-00000-of-01024", _record(b"x"), Format.TFRECORD),
        ("train-00000-of-01024", b"something else", None),
        ("a.png", b"\x89PNG", None),
        ("a.tfrecord.gz", b"\x1f\x8b", None),
        ("csv", b"", None),
    ],
)
def test_a_format_is_known_by_content_or_name(path, start, expected):
    assert format_of(path, start) == expected


@pytest.mark.parametrize(
    ("data", "rows"),
    [
        (b"", 0),
        (b"x,y\n", 0),
        (b"x,y\n1,2\n3,4\n", 2),
        (b"x,y\n1,2\n3,4", 2),
        (b"1,2\n3,4\n", 2),
        (b'name,text\n1,"two\nlines"\n2,"say ""hi"""\n', 2),
        (b"x,y\r\n1,2\r\n", 1),
        (b"\xef\xbb\xbfx,y\n1,2\n", 1),
    ],
)
@pytest.mark.parametrize("piece", [1, 3, 1000])
def test_rows_are_counted_without_the_heading(data, rows, piece):
    assert _count("a.csv", data, piece).records == rows


def test_an_open_quotation_mark_is_told():
    assert "never closed" in _count("a.csv", b'a,b\n1,"2\n3,4\n').fault


@given(st.lists(st.sampled_from([b"{}", b" ", b"", b'{"a": 1}']), max_size=20), st.integers(1, 9), st.booleans())
def test_lines_are_counted_without_the_empty_ones(lines, piece, ended):
    data = b"\n".join(lines) + (b"\n" if ended else b"")
    assert _count("a.jsonl", data, piece).records == sum(1 for line in lines if line.strip())


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (["x", "y"], True),
        (["x", "1"], False),
        (["x", "x"], False),
        (["x", ""], False),
        ([], False),
        (["nan", "b"], False),
    ],
)
def test_a_heading_names_columns(row, expected):
    assert has_heading(row) is expected


def test_a_first_row_may_span_lines_and_be_anything():
    assert first_row(b'"a\nb",c\n1,2', ",") == ["a\nb", "c"]
    assert first_row(b"\xff\xfe,b", ",") == ["\ufffd\ufffd", "b"]
    assert len(first_row(b'"' + b"x" * 200_000, ",")[0]) < 70_000


def test_facts_are_found_in_one_pass():
    data = b"".join(_record(bytes([number])) for number in range(10))
    passed = []
    finder = FactFinder(io.BytesIO(data), count_as="x.tfrecord", crc_budget=100, beat=passed.append)
    facts = find_facts(finder)
    assert (facts.size, facts.records, facts.fault) == (len(data), 10, "")
    assert sum(passed) == len(data)


def test_a_file_that_is_not_to_be_counted_is_not():
    assert find_facts(FactFinder(io.BytesIO(b"x,y\n1,2\n"))).records is None
