"""Rows of tables in blocks and pieces are those that the csv module gives, whichever worker reads which part."""

from __future__ import annotations

import csv
import gc
import gzip
import io
import json
import math
import struct
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster_runner.prepare import cells, folder, pieces, rows
from yardmaster_runner.prepare.files import File
from yardmaster_runner.prepare.known_rows import KnownRows
from yardmaster_runner.prepare.layout import choose
from yardmaster_runner.prepare.schema import Columns
from yardmaster_runner.prepare.sources import Source
from yardmaster_runner.prepare.trouble import BadRecord, PrepareError

CELLS = st.text(st.sampled_from('ab1"\n, .é'), max_size=6)
TABLES = st.lists(st.tuples(CELLS, CELLS), max_size=30)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(rows, "BLOCK", 64)
    monkeypatch.setattr(pieces, "MARK_EVERY", 1)


def written(header, lines, *, quoting=csv.QUOTE_MINIMAL, end="\n") -> bytes:
    out = io.StringIO(newline="")
    csv.writer(out, quoting=quoting, lineterminator=end).writerows([header, *lines])
    return out.getvalue().encode()


def source_of(top, form, contents, label="", skip=False):
    files = []
    for name, data in contents.items():
        (Path(top) / name).write_bytes(data)
        files.append(File(name, len(data)))
    return Source(str(top), choose(files, form, skip), files, label, skip)


def rows_by_worker(source, workers):
    found = []
    for worker in range(workers):
        for piece in source.pieces(workers, worker):
            some = list(source.records(piece))
            assert len(some) <= piece.records
            found += some
    return found


@settings(max_examples=40)
@given(TABLES, st.integers(1, 4), st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]), st.sampled_from(["\n", "\r\n"]))
def test_workers_share_the_rows_that_the_csv_module_reads(lines, workers, quoting, end):
    with pytest.MonkeyPatch.context() as patched, tempfile.TemporaryDirectory() as top:
        patched.setattr(rows, "BLOCK", 32)
        patched.setattr(pieces, "MARK_EVERY", 1)
        data = written(("x", "y"), lines, quoting=quoting, end=end)
        source = source_of(top, "csv", {"a.csv": data}, skip=True)
        source.kinds = {"x": "bytes", "y": "bytes"}
        found = [one for _, one in rows_by_worker(source, workers) if isinstance(one, dict)]
    expected = [row for row in csv.reader(io.StringIO(data.decode(), newline="")) if len(row) == 2][1:]
    assert [[one["x"], one["y"]] for one in found] == expected


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
def test_one_table_is_divided_between_all_workers_with_the_same_row_numbers(tmp_path, small_blocks, workers):
    lines = [(str(number), "two\nlines, quoted" if number % 3 else "plain") for number in range(200)]
    source = source_of(tmp_path, "csv", {"a.csv": written(("x", "y"), lines)})
    found = rows_by_worker(source, workers)
    assert [(place, one["x"]) for place, one in found] == [(f"a.csv, row {n + 2}", n) for n in range(200)]
    sizes = [sum(piece.end - piece.start for piece in source.pieces(workers, worker)) for worker in range(workers)]
    assert max(sizes) - min(sizes) <= 200


@pytest.mark.parametrize("workers", [1, 3])
def test_json_lines_are_divided_too_and_empty_lines_count(tmp_path, small_blocks, workers):
    data = b"".join(b'{"a": %d}\n\n' % number for number in range(100))
    found = rows_by_worker(source_of(tmp_path, "jsonl", {"a.jsonl": data, "b.jsonl": data}), workers)
    assert [one["a"] for _, one in found] == [*range(100), *range(100)]
    assert found[99][0] == "a.jsonl, row 199"


def test_a_few_arrays_are_divided_by_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(pieces, "MARK_EVERY", 1)
    header = repr({"descr": "<i2", "fortran_order": False, "shape": (100,)}).encode() + b"\n"
    data = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    data += b"".join(number.to_bytes(2, "little") for number in range(100))
    source = source_of(tmp_path, "numpy", {"x.npy": data, "y.npy": data})
    parts = [[one["x"] for piece in source.pieces(3, n) for _, one in source.records(piece)] for n in range(3)]
    assert [one for part in parts for one in part] == list(range(100))
    assert max(map(len, parts)) <= 50  # its header counts for the bytes of the first
    assert all(parts)


def test_a_bad_row_is_named_by_its_number_in_the_file_whichever_worker_has_it(tmp_path, small_blocks):
    lines = [(str(number), "a") for number in range(300)]
    data = written(("x", "y"), lines) + b"1,2,3\n"
    with pytest.raises(BadRecord, match=r"^a.csv, row 302: 3 cells, expected 2$"):
        source_of(tmp_path, "csv", {"a.csv": data})
    source = source_of(tmp_path, "csv", {"a.csv": data}, skip=True)
    assert [str(one) for one in rows_by_worker(source, 4) if isinstance(one[1], BadRecord)] == [
        "('a.csv, row 302', BadRecord('a.csv, row 302: 3 cells, expected 2'))"
    ]


def test_a_quote_that_is_never_closed_does_not_hold_the_file_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "LONGEST_CELL", 2_000)
    data = b'x,y\n1,"open\n' + b"1,2\n" * 5_000
    source = source_of(tmp_path, "csv", {"a.csv": data}, skip=True)
    found = rows_by_worker(source, 1)
    bad = [one for _, one in found if isinstance(one, BadRecord)]
    assert str(bad[0]).startswith("a.csv, row 2: field larger than field limit")


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (b"x,z\n1,2\n", b"x\n1\n", "a.csv has the column 'z', which b.csv lacks: give all"),
        (b"x\n1\n", b"x,z\n1,2\n", "b.csv has the column 'z', which a.csv lacks: give all"),
        (b"x,z\n", b"x,y\n1,2\n", "a.csv has the column 'z', which b.csv lacks: give all"),
    ],
)
def test_tables_of_different_columns_are_refused_by_name(tmp_path, first, second, said):
    with pytest.raises(PrepareError, match=said):
        source_of(tmp_path, "csv", {"a.csv": first, "b.csv": second}, skip=True)


def test_columns_may_stand_in_another_order(tmp_path):
    source = source_of(tmp_path, "csv", {"a.csv": b"x,y\n1,2\n", "b.csv": b"y,x\n2,1\n"})
    assert [one for _, one in rows_by_worker(source, 2)] == [{"x": 1, "y": 2}] * 2


LINES = [(str(number), 'two\nlines, "quoted"; \tall' if number % 7 == 3 else "plain") for number in range(90)]


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize(
    ("name", "delimiter", "note"),
    [
        ("a.csv", ",", []),
        ("a.csv", ";", ["cells are divided by semicolons in a.csv"]),
        ("a.csv", "\t", ["cells are divided by tabs in a.csv"]),
        ("a.tsv", "\t", []),
        ("a.csv.gz", ",", []),
        ("a.tsv.gz", "\t", []),
    ],
)
def test_tables_divided_otherwise_and_compressed_ones_are_the_same(
    tmp_path, small_blocks, workers, name, delimiter, note
):
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter, lineterminator="\n").writerows([("x", "y"), *LINES])
    data = out.getvalue().encode()
    source = source_of(tmp_path, "auto", {name: gzip.compress(data) if name.endswith(".gz") else data})
    found = rows_by_worker(source, workers)
    assert [(place, str(one["x"]), one["y"]) for place, one in found] == [
        (f"{name}, row {number + 2}", x, y) for number, (x, y) in enumerate(LINES)
    ]
    assert source.notes == note
    assert len({piece.start for worker in range(workers) for piece in source.pieces(workers, worker)}) == workers


def test_a_header_is_divided_by_commas_where_it_has_one(tmp_path):
    assert source_of(tmp_path, "csv", {"a.csv": b"a;b,c\n1,2\n"}).headers["a.csv"].names == ["a;b", "c"]
    assert source_of(tmp_path, "csv", {"a.csv": b'"a, or b";c\n1;2\n'}).headers["a.csv"].names == ["a, or b", "c"]
    assert source_of(tmp_path, "csv", {"a.csv": b"text\nx; y\n"}).headers["a.csv"].names == ["text"]


def test_plain_rows_of_another_delimiter_need_not_be_read():
    known = KnownRows(["x", "y"], "", {"x": "float", "y": "bytes"}, set(), ";")
    assert (known.count(b"1.5;a,b\n2;c\n"), known.count(b"1.5;a;b\n"), known.count(b"1.5,a\n")) == (2, 0, 0)


def test_compressed_json_lines_are_read_and_what_is_unpacked_is_removed(tmp_path, monkeypatch):
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    source = source_of(tmp_path, "auto", {"a.jsonl.gz": gzip.compress(b'{"a": 1}\n{"a": 2}\n')})
    assert [one["a"] for _, one in rows_by_worker(source, 2)] == [1, 2]
    del source
    gc.collect()
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize("cut", [slice(-12), slice(9, None), slice(0)])
def test_a_compressed_table_that_is_damaged_is_named(tmp_path, cut):
    data = gzip.compress(b"a\n" + bytes(range(48, 57)) * 50)[cut]
    with pytest.raises(PrepareError, match=r"^a.csv.gz"):
        source_of(tmp_path, "csv", {"a.csv.gz": data})


NEVER_CLOSED = "a quote is never closed, up to the end of the file"
NOT_DOUBLED = "text behind a closing quote: a quote is never closed, or not doubled within a cell"


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize(
    ("end", "reasons"),
    [
        (b'21,"never closed\n22,x\n', [(22, NEVER_CLOSED)]),
        (b'21,"never closed', [(22, NEVER_CLOSED)]),
        (b'21,"never closed\n22,x\n23,"y"\n24,z\n', [(22, NOT_DOUBLED)]),
        (b'21,"two\nlines"\n22,"open\n', [(23, NEVER_CLOSED)]),
        (b'21,"', [(22, NEVER_CLOSED)]),
    ],
)
def test_a_table_that_is_cut_off_in_a_quoted_cell_has_a_bad_row(tmp_path, small_blocks, workers, end, reasons):
    data = b"a,b\n" + b"".join(b'%d,"x"\n' % number for number in range(1, 21)) + end
    row, reason = reasons[0]
    with pytest.raises(BadRecord, match=f"^a.csv, row {row}: {reason}$"):
        source_of(tmp_path, "csv", {"a.csv": data})
    found = rows_by_worker(source_of(tmp_path, "csv", {"a.csv": data}, skip=True), workers)
    assert [str(one) for _, one in found if isinstance(one, BadRecord)] == [
        f"a.csv, row {number}: {why}" for number, why in reasons
    ]
    assert [one["a"] for _, one in found if isinstance(one, dict)][:20] == list(range(1, 21))


def test_a_header_that_is_cut_off_in_a_quoted_cell_is_refused(tmp_path):
    with pytest.raises(PrepareError, match=rf"^a.csv, row 1: {NEVER_CLOSED}$"):
        source_of(tmp_path, "csv", {"a.csv": b'a,"b\n1,2\n'})


NUMBERS = st.sampled_from(["", "1", "16777217", "33554432", "-123456789", "9" * 20, "0.5", "NA", " ", "inf", "1e400"])
ROUGHLY_NUMBERS = st.one_of(NUMBERS, st.text(st.sampled_from("019.-e_ nai"), max_size=5))


@given(st.lists(ROUGHLY_NUMBERS, max_size=9), st.sampled_from(cells.ORDER), st.randoms())
def test_the_kind_of_a_column_is_that_of_its_cells_in_any_order(texts, known, draw):
    kind = known
    for text in draw.sample(texts, len(texts)):
        kind = cells.both(kind, cells.cell_kind(text))
    assert cells.column_kind(texts, known) == kind


@given(st.lists(NUMBERS, min_size=1, max_size=5))
def test_whole_numbers_come_back_as_they_were(texts):
    kind = cells.FEATURES[cells.column_kind(texts, "int64")]
    if any(text in ("0.5", "inf", "1e400") for text in texts):
        return  # fractions of 32 bits, or text
    for text, value in zip(texts, cells.converted(texts, kind), strict=True):
        if kind == "float":
            value = struct.unpack("<f", struct.pack("<f", value))[0]
            assert math.isnan(value) if cells.is_empty(text) else value == int(text)
        else:
            assert value == (text if kind == "bytes" else int(text))


@pytest.mark.parametrize("workers", [1, 3])
def test_whole_numbers_beside_an_empty_cell_are_kept_and_said(tmp_path, small_blocks, workers):
    lines = "".join(f"{123456789 + number},{number},{'' if number % 9 == 3 else number}\n" for number in range(50))
    data = b"id,n,gap\n" + lines.encode() + b",1,NA\n"
    source = source_of(tmp_path, "csv", {"a.csv": data})
    assert {name: one.kind for name, one in source.features.items()} == {"id": "bytes", "n": "int64", "gap": "float"}
    assert [one.split(":")[0] for one in source.notes] == ["id is kept as text"]
    found = [one for _, one in rows_by_worker(source, workers)]
    assert [one["id"] for one in found] == [*(str(123456789 + number) for number in range(50)), ""]
    assert [number for number, one in enumerate(found) if math.isnan(one["gap"])] == [*range(3, 50, 9), 50]


def test_words_for_no_value_are_empty_in_numbers_and_text_among_texts(tmp_path):
    source = source_of(tmp_path, "csv", {"a.csv": b"a,b\n1,x\nNA,NA\nN/A,y\nnull,\nNaN,z\n2.5,x\n"})
    assert {name: one.kind for name, one in source.features.items()} == {"a": "float", "b": "bytes"}
    found = [one for _, one in rows_by_worker(source, 1)]
    assert [one["b"] for one in found] == ["x", "NA", "y", "", "z", "x"]
    assert [one["a"] for one in found if not math.isnan(one["a"])] == [1.0, 2.5]


@pytest.mark.parametrize("label", [b"", b" ", b"NA", b"null"])
@pytest.mark.parametrize("classes", [[b"cat", b"dog"], [b"1", b"2"]])
@pytest.mark.parametrize("workers", [1, 3])
def test_a_row_of_a_csv_without_a_label_is_a_bad_record(tmp_path, small_blocks, label, classes, workers):
    lines = [b"%d,%s\n" % (number, classes[number % 2]) for number in range(60)]
    data = b"a,y\n" + b"".join(lines[:40]) + b"1," + label + b"\n" + b"".join(lines[40:])
    with pytest.raises(BadRecord, match=r"^a.csv, row 42: the label y is empty$"):
        source_of(tmp_path, "csv", {"a.csv": data}, label="y")
    source = source_of(tmp_path, "csv", {"a.csv": data}, label="y", skip=True)
    assert source.classes == (["cat", "dog"] if classes[0] == b"cat" else [])
    assert source.features["y"].kind == "int64"
    found = rows_by_worker(source, workers)
    assert [str(one) for _, one in found if isinstance(one, BadRecord)] == ["a.csv, row 42: the label y is empty"]
    assert len(found) == 61


@pytest.mark.parametrize("value", ["null", '""', '"N/A"', "NaN"])
@pytest.mark.parametrize("known", ['"cat"', "3"])
def test_an_object_without_a_label_is_a_bad_record(tmp_path, value, known):
    data = f'{{"y": {known}}}\n{{"y": {value}}}\n{{"y": {known}}}\n'.encode()
    with pytest.raises(BadRecord, match=r"^a.jsonl, row 2: the label y is empty$"):
        source_of(tmp_path, "jsonl", {"a.jsonl": data}, label="y")
    source = source_of(tmp_path, "jsonl", {"a.jsonl": data}, label="y", skip=True)
    assert (source.classes, source.features["y"].kind) == (["cat"] if "cat" in known else [], "int64")
    found = list(source.flat(source.wholes()[0]))
    assert [str(one) for one in found if isinstance(one, BadRecord)] == ["a.jsonl, row 2: the label y is empty"]
    assert [list(one.numbers) for one in found if not isinstance(one, BadRecord)] == [[1, 3]]


@settings(max_examples=60)
@given(
    st.lists(st.lists(st.text(st.sampled_from('019.-eE+é" \rNA'), max_size=5), min_size=2, max_size=2), max_size=4),
    st.lists(st.sampled_from(cells.ORDER), min_size=2, max_size=2),
    st.sampled_from(["\n", "\r\n"]),
)
def test_rows_that_need_not_be_read_would_change_nothing(lines, kinds, end):
    data = end.join(map(",".join, lines)).encode()
    names = {one[1] for one in lines[:2]}
    known = KnownRows(["x", "y"], "y", dict(zip("xy", kinds, strict=True)), names)
    if count := known.count(data):
        read = list(csv.reader(io.StringIO(data.decode(), newline="")))
        assert (len(read), {len(row) for row in read}) == (count, {2})
        assert {row[1] for row in read} <= names
        assert [
            cells.column_kind(column, kind) for column, kind in zip(zip(*read, strict=True), kinds, strict=True)
        ] == kinds


def test_plain_rows_need_not_be_read():
    known = KnownRows(["x", "y"], "", {"x": "float", "y": "bytes"}, set())
    assert known.count(b"1.5,a\n,b\r\n-2e3,c") == 3
    assert [known.count(data) for data in (b"x,a\n", b'1,"a"\n', b"1,a,b\n", b"\n", b"1,\xff\n", b"")] == [0] * 6


VALUES = st.one_of(st.integers(-3, 3), st.booleans(), st.floats(), st.text(max_size=2), st.just([1]), st.none())


@given(st.lists(st.dictionaries(st.sampled_from("ab"), VALUES, min_size=1), min_size=1, max_size=5))
def test_records_that_are_seen_at_once_change_nothing_that_single_ones_would(records):
    one, many = Columns({}), Columns({})
    for columns in (one, many):
        columns.see({"a": 1.5, "b": "x"})
    if many.see_same(records):
        for record in records:
            one.see(record)
        assert many.features == one.features


def test_a_number_in_a_column_of_text_is_left_out_and_named_not_a_crash(tmp_path):
    data = b'{"a": "x"}\n{"a": 3}\n{"a": "y"}\n'
    source = source_of(tmp_path, "jsonl", {"a.jsonl": data}, skip=True)
    found = [one for one in source.flat(source.wholes()[0]) if isinstance(one, BadRecord)]
    assert [str(one) for one in found] == ["a.jsonl, row 2: a is int64: expected bytes as in the records before"]


def test_each_file_of_pictures_is_staged_by_one_worker_and_tables_by_all():
    images = [File(f"cat/{number}.png", 100 + number) for number in range(20)]
    parts = [folder.share_of(images, "images", 3, worker) for worker in range(3)]
    assert sorted(one.path for part in parts for one in part) == sorted(one.path for one in images)
    assert folder.share_of(images, "csv", 3, 1) == images
    arrays = [File(f"{kind}_{number:02}.npy", 10) for number in range(12) for kind in "xy"]
    assert folder.share_of(arrays[:4], "numpy", 2, 1) == arrays[:4]
    for part in (folder.share_of(arrays, "numpy", 2, worker) for worker in range(2)):
        assert len(part) == 12
        assert folder.partners(part) == {one.path for one in part if one.path.startswith("y")}


def test_a_list_of_files_is_read_as_it_was_written_without_hidden_ones(tmp_path):
    files = [File("b/ü.png", 3), File(".git/a.png", 1), File("a\n.png", 2)]
    folder.write_list(str(tmp_path / "list"), files)
    assert folder.read_list(str(tmp_path / "list")) == [File("a\n.png", 2), File("b/ü.png", 3)]


def test_a_label_that_no_table_has_is_said_with_the_file(tmp_path):
    with pytest.raises(PrepareError, match=r"a.csv: no column z, which is the label"):
        source_of(tmp_path, "csv", {"a.csv": b"x\n1\n"}, label="z")
    with pytest.raises(BadRecord, match=r"a.jsonl, row 1: no column z"):
        source_of(tmp_path, "jsonl", {"a.jsonl": json.dumps({"x": 1}).encode()}, label="z")
