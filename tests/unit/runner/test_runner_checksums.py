"""Checksums as object stores keep them: plain, and of parts."""

from __future__ import annotations

import hashlib

import pytest

from yardmaster_runner import checksums
from yardmaster_runner.checksums import Checksum, of_parts, part_size_of

MIB = 1 << 20


def _of(data: bytes, like: str = "", step: int = 1 << 20) -> str:
    checksum = Checksum(len(data), like)
    for at in range(0, len(data), step):
        checksum.update(data[at : at + step])
    return checksum.text()


@pytest.mark.parametrize("data", [b"", b"abc", b"x" * (9 * MIB)])
def test_without_a_form_it_is_the_plain_one(data):
    assert _of(data) == hashlib.sha256(data).hexdigest() == _of(data, "0" * 64)


@pytest.mark.parametrize("step", [1000, MIB, 3 * MIB, 64 * MIB])
@pytest.mark.parametrize("size", [8 * MIB + 1, 16 * MIB, 16 * MIB + 5])
def test_of_parts_it_is_that_of_their_checksums_however_the_bytes_come(size, step):
    data = bytes(range(256)) * (size // 256) + b"t" * (size % 256)
    pieces = [data[at : at + 8 * MIB] for at in range(0, size, 8 * MIB)]
    expected = of_parts(hashlib.sha256(one).hexdigest() for one in pieces)
    assert expected.endswith(f"-{len(pieces)}")
    assert _of(data, expected, step) == expected


def test_one_part_is_the_file():
    assert of_parts([hashlib.sha256(b"a").hexdigest()]) == hashlib.sha256(b"a").hexdigest()


def test_the_number_of_parts_says_how_large_they_are(monkeypatch):
    assert part_size_of(100 << 30, "0-6400") == 16 * MIB
    assert part_size_of(100 << 30, "0-12800") == 8 * MIB
    assert part_size_of(9 * MIB, "0-2") == 8 * MIB
    assert part_size_of(9 * MIB, "0") == 0
    for size, count in ((9 * MIB, 3), (MIB, 2), (0, 1), (9 * MIB, 0)):
        with pytest.raises(ValueError, match="is no checksum"):
            part_size_of(size, f"0-{count}")


@pytest.mark.parametrize("count", ["", "x", "-1", "1.5"])
def test_a_number_of_parts_that_is_none_is_refused(count):
    with pytest.raises(ValueError):  # noqa: PT011 - the number's own
        part_size_of(9 * MIB, f"0-{count}")


def test_the_usual_size_of_parts_is_the_stores(settings):
    from apps.uploads.manifest import part_size_for

    assert part_size_for(1) == checksums.PART_SIZE
