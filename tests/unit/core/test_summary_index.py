"""The index of summaries as a task may send it: what is believed of it, and what is not."""

from __future__ import annotations

import json

import pytest

from yardmaster.formats.summaries import (
    LARGEST_IMAGE,
    LARGEST_INDEX,
    MOST_SERIES,
    Summaries,
    image_type,
    is_image_file,
    merged,
    read_index,
)

FILE = "images/0123456789abcdef-0.png"
IMAGE = {"step": 3, "time": 1.5, "file": FILE, "width": 4, "height": 5}
HISTOGRAM = {"step": 3, "time": 1.5, "left": 0, "right": 2.0, "counts": [1, 2.5]}


def index(**changes: object) -> bytes:
    return json.dumps({"version": 1, **changes}).encode()


def series(*steps: object, **changes: object) -> list[dict]:
    return [{"run": "train", "tag": "x", "steps": list(steps), **changes}]


def test_each_kind_is_read():
    found = read_index(
        index(
            images=series(IMAGE), histograms=series(HISTOGRAM), texts=series({"step": 1, "time": 2, "text": "hello"}),
            hparams=[{"run": "a", "time": 1, "values": {"units": 16, "name": "adam", "fast": True}}],
            left_out={"images": 2, "texts": 1},
        ),
        "_summaries/",
    )  # fmt: skip
    assert (found.images[0].folder + found.images[0].steps[0].file) == f"_summaries/{FILE}"
    assert found.histograms[0].steps[0].counts == (1.0, 2.5)
    assert found.texts[0].steps[0].text == "hello"
    assert found.hparams[0].values == {"units": 16.0, "name": "adam", "fast": True}
    assert found.left_out == 3


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{", b"[]", b"null", index(version=2), b"[" * 100_000, b"\xff\xfe", index() + b" " * LARGEST_INDEX,
        index(images={}, histograms=7, texts="x", hparams=None, left_out=[]), index(images=[1, None, "x"]),
    ],
)  # fmt: skip
def test_what_is_no_index_says_nothing(data):
    assert read_index(data) == Summaries()


@pytest.mark.parametrize(
    "step",
    [
        IMAGE | {"file": "../../secret.png"}, IMAGE | {"file": "images/x.png"}, IMAGE | {"file": FILE + "\n"},
        IMAGE | {"width": 0}, IMAGE | {"file": 7}, "x", {},
    ],
)  # fmt: skip
def test_an_image_that_is_none_is_left_out(step):
    assert read_index(index(images=series(step))).images == ()


@pytest.mark.parametrize(
    "changes",
    [{"counts": []}, {"counts": [1] * 101}, {"counts": ["x"]}, {"left": 2}, {"right": 1e999}, {"counts": None}],
)
def test_a_histogram_that_cannot_be_drawn_is_left_out(changes):
    assert read_index(index(histograms=series(HISTOGRAM | changes))).histograms == ()


def test_lists_and_texts_are_bounded():
    many = [{"run": "r" * 1_000, "tag": str(number), "steps": [IMAGE] * 120} for number in range(150)]
    found = read_index(index(images=many, texts=series({"step": 1, "text": "x" * 100_000})))
    assert len(found.images) == MOST_SERIES
    assert (len(found.images[0].steps), len(found.images[0].run), len(found.texts[0].steps[0].text)) == (
        100,
        200,
        4_000,
    )


def test_of_two_tasks_the_series_that_goes_further_is_shown():
    one = read_index(index(images=series(IMAGE)), "_summaries/")
    other = read_index(index(images=series(IMAGE | {"step": 9})), "evaluator-0/_summaries/")
    both = merged([one, other])
    assert [(one.steps[-1].step, one.folder) for one in both.images] == [(9, "evaluator-0/_summaries/")]
    assert merged([]).is_empty


def test_an_image_is_known_by_its_first_bytes():
    assert image_type(b"\x89PNG\r\n\x1a\n...") == "image/png"
    assert image_type(b"\xff\xd8\xff\xe0") == "image/jpeg"
    assert image_type(b"<svg>") is None
    assert image_type(b"\x89PNG\r\n\x1a\n" + b"0" * LARGEST_IMAGE) is None
    assert is_image_file(FILE)
    assert not is_image_file("index.json")
