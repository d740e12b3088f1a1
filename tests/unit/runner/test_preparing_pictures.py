"""Which pictures are whole, and how large they are, without a library."""

from __future__ import annotations

import struct

import pytest

from yardmaster.formats.png import png_of
from yardmaster_runner.prepare.pictures import size_of

PNG = png_of(bytes(range(60)), 6, 1)
JPEG = (
    b"\xff\xd8\xff\xe0\x00\x10JFIF\0\1\1\0\0\1\0\1\0\0"  # with a thumbnail's length of nothing
    b"\xff\xff\xc2\x00\x11\x08\x00\x14\x00\x1e\x03\x01\x22\0\x02\x11\1\x03\x11\1"
    b"\xff\xda\0\x0c\3\1\0\2\x11\3\x11\0\x3f\0data\xff\xd9"
)
GIF = b"GIF89a" + struct.pack("<HHBBB", 7, 9, 0, 0, 0) + b",data\0;"
BMP = b"BM" + struct.pack("<IIIIiiHHIIiiII", 54 + 24, 0, 54, 40, 2, -3, 1, 24, 0, 24, 0, 0, 0, 0) + bytes(24)


@pytest.mark.parametrize(
    ("data", "size"), [(PNG, (6, 10)), (JPEG, (30, 20)), (GIF, (7, 9)), (BMP, (2, 3)), (JPEG + b"more", (30, 20))]
)
def test_the_size_of_a_whole_picture(data, size):
    assert size_of(data) == size


@pytest.mark.parametrize("data", [PNG, JPEG, GIF, BMP], ids=["png", "jpeg", "gif", "bmp"])
def test_a_picture_that_is_cut_off_anywhere_is_refused_in_words(data):
    for end in range(len(data)):
        with pytest.raises(ValueError, match=r"not a|cut off"):
            size_of(data[:end])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"<html>", "not a picture in"),
        (PNG[:40] + b"x" + PNG[41:], "checksum"),
        (JPEG.replace(b"\xff\xc2", b"\xff\xc3"), "does not decode"),
        (JPEG.replace(b"\xff\xff\xc2", b"\xff\xfe\xc2"), "not a whole picture"),
        (JPEG.replace(b"\x00\x14\x00\x1e", b"\0\0\0\x1e"), "no size"),
        (b"\xff\xd8\xff" + b"\xff" * 100_000 + b"\xff\xd9", "without a frame"),
        (BMP.replace(struct.pack("<i", -3), struct.pack("<i", 2**31 - 1)), "cut off"),
    ],
)
def test_what_is_wrong_with_a_picture_is_said(data, words):
    with pytest.raises(ValueError, match=words):
        size_of(data)
