"""Examples of the training data in the form of "Try it"."""

from __future__ import annotations

import gzip
import io
import json
import time
from types import SimpleNamespace

import pytest

from apps.serving import samples
from apps.serving.samples import _filled
from apps.uploads.selectors import StoredFile
from tests.integration.sending import tfrecord
from tests.unit.serving.test_try_it import example_form, form_of
from yardmaster.formats.tf_example import Feature
from yardmaster_runner.data import example_bytes


def test_the_only_input_takes_the_feature_that_has_its_size():
    form = form_of(images=("float32", (None, 2, 2)))
    example = {"label": Feature("int64", (3,), 1), "image": Feature("float", (0.5, 1.0, 0.25, 0.0), 4)}
    filled = _filled(form, example)
    assert filled is not None
    assert json.loads(filled.fields[0].value) == [[0.5, 1.0], [0.25, 0.0]]


def test_several_inputs_take_the_features_of_their_names():
    form = form_of(age=("int64", (None,)), text=("string", (None,)))
    example = {"age": Feature("int64", (40,), 1), "text": Feature("bytes", (b"good",), 1, (4,))}
    filled = _filled(form, example)
    assert filled is not None
    assert [field.value for field in filled.fields] == ["40", "good"]
    assert _filled(form, {"age": Feature("int64", (40,), 1)}) is None


def test_a_form_of_an_example_takes_all_features_as_they_are():
    features = {
        "x": Feature("float", (2.0, 0.1), 2), "label": Feature("int64", (3,), 1), "none": Feature("float", (), 0),
        "name": Feature("bytes", (b"Ada",), 1, (3,)), "image": Feature("bytes", (b"\xff\x00",), 1, (2,)),
    }  # fmt: skip
    filled = _filled(example_form(), features)
    assert filled.fields[0].value == (
        '{"x": [2.0, 0.1], "label": 3, "none": [], "name": "Ada", "image": {"b64": "/wA="}}'
    )
    for cut in (Feature("float", (1.0,), 9), Feature("bytes", (b"ab",), 1, (9,))):
        assert _filled(example_form(), {**features, "x": cut}) is None
    assert _filled(example_form(), {"x": Feature("bytes", (b"a" * 300_000,), 1, (300_000,))}) is None


@pytest.mark.parametrize(
    "feature",
    [Feature("float", (1.0,), 1), Feature("float", (1.0, 2.0), 9), Feature("bytes", (b"ab",), 1, (2,)),
     Feature("bytes", (b"\xff",), 1, (1,)), Feature("", (), 0)],
)  # fmt: skip
def test_a_feature_of_another_size_or_kind_or_that_was_cut_off_is_no_sample(feature):
    assert _filled(form_of(x=("float32", (None, 4))), {"x": feature}) is None


def records_of(monkeypatch, path, content):
    """What is found in one file of this content."""
    store = SimpleNamespace(open_range=lambda key, start=0, length=None: io.BytesIO(content[:length]))
    monkeypatch.setattr(samples, "storage", lambda: store)
    return list(samples._records([StoredFile(path, len(content), "", "key")], until=time.monotonic() + 60))


RECORDS = b"".join(tfrecord(example_bytes.example({"n": ("int64", [n])})) for n in range(3))


def test_compressed_shards_give_samples_too_and_damaged_ones_what_comes_before(monkeypatch):
    packed = gzip.compress(RECORDS)
    for path, content in (("a.tfrecord", RECORDS), ("a.tfrecord.gz", packed), ("a.tfrecords.gz", packed)):
        assert [one["n"].values for one in records_of(monkeypatch, path, content)] == [(0,), (1,), (2,)]
    assert len(records_of(monkeypatch, "a.tfrecord.gz", packed[:-12])) < 3
    assert records_of(monkeypatch, "a.tfrecord.gz", b"no gzip") == []


def test_of_a_compressed_shard_no_more_is_unpacked_than_is_looked_at(monkeypatch):
    monkeypatch.setattr(samples, "_LOOKED_AT", len(RECORDS) // 3 + 5)
    assert len(records_of(monkeypatch, "a.tfrecord.gz", gzip.compress(RECORDS))) <= 1


def test_all_inputs_together_have_so_much_time_and_the_first_record_is_always_read(monkeypatch):
    store = SimpleNamespace(open_range=lambda key, start=0, length=None: io.BytesIO(RECORDS))
    file = StoredFile("a.tfrecord", len(RECORDS), "", "key")
    parsed: list[bytes] = []

    def parse(data: bytes, most: int) -> dict[str, Feature]:
        parsed.append(data)
        return {"n": Feature("int64", (7,), 1)}

    monkeypatch.setattr(samples, "storage", lambda: store)
    monkeypatch.setattr(samples, "_files_of_inputs", lambda user, version: iter([[file]] * 20))
    monkeypatch.setattr(samples, "parse_example", parse)
    fitting, other = form_of(n=("int64", (None,))), form_of(x=("float32", (None, 9)))
    assert samples.sample_in(other, None, None, 0) is None
    assert len(parsed) == 60
    monkeypatch.setattr(samples, "PATIENCE", -1.0)
    parsed.clear()
    assert samples.sample_in(other, None, None, 0) is None
    assert len(parsed) == 1
    assert samples.sample_in(fitting, None, None, 5).fields[0].value == "7"


@pytest.mark.parametrize(("patience", "read"), [(60.0, 20), (-1.0, 1)])
def test_descriptions_are_looked_for_in_bounded_time(monkeypatch, patience: float, read: int):
    opened: list[str] = []

    def open_range(key: str) -> io.BytesIO:
        opened.append(key)
        return io.BytesIO(b"{}")

    file = StoredFile("dataset.json", 2, "", "key")
    monkeypatch.setattr(samples, "storage", lambda: SimpleNamespace(open_range=open_range))
    monkeypatch.setattr(samples, "_files_of_inputs", lambda user, version: iter([[file]] * 20))
    monkeypatch.setattr(samples, "PATIENCE", patience)
    assert samples.classes_of(None, None) == []
    assert len(opened) == read
