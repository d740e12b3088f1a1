"""Zips that are made while they are sent can be read by other programs, whatever is in them."""

from __future__ import annotations

import io
import os
import tracemalloc
import zipfile
from collections.abc import Iterator

import pytest

from apps.uploads import zip_stream
from apps.uploads.selectors import StoredFile
from apps.uploads.zip_stream import zip_chunks
from yardmaster.storage.zips import Zip

CONTENT = {"a/b.txt": b"x" * 200_000, "empty": b"", "名/é.txt": b"\0\1", "noise": os.urandom(300_000)}


def _files(content: dict[str, bytes]) -> list[StoredFile]:
    return [StoredFile(path, len(data), "", path) for path, data in content.items()]


def _made(content: dict[str, bytes]) -> bytes:
    def read(file: StoredFile) -> Iterator[bytes]:
        data = content[file.path]
        yield from (data[at : at + 50_000] for at in range(0, len(data), 50_000))

    return b"".join(zip_chunks(_files(content), read))


def _read(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def test_other_programs_read_it_and_the_same_files_give_the_same_bytes():
    data = _made(CONTENT)
    assert _read(data) == CONTENT
    assert _made(CONTENT) == data
    assert _read(_made({})) == {}


@pytest.mark.parametrize(("name", "bound"), [("_LARGE", 100_000), ("_MANY", 2)])
def test_numbers_that_need_64_bits_have_them(name, bound, monkeypatch):
    monkeypatch.setattr(zip_stream, name, bound)
    data = _made(CONTENT)
    assert _read(data) == CONTENT
    with Zip(io.BytesIO(data), len(data), max_files=10) as opened:
        assert {one.path: _whole(one) for one in opened.entries()} == CONTENT


def _whole(entry) -> bytes:
    return b"".join(iter(lambda: entry.read(10_000), b""))


def test_memory_does_not_grow_with_the_number_of_files(monkeypatch):
    monkeypatch.setattr(zip_stream, "_IN_MEMORY", 1 << 10)
    files = (StoredFile(f"{number:06}", 1, "", "") for number in range(30_000))
    tracemalloc.start()
    size = sum(len(piece) for piece in zip_chunks(files, lambda file: iter([b"x"])))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size > 30_000 * 100
    assert peak < 2 << 20
