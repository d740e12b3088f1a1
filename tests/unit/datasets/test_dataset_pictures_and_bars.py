"""Pixels of a feature as a picture, and counts as bars."""

from __future__ import annotations

import base64
import struct
import zlib

import pytest

from apps.datasets.pages import MOST, bars_of
from apps.datasets.record_preview import picture_of


def pixels_of(address: str) -> tuple[int, int, int, bytes]:
    """Width, height, colour type and samples of a PNG in a data address, read anew."""
    png = base64.b64decode(address.removeprefix("data:image/png;base64,"))
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    at, chunks = 8, {}
    while at < len(png):
        (length,) = struct.unpack_from(">I", png, at)
        kind, data = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", png, at + 8 + length)[0] == zlib.crc32(kind + data)
        chunks[kind] = data
        at += 12 + length
    width, height, depth, colour = struct.unpack_from(">IIBB", chunks[b"IHDR"])
    assert depth == 8
    rows = zlib.decompress(chunks[b"IDAT"])
    stride = len(rows) // height
    return width, height, colour, b"".join(rows[i + 1 : i + stride] for i in range(0, len(rows), stride))


def test_the_pixels_of_a_digit_are_a_picture_from_dark_to_bright():
    width, height, colour, samples = pixels_of(picture_of("image", [n / 63 for n in range(64)]))
    assert (width, height, colour) == (8, 8, 0)
    assert (samples[0], samples[-1]) == (0, 255)
    assert list(samples) == sorted(samples)


def test_three_values_a_pixel_are_colours():
    width, height, colour, samples = pixels_of(picture_of("image/pixels", [255, 0, 0] * 16))
    assert (width, height, colour) == (4, 4, 2)
    assert samples == bytes([255, 0, 0] * 16)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("label", [1] * 64),
        ("image", [1] * 63),
        ("image", [1] * 4),
        ("image", [1.0] * (200 * 200)),
        ("image", [float("nan")] * 64),
        ("image", [b"x"] * 64),
        ("image", []),
    ],
)
def test_anything_else_is_no_picture(name, values):
    assert picture_of(name, values) == ""


def test_a_picture_of_one_brightness_is_a_picture():
    assert set(pixels_of(picture_of("image", [7] * 64))[3]) == {0}


def test_bars_are_of_one_scale():
    found = bars_of({"0": 10, "1": 40, "2": 50})
    assert [(bar.label, bar.count, bar.width, bar.share) for bar in found.bars] == [
        ("0", 10, 20.0, 10.0),
        ("1", 40, 80.0, 40.0),
        ("2", 50, 100.0, 50.0),
    ]
    assert (found.classes, found.smallest, found.largest) == (3, 10, 50)


def test_of_very_many_classes_the_most_frequent_are_shown():
    found = bars_of({str(n): n for n in range(1, 1000)})
    assert len(found.bars) == MOST
    assert found.bars[0].count == 999
    assert found.classes == 999


def test_no_counts_are_no_bars():
    assert bars_of({}).bars == []
