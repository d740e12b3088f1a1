"""Batch inference without TensorFlow: which columns go where, what is read and written, the bound on bad records."""

from __future__ import annotations

import ast
import gzip
import json
from pathlib import Path

import pytest

from yardmaster_runner.data.description import from_text
from yardmaster_runner.data.inputs import DataError
from yardmaster_runner.data.reading import dataset
from yardmaster_runner.predict import feeding, writing
from yardmaster_runner.predict.lines_file import LinesFiles
from yardmaster_runner.predict.records import Data, Record
from yardmaster_runner.prepare.merging import merged_texts
from yardmaster_runner.prepare.trouble import BadRecord, PrepareError
from yardmaster_runner.serving.signatures import DEFAULT, BadRequest, Signature, Tensor

WIDE = Tensor("x", "float32", (None, 2))
TEXT = Tensor("text", "string", (None,))


def signature(*inputs):
    return Signature(DEFAULT, {one.name: one for one in inputs}, {"y": Tensor("y", "float32", (None, 1))})


def columns_for(inputs, values, mapping="", aside=(), whole=None):
    first = Record("a", 1, values, whole)
    found = feeding.feeds_of(signature(*inputs), first, feeding.mapping_of(mapping), aside)
    return {one.tensor.name: one.columns for one in found}


def test_columns_go_to_the_inputs_of_their_names_or_as_they_were_named():
    assert columns_for([WIDE, TEXT], {"x": [1, 2], "text": "a"}) == {"x": ("x",), "text": ("text",)}
    assert columns_for([WIDE], {"a": 1, "b": 2, "x": 3}, "x=a+b") == {"x": ("a", "b")}
    assert columns_for([TEXT], {"text": b""}, "text=*", whole=b"") == {"text": ("*",)}


def test_an_only_input_takes_what_is_left_over_where_it_fits():
    assert columns_for([WIDE], {"pixels": [1, 2], "label": 1}, aside={"label"}) == {"x": ("pixels",)}
    assert columns_for([WIDE], {"a": "1", "b": "2", "id": "7"}, aside={"id"}) == {"x": ("a", "b")}
    assert columns_for([WIDE], {"image": [1, 2], "label": 1, "more": [1, 2, 3]}) == {"x": ("image",)}
    assert columns_for([TEXT], {"review": b"good", "stars": 1}, whole=b"") == {"text": ("review",)}
    assert columns_for([TEXT], {"stars": 1}, whole=b"") == {"text": ("*",)}


def test_what_cannot_be_fed_says_what_there_is():
    with pytest.raises(PrepareError, match=r"x: float32 \[\?, 2\]: the data has a, b, c\. Say it with columns"):
        columns_for([WIDE], {"a": 1, "b": 2, "c": 3})
    with pytest.raises(PrepareError, match=r"no input z\. It takes x: float32"):
        columns_for([WIDE], {"a": 1}, "z=a")


@pytest.mark.parametrize("text", ["x", "x=", "=a", "x=a+", "x=a,x=b"])
def test_a_mapping_that_is_none_is_refused(text):
    with pytest.raises(PrepareError, match="expected INPUT=COLUMN"):
        feeding.mapping_of(text)


def test_a_signature_says_how_large_its_batches_are():
    assert feeding.batch_of(signature(WIDE, TEXT)) == 0
    assert feeding.batch_of(signature(Tensor("x", "float32", (8, 2)))) == 8
    for one in (Tensor("x", "float32", ()), Tensor("x", "float32", (0, 2))):
        with pytest.raises(PrepareError, match="takes no batches"):
            feeding.batch_of(signature(one))


def test_outputs_that_are_called_like_other_columns_get_another_name():
    assert writing.names_of(["y", "row", "id"], ["id"]) == {"y": "y", "row": "output_row", "id": "output_id"}


def test_whole_numbers_become_fractions_only_where_that_can_be_written():
    loose, strict = (writing.Seen((), widening=one) for one in (True, False))
    for seen in (loose, strict):
        seen.see("a, row 1", {"n": 1})
    assert loose.see("a, row 2", {"n": 1.5})["n"] == ("float", [1.5])
    with pytest.raises(BadRecord, match=r"^a, row 2: n is a fraction"):
        strict.see("a, row 2", {"n": 1.5})
    with pytest.raises(BadRecord, match=r"^a, row 3: n is bytes: expected float"):
        loose.see("a, row 3", {"n": "x"})


def test_lines_go_into_files_of_a_bounded_size_whose_numbers_no_other_worker_has(tmp_path):
    files = LinesFiles(str(tmp_path), 10, 1, 3)
    for line in (b"12345", b"67890", b"x"):
        files.write("predictions", line)
    done = files.close("predictions")["predictions"]
    assert [(one["path"][-11:], one["records"], one["size"]) for one in done] == [
        ("00001.jsonl", 2, 12), ("00004.jsonl", 1, 2)
    ]  # fmt: skip
    assert (tmp_path / done[0]["path"]).read_bytes() == b"12345\n67890\n"


def described(tmp_path, **more):
    (tmp_path / "a.jsonl").write_text('{"n": 1}\n')
    members = {"format": "yardmaster-dataset", "version": 1, "features": {"n": {"kind": "int64"}}}
    members |= {"splits": {"predictions": [{"path": "a.jsonl", "records": 1, "size": 9}]}, "file_format": "jsonl"}
    (tmp_path / "dataset.json").write_text(json.dumps(members | more))
    return str(tmp_path)


def test_predictions_are_read_again_by_their_description(tmp_path):
    found = Data(described(tmp_path))
    assert [(one.place, one.values) for one in found.read(found.files[0])] == [("a.jsonl, row 1", {"n": 1})]
    with pytest.raises(PrepareError, match="no split 'test': it has predictions"):
        Data(str(tmp_path), split="test")
    with pytest.raises(PrepareError, match="missing, or of another size"):
        Data(described(tmp_path, splits={"test": [{"path": "b.jsonl", "records": 1, "size": 9}]}))


def test_labels_of_an_archive_with_a_top_folder_are_those_of_its_classes(tmp_path):
    for path in ("aclImdb/test/pos/1.txt", "aclImdb/test/neg/1.txt", "aclImdb/train/pos/2.txt", "aclImdb/urls.txt"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path)
    data = Data(str(tmp_path))
    found = {one.file: one.values for file in data.files for one in data.read(file)}
    assert {path: values.get("label") for path, values in found.items()} == {
        "aclImdb/test/neg/1.txt": "neg",
        "aclImdb/test/pos/1.txt": "pos",
        "aclImdb/train/pos/2.txt": "pos",
        "aclImdb/urls.txt": None,
    }


def test_tables_of_tabs_and_compressed_ones_are_read(tmp_path):
    (tmp_path / "a.tsv").write_text("x\ty\n1\ta, b\n")
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"x;y\n2;c\n"))
    data = Data(str(tmp_path))
    assert [data.expected(file) for file in data.files] == [2, 2]
    found = [(one.place, one.values) for file in data.files for one in data.read(file)]
    assert found == [("a.tsv, row 2", {"x": "1", "y": "a, b"}), ("b.csv.gz, row 2", {"x": "2", "y": "c"})]


def test_a_reader_of_shards_says_that_predictions_are_json_lines(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tensorflow", object())
    with pytest.raises(DataError, match="has JSON lines"):
        dataset(described(tmp_path), split="predictions")


def part(worker, bad, kind="float", **more):
    feature = {"kind": kind, "shape": [], "encoding": ""}
    shard = {"path": f"predictions/{worker}.jsonl", "records": 2, "size": 9}
    members = {
        "plan": "p", "worker": worker, "workers": 2, "compression": "", "file_format": "jsonl", "most_bad": 3,
        "features": {"n": feature}, "splits": {"predictions": [shard]}, "counts": {}, "label": "", "classes": [],
        "statistics": {}, "histograms": {}, "bad": [f"{worker}.csv, row 2: no number"] * bad, "bad_count": bad,
    }  # fmt: skip
    return json.dumps(members | more)


def test_the_parts_of_all_workers_are_one_description():
    found = merged_texts([part(1, 1, "int64"), part(0, 2)])
    about = from_text(found["text"])
    assert (found["records"], found["skipped"], about.file_format) == (4, 3, "jsonl")
    assert about.features["n"].kind == "float"
    assert [one.path for one in about.splits["predictions"]] == ["predictions/0.jsonl", "predictions/1.jsonl"]


def test_the_bound_on_bad_records_holds_for_all_workers_together():
    error = merged_texts([part(0, 2), part(1, 2)])["error"]
    assert error.endswith("4 bad records in all, more than 3; the first of one worker: 0.csv, row 2: no number")


@pytest.mark.parametrize("path", sorted(Path(feeding.__file__).parent.glob("*.py")), ids=lambda path: path.stem)
def test_every_file_is_python_3_8(path):
    ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))


def test_a_cell_may_be_no_number_or_infinite_where_that_was_written():
    assert [str(feeding._number(WIDE, text)) for text in ("nan", "-Infinity", "1.5")] == ["nan", "-inf", "1.5"]
    for text, words in (("1e999", "too large"), ("nothing", "is no float32"), ("", "is no float32")):
        with pytest.raises(BadRequest, match=words):
            feeding._number(WIDE, text)
