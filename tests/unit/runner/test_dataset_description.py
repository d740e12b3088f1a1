"""`dataset.json`: what is written is read back, and what is no description is refused with the member at fault."""

from __future__ import annotations

import json

import pytest

from yardmaster_runner.data.description import BadDescription, Description, Feature, Shard, from_text, to_text

WHOLE = Description(
    features={
        "image": Feature("bytes", (28, 28), "raw:uint8"),
        "label": Feature("int64"),
        "ids": Feature("int64", None),
    },
    splits={"train": (Shard("train/a.tfrecord", 9, 900),), "validation": (Shard("validation/b.tfrecord", 1, 100),)},
    compression="GZIP",
    label="label",
    classes=("cat", "dog"),
    counts={"train": {"cat": 4, "dog": 5}, "validation": {"cat": 1}},
    statistics={"label": {"mean": 0.5, "min": 0.0}},
)


def test_a_description_is_read_back_as_it_was_written() -> None:
    assert from_text(to_text(WHOLE)) == WHOLE
    assert to_text(from_text(to_text(WHOLE))) == to_text(WHOLE)
    assert WHOLE.records("train") == 9


@pytest.mark.parametrize(
    ("member", "value", "named"),
    [
        ("format", "other", "format"),
        ("version", 2, "version is 2"),
        ("compression", "ZSTD", "compression is 'ZSTD'"),
        ("features", [], "features"),
        ("features", {"x": {"kind": "int8"}}, "features.x.kind"),
        ("features", {"x": {"kind": "int64", "shape": [-1]}}, "features.x.shape"),
        ("features", {"x": {"kind": "int64", "encoding": "image"}}, "features.x.encoding"),
        ("splits", {"train": [{"path": "../a", "records": 1, "size": 1}]}, "splits.train[0].path"),
        ("splits", {"train": [{"path": "a", "records": "1", "size": 1}]}, "splits.train[0].records"),
        ("splits", {"train": [{"path": "a"}]}, "records"),
        ("counts", [1], "incomplete"),
    ],
)
def test_a_wrong_member_is_named(member: str, value: object, named: str) -> None:
    members = {**json.loads(to_text(WHOLE)), member: value}
    with pytest.raises(BadDescription) as refused:
        from_text(json.dumps(members))
    assert named in str(refused.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"format": 3}', "[" * 100_000])
def test_what_is_no_description_is_refused(text: str) -> None:
    with pytest.raises(BadDescription):
        from_text(text)
