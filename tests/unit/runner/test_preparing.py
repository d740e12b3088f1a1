"""The pure parts of preparation, and inputs that are refused with file and row."""

from __future__ import annotations

import ast
import math
import statistics
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster_runner.prepare import arrays, cells, folder, rows
from yardmaster_runner.prepare.files import File, assign
from yardmaster_runner.prepare.layout import choose
from yardmaster_runner.prepare.merging import merged
from yardmaster_runner.prepare.numbers import Numbers
from yardmaster_runner.prepare.schema import Columns
from yardmaster_runner.prepare.sources import Source
from yardmaster_runner.prepare.trouble import BadRecord, PrepareError

FINITE = st.floats(-1e6, 1e6)


def numbers_of(values):
    numbers = Numbers()
    for one in values:
        numbers.add(one)
    return numbers


@given(st.lists(FINITE), st.lists(FINITE, min_size=1))
def test_merged_statistics_are_those_of_all_numbers(first, second):
    facts = numbers_of(first).with_other(numbers_of(second)).facts()
    both = first + second
    assert (facts["count"], facts["min"], facts["max"]) == (len(both), min(both), max(both))
    assert math.isclose(facts["mean"], statistics.fmean(both), rel_tol=1e-9, abs_tol=1e-6)
    assert math.isclose(facts["std"], statistics.pstdev(both), rel_tol=1e-6, abs_tol=1e-3)


def test_the_split_has_about_the_parts_asked_for_and_follows_the_seed():
    keys = [f"a/{number}.png" for number in range(5000)]
    first = [folder.split_of(key, 1, (0.8, 0.1, 0.1)) for key in keys]
    assert 3850 < first.count("train") < 4150
    assert 400 < first.count("test") < 600
    assert first != [folder.split_of(key, 2, (0.8, 0.1, 0.1)) for key in keys]
    assert first[:10] == [folder.split_of(key, 1, (0.8, 0.1, 0.1)) for key in keys[:10]]


@given(st.lists(st.integers(0, 10**6), max_size=60), st.integers(1, 7))
def test_each_file_has_one_worker_and_no_worker_has_far_more(sizes, workers):
    files = [File(f"{number}", size) for number, size in enumerate(sizes)]
    parts = assign(files, workers)
    assert sorted(one.path for part in parts for one in part) == sorted(one.path for one in files)
    loads = [sum(one.size for one in part) for part in parts]
    assert max(loads) - min(loads) <= max(sizes, default=0)
    assert parts == assign(files[::-1], workers)


@pytest.mark.parametrize("text", ["90", "90/20", "a/b", "nan/10", "-10/110", "50/20/20/10"])
def test_a_split_that_is_none_is_refused(text):
    with pytest.raises(PrepareError, match="add up to 100"):
        folder.shares(text)


def test_kinds_widen_over_all_rows():
    columns = Columns()
    for record in ({"a": 1, "b": [1, 2]}, {"a": 1.5, "b": [3]}, {"b": []}):
        columns.see(record)
    assert columns.features["a"].kind == "float"
    assert columns.features["b"].shape is None
    assert columns.values({"b": [3]}) == {"a": ("float", []), "b": ("int64", [3])}
    with pytest.raises(ValueError, match="a is bytes: expected float"):
        columns.see({"a": "x", "b": [1]})


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1", "int64"),
        ("-9", "int64"),
        ("1.5", "float"),
        ("", "gaps"),
        ("NA", "gaps"),
        ("16777217", "wide"),
        ("33554432", "int64"),
        ("1_0", "bytes"),
        ("99999999999999999999", "inexact"),
    ],
)
def test_the_kind_of_a_cell(text, kind):
    assert cells.cell_kind(text) == kind


@pytest.mark.parametrize("path", sorted(Path(arrays.__file__).parent.glob("*.py")), ids=lambda path: path.stem)
def test_every_file_is_python_3_8(path):
    ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))


def source(tmp_path, name, data, form, label="", skip=False):
    path = tmp_path / name
    path.write_bytes(data)
    files = [File(name, len(data))]
    return Source(str(tmp_path), choose(files, form, skip), files, label, skip)


def test_a_broken_last_row_of_a_csv_is_named(tmp_path):
    text = "a,b\n" + "1,2\n" * 10_000 + "1,2,3\n"
    with pytest.raises(BadRecord, match=r"^data.csv, row 10002: 3 cells, expected 2$"):
        source(tmp_path, "data.csv", text.encode(), "csv")


def test_skipped_rows_are_still_told(tmp_path):
    found = source(tmp_path, "data.csv", b"a,b\n1,2\n3\n4,5\n", "csv", skip=True)
    records = [record for _, record in found.records(found.wholes()[0])]
    assert [str(one) for one in records if isinstance(one, BadRecord)] == ["data.csv, row 3: 1 cells, expected 2"]
    assert [one for one in records if isinstance(one, dict)] == [{"a": 1, "b": 2}, {"a": 4, "b": 5}]


@pytest.mark.parametrize(
    ("line", "reason"),
    [(b"[" * 200_000, "row 2: nested too deeply"), (b"[1]", "row 2: expected an object"), (b"{", "row 2: "),
     (b'{"a": {"b": 1}}', "row 2: a holds"), (b'{"a": 9223372036854775808}', "row 2: a is outside 64 bits")],
)  # fmt: skip
def test_json_lines_that_cannot_be_used_are_named(tmp_path, line, reason):
    with pytest.raises(BadRecord, match=reason):
        source(tmp_path, "d.jsonl", b'{"a": 1}\n' + line + b"\n", "jsonl")


def test_a_line_past_the_bound_is_refused_without_being_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "LONGEST_LINE", 1000)
    with pytest.raises(BadRecord, match=r"data.csv, row 2: longer than 1000 bytes"):
        source(tmp_path, "data.csv", b"a\n" + b"1" * 50_000 + b"\n2\n", "csv")


def npy(descr, shape, body, fortran=False):
    header = repr({"descr": descr, "fortran_order": fortran, "shape": shape}).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + body


@pytest.mark.parametrize(
    ("data", "reason"),
    [(npy("|O", (2,), b"pickled"), "its items are '|O'"), (npy("<f4", (10**9, 3), b"1234"), "4 bytes of items"),
     (npy("<u8", (1,), b"12345678"), "astype('int64')"), (npy("<f4", (1, 1), b"1234", True), "C order"),
     (npy("<f4", (), b"1234"), "first axis"), (b"PK", "not a NumPy"), (npy("<f4", (1, 10**12), b""), "a row has")],
)  # fmt: skip
def test_arrays_that_lie_or_hold_objects_are_refused(tmp_path, data, reason):
    (tmp_path / "x.npy").write_bytes(data)
    with pytest.raises(PrepareError) as caught:
        arrays.opened(str(tmp_path / "x.npy"), "x.npy")
    assert reason in str(caught.value)


@pytest.mark.parametrize("shape", [(4,), (2, 2)])
@pytest.mark.parametrize(
    ("descr", "form", "values", "kind"),
    [
        (">f4", ">4f", [1.5, -2.0, 3.0, 0.25], "float32"),
        (">i8", ">4q", [-(2**63), 1, 2, 2**63 - 1], "int64"),
        (">u2", ">4H", [0, 1, 255, 65535], "uint16"),
        ("<u4", "<4I", [0, 1, 2**31, 2**32 - 1], "int64"),
        (">u4", ">4I", [0, 1, 2**31, 2**32 - 1], "int64"),
        (">u1", ">4B", [0, 1, 254, 255], "uint8"),
    ],
)
def test_arrays_of_other_byte_orders_and_widths_are_converted(tmp_path, shape, descr, form, values, kind):
    (tmp_path / "x.npy").write_bytes(npy(descr, shape, struct.pack(form, *values)))
    found = arrays.opened(str(tmp_path / "x.npy"), "x.npy")
    rows_read = found.read(0, shape[0])
    letter = {"float32": "f", "int64": "q", "uint16": "H", "uint8": "B"}[kind]
    if len(shape) == 2:
        assert found.feature().encoding == f"raw:{kind}"
        rows_read = [one for row in rows_read for one in struct.unpack(f"<2{letter}", row)]
    assert list(rows_read) == values
    assert list(found.read(1, 2)) == [found.read(0, shape[0])[1]]


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["a.npz", "b.npz"], r"ends in one of .*\.npy: save each array of an \.npz as \.npy$"),
        (["data.zip"], "upload archives with --unpack$"),
        (["a.parquet", "b.json"], r"one object per line; export tables of other programs as \.csv$"),
        (["a.bin"], r"\.npy$"),
    ],
)
def test_an_input_of_other_formats_is_refused_with_what_to_do(names, reason):
    with pytest.raises(PrepareError, match=reason):
        choose([File(name, 1) for name in names], "auto", False)


def part(worker, plan="p"):
    shard = {"path": f"train/train-0000{worker}.tfrecord", "records": 2, "size": 9}
    return {
        "plan": plan, "worker": worker, "workers": 2, "compression": "", "label": "", "classes": [],
        "features": {"a": {"kind": "float", "shape": [], "encoding": ""}}, "splits": {"train": [shard]},
        "counts": {"train": {"x": 2}}, "statistics": {"a": numbers_of([worker, 1]).to_members()},
    }  # fmt: skip


def test_results_of_workers_merge_in_any_order():
    description = merged([part(1), part(0)])
    assert description == merged([part(0), part(1)])
    assert description.records("train") == 4
    assert description.counts == {"train": {"x": 4}}
    assert description.statistics["a"]["mean"] == 0.75


def test_arrays_of_other_shapes_in_the_files_of_another_worker_do_not_merge():
    parts = [part(0), part(1)]
    for one, shape in zip(parts, ([2, 3], [3, 2]), strict=True):
        one["features"] = {"x": {"kind": "bytes", "shape": shape, "encoding": "raw:float32"}}
    with pytest.raises(PrepareError, match=r"x has the shape \(2, 3\) in one worker's records and \(3, 2\)"):
        merged(parts)


def test_results_of_other_inputs_or_of_too_few_workers_do_not_merge():
    with pytest.raises(PrepareError, match="different inputs"):
        merged([part(0), part(1, "q")])
    with pytest.raises(PrepareError, match="results of 1 workers, expected 2"):
        merged([part(1)])
