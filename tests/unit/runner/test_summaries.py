"""What of `tf.summary` is kept beside scalars: images, histograms, texts and hyperparameters, within bounds."""

from __future__ import annotations

import json
import os
import struct
import zlib
from pathlib import Path

import pytest

from tests.unit.runner.event_writer import event, field, framed, scalar, varint
from yardmaster_runner import summaries, summary_values
from yardmaster_runner.events import EventFiles
from yardmaster_runner.protowire import WireError
from yardmaster_runner.summaries import NEWEST_IMAGES, NEWEST_TEXTS, STEPS_OF_HISTOGRAM, Summaries
from yardmaster_runner.summary_values import BUCKETS, image_of, read_summary, size_of_image

JPEG = b"\xff\xd8\xff\xe0\x00\x10" + b"J" * 14 + b"\xff\xc0\x00\x11\x08\x00\x05\x00\x07" + b"\x03" * 10


def png(width: int = 2, height: int = 3, more: bytes = b"") -> bytes:
    head = b"IHDR" + struct.pack(">II", width, height) + b"\x08\x00\x00\x00\x00"
    return summary_values.PNG + struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head)) + more


def tensor(kind: int, *, content: bytes = b"", strings: tuple[bytes, ...] = ()) -> bytes:
    return b"\x08" + varint(kind) + (field(4, content) if content else b"") + b"".join(field(8, one) for one in strings)


def value(tag: str, plugin: str, what: bytes = b"", data: bytes = b"") -> bytes:
    """As TensorFlow 2 writes it."""
    metadata = field(1, field(1, plugin.encode()) + (field(2, data) if data else b""))
    return field(1, tag.encode()) + (field(8, what) if what else b"") + field(9, metadata)


def images(tag: str, *files: bytes) -> bytes:
    return value(tag, "images", tensor(7, strings=(b"2", b"3", *files)))


def histogram(tag: str, *rows: tuple[float, float, float]) -> bytes:
    return value(tag, "histograms", tensor(2, content=b"".join(struct.pack("<3d", *row) for row in rows)))


def hparams(**values: object) -> bytes:
    def of(one: object) -> bytes:
        if isinstance(one, bool):
            return b"\x20" + varint(one)
        return field(3, one.encode()) if isinstance(one, str) else b"\x11" + struct.pack("<d", one)

    entries = b"".join(field(1, field(1, name.encode()) + field(2, of(one))) for name, one in values.items())
    return value("_hparams_/session_start_info", "hparams", data=field(3, entries))


def index_of(found: Summaries) -> dict:
    found.listing(True)
    return json.loads(Path(found.folder, "index.json").read_bytes())


@pytest.fixture
def kept(tmp_path: Path) -> Summaries:
    return Summaries(str(tmp_path / "summaries"))


def test_each_kind_is_found_in_an_event_file_and_scalars_stay_curves(tmp_path, kept):
    made = [
        scalar("loss", 0.5), images("plane", png()), histogram("weights", (0.0, 1.0, 4.0)),
        value("note", "text", tensor(7, strings=(b"<b>bold</b>",))), hparams(units=16, optimizer="adam", fast=True),
    ]  # fmt: skip
    (tmp_path / "log" / "train").mkdir(parents=True)
    (tmp_path / "log" / "train" / "events.out.tfevents.1").write_bytes(framed(event(step=7, time=2.5, summary=made)))
    found = EventFiles(str(tmp_path / "log"), others=kept.take).look()
    assert [one.tag for one in found.scalars] == ["loss"]
    index = index_of(kept)
    (image,) = index["images"]
    assert (image["run"], image["tag"]) == ("train", "plane")
    assert {**image["steps"][0], "file": ""} == {"step": 7, "time": 2.5, "file": "", "width": 2, "height": 3}
    assert Path(kept.folder, image["steps"][0]["file"]).read_bytes() == png()
    assert index["histograms"][0]["steps"][0]["counts"] == pytest.approx([4 / BUCKETS] * BUCKETS)
    assert index["texts"][0]["steps"] == [{"step": 7, "time": 2.5, "text": "<b>bold</b>"}]
    assert index["hparams"] == [
        {"run": "train", "time": 2.5, "values": {"units": 16, "optimizer": "adam", "fast": True}}
    ]
    assert [one.stored_as for one in kept.listing(True).files] == [
        f"_summaries/{image['steps'][0]['file']}", "_summaries/index.json",
    ]  # fmt: skip


def test_images_and_histograms_of_tensorflow_1_are_known():
    found = read_summary(field(1, b"old") + field(4, b"\x08\x03" + field(4, png())))
    assert found is not None
    assert found.images[0].data == png()
    limits, counts = struct.pack("<2d", 1.0, 2.0), struct.pack("<2d", 5.0, 15.0)
    found = read_summary(
        field(1, b"old") + field(5, b"\x09" + struct.pack("<d", 0.0) + field(6, limits) + field(7, counts))
    )
    assert found is not None
    assert found.histogram is not None
    assert (found.histogram.left, found.histogram.right, sum(found.histogram.counts)) == (0, 2, pytest.approx(20))
    assert sum(found.histogram.counts[: BUCKETS // 2]) == pytest.approx(5)


@pytest.mark.parametrize(
    "data",
    [
        b"<svg onload=alert(1)>", b"GIF89a", b"", png(0, 3), png(100_000, 3), png(more=b"0" * (256 << 10)),
        summary_values.PNG, b"\xff\xd8\xff" + b"\xff" * 100, b"\xff\xd8\xff\xe0\x00\x00" * 50,
    ],
)  # fmt: skip
def test_what_is_no_small_png_or_jpeg_is_no_image(data):
    assert image_of(data) is None


def test_the_size_of_an_image_is_that_of_its_own_head():
    assert size_of_image(png(5, 6)) == (5, 6)
    assert size_of_image(JPEG) == (7, 5)
    found = image_of(JPEG)
    assert found is not None
    assert found.ending == ".jpg"


def test_only_the_newest_images_of_a_tag_are_kept_under_names_that_are_used_again(kept):
    for step in range(3 * NEWEST_IMAGES):
        kept.take(images("plane", png(step + 1, 1)), ".", step, 1.0)
    (plane,) = index_of(kept)["images"]
    assert [one["step"] for one in plane["steps"]] == list(range(2 * NEWEST_IMAGES, 3 * NEWEST_IMAGES))
    assert [one["width"] for one in plane["steps"]] == [one["step"] + 1 for one in plane["steps"]]
    assert len(os.listdir(Path(kept.folder, "images"))) == NEWEST_IMAGES


def test_a_value_of_many_images_has_some_of_them(kept):
    kept.take(images("batch", *[png()] * 10), ".", 1, 1.0)
    assert [one["tag"] for one in index_of(kept)["images"]] == ["batch", "batch (2)", "batch (3)"]


def test_tags_steps_and_texts_are_bounded_and_what_is_left_out_is_counted(kept):
    for number in range(summaries.MOST_TAGS["texts"] + 3):
        for step in range(NEWEST_TEXTS + 2):
            kept.take(value(f"t{number}", "text", tensor(7, strings=(b"x" * 10_000,))), ".", step, 1.0)
    for step in range(1_000):
        kept.take(histogram("weights", (0.0, 1.0, 4.0)), ".", step, 1.0)
    index = index_of(kept)
    assert len(index["texts"]) == summaries.MOST_TAGS["texts"]
    assert index["left_out"] == {"texts": 3}
    assert {len(one["steps"]) for one in index["texts"]} == {NEWEST_TEXTS}
    assert len(index["texts"][0]["steps"][0]["text"]) == summary_values.LONGEST_TEXT
    steps = [one["step"] for one in index["histograms"][0]["steps"]]
    assert (len(steps) <= STEPS_OF_HISTOGRAM, steps[0], steps[-1]) == (True, 0, 999)


def test_the_index_of_the_most_that_is_kept_is_one_that_the_portal_reads(kept):
    from yardmaster.formats.summaries import LARGEST_INDEX, read_index

    wide = "\U0001f600".encode() * 5_000
    for tag in range(60):
        name = f"{tag}" + "\U0001f600" * 300
        for step in range(STEPS_OF_HISTOGRAM):
            rows = [(-1.23456e-200 * n, 1.23456e200 * (n + 1), 1.23456e20) for n in range(3)]
            kept.take(histogram(name, *rows), name, step, 1.0)
        for step in range(NEWEST_TEXTS):
            kept.take(value(name, "text", tensor(7, strings=(wide,))), name, step, 1.0)
        for step in range(NEWEST_IMAGES):
            kept.take(images(name, png()), name, step, 1.0)
        kept.take(hparams(**{f"{n}" + "\U0001f600" * 200: "\U0001f600" * 200 for n in range(50)}), name, 1, 1.0)
    kept.listing(True)
    data = Path(kept.folder, "index.json").read_bytes()
    assert len(data) < LARGEST_INDEX
    found = read_index(data)
    assert (len(found.images), len(found.histograms), len(found.texts), len(found.hparams)) == (30, 50, 20, 30)


@pytest.mark.parametrize(
    "message",
    [
        value("x", "images", tensor(7, strings=(b"2", b"3"))), value("x", "histograms", tensor(7, strings=(b"x",))),
        value("x", "histograms", tensor(2, content=b"1234567")), value("x", "text", tensor(1, content=b"1234")),
        value("x", "hparams"), value("x", "custom", tensor(7, strings=(b"x",))), field(1, b"x"), b"",
        histogram("x", (float("nan"), 1.0, 2.0)), histogram("x", (0.0, float("inf"), 2.0)),
        histogram("x", (0.0, 1.0, -1.0)),
    ],
)  # fmt: skip
def test_what_holds_nothing_to_show_is_passed_over(kept, message):
    kept.take(message, ".", 1, 1.0)
    assert kept.listing(True).files == [] or not any(
        one["steps"] for kind in ("images", "histograms", "texts") for one in index_of(kept)[kind]
    )


def test_broken_messages_are_passed_over_and_the_file_is_read_on(tmp_path, kept):
    broken = field(1, b"x") + field(5, b"\xff\xff")
    with pytest.raises(WireError):
        read_summary(broken)
    (tmp_path / "log").mkdir()
    path = tmp_path / "log" / "events.out.tfevents.1"
    path.write_bytes(framed(event(step=1, summary=[broken, scalar("loss", 1.0)])))
    assert [one.tag for one in EventFiles(str(tmp_path / "log"), others=kept.take).look().scalars] == ["loss"]


def test_characters_that_no_one_can_see_are_taken_out(kept):
    kept.take(value("a\x00b\u202e", "text", tensor(7, strings=(b"one\ntwo\x1b[31m",))), "r\n", 1, 1.0)
    (text,) = index_of(kept)["texts"]
    assert (text["run"], text["tag"], text["steps"][0]["text"]) == ("r", "ab", "one\ntwo[31m")
