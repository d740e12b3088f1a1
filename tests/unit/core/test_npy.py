"""What a page shows of a NumPy array, whatever the file says of itself."""

from __future__ import annotations

import base64
import json
import struct

import pytest

from tests.unit.datasets.test_dataset_pictures_and_bars import pixels_of
from yardmaster.formats.npy import summary


def npy(descr, shape, body=b"", *, fortran=False, version=1) -> bytes:
    header = repr({"descr": descr, "fortran_order": fortran, "shape": shape}).encode() + b"\n"
    length = len(header).to_bytes(4 if version >= 2 else 2, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + body


def shown(data: bytes, size: int | None = None) -> dict:
    found = summary(base64.b64encode(data).decode(), len(data) if size is None else size)
    json.dumps(found, allow_nan=False)
    return found


@pytest.mark.parametrize("version", [1, 2, 3])
def test_type_shape_and_first_values(version):
    body = struct.pack("<6f", 0, 0.5, -1, 1e9, float("nan"), 3)
    found = shown(npy("<f4", (2, 3), body, version=version))
    assert (found["dtype"], found["shape"], found["problem"], found["pictures"]) == ("float32", [2, 3], "", [])
    assert found["rows"] == [["0", "0.5", "-1"], ["1e+09", "nan", "3"]]
    assert shown(npy(">i2", (3,), struct.pack(">3h", 1, 2, 258)))["rows"] == [["1"], ["2"], ["258"]]
    assert shown(npy("|b1", (), b"\x01"))["rows"] == [["True"]]


def test_arrays_that_look_like_pictures_are_shown_as_some():
    found = shown(npy("|u1", (2, 8, 9), bytes(144)))
    assert len(found["pictures"]) == 2
    assert pixels_of(found["pictures"][0])[:3] == (9, 8, 0)
    colours = shown(npy("<f8", (1, 8, 8, 3), struct.pack("<192d", *range(192))))
    width, height, colour, samples = pixels_of(colours["pictures"][0])
    assert (width, height, colour, samples[0], samples[-1]) == (8, 8, 2, 0, 255)
    assert len(shown(npy("<f4", (32, 32), bytes(4096)))["pictures"]) == 1
    for shape in [(150, 4), (20, 20), (3, 300, 300), (2, 8, 200)]:
        assert shown(npy("|u1", shape, bytes(300_000)))["pictures"] == []
    broken = struct.pack("<64f", *[float("inf")] * 64)
    assert shown(npy("<f4", (1, 8, 8), broken))["pictures"] == []


def test_a_large_file_shows_what_lies_in_its_first_bytes():
    found = shown(npy("|u1", (1000, 8, 8), bytes(150)), size=len(npy("|u1", (1000, 8, 8))) + 64_000)
    assert (len(found["pictures"]), len(found["rows"]), found["problem"]) == (2, 3, "")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"\x93NUMPY\x01\x00", "does not begin"),
        (npy("<f4", (2,))[:20], "ends within its header"),
        (b"\x93NUMPY\x02\x00" + (10**9).to_bytes(4, "little") + b" " * 50, "more than 10,000"),
        (npy("<f4", (-1,)), "no shape that can be"),
        (npy("<f4", (1.5,)), "no shape that can be"),
        (npy("<f4", (1,) * 33), "no shape that can be"),
        (npy("<f4", (True,)), "no shape that can be"),
        (npy("<f4", (2, 2), b"12345"), "The file has 5 bytes of items; its header says 16."),
        (b"\x93NUMPY\x01\x00\x08\x00" + b"(" * 7 + b"\n", "cannot be read"),
        (b"\x93NUMPY\x01\x00\x0c\x00" + b"__import__()", "cannot be read"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_said(data, problem):
    assert problem in shown(data)["problem"]


@pytest.mark.parametrize("descr", ["|O", "<U9", "<c8", [("a", "<f4")], "", "<M8[s]", "V4" * 100, "\ud800\0"])
def test_items_that_are_no_numbers_are_not_shown(descr):
    found = shown(npy(descr, (2,), b"cos\nsystem\n"))
    assert found["rows"] == []
    assert "not numbers" in found["note"]
    assert len(found["dtype"].encode()) <= 50


def test_lengths_beyond_the_file_cost_nothing():
    found = shown(npy("<f8", (2**62, 2**62, 3), bytes(80)))
    assert (len(found["rows"]), len(found["rows"][0])) == (1, 10)
    assert found["problem"].startswith("The file has 80 bytes of items")
    assert shown(npy("|u1", (0, 8, 8)))["rows"] == []
    assert shown(npy("<f4", (4, 5), bytes(80), fortran=True))["note"].startswith("In Fortran order")
