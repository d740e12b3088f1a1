"""Lists of files: packed and unpacked, and read from JSON piece by piece."""

from __future__ import annotations

import hashlib
import io
import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.storage import file_list
from yardmaster.storage.file_list import (
    LONGEST_ENTRY,
    MOST_NAMES,
    ListedFile,
    NotJson,
    pack,
    paths_and_sizes,
    read_object,
    unpack,
)

HASH = st.sampled_from(["", "0" * 64, "f" * 64])
FILES = st.lists(
    st.builds(
        ListedFile, st.text(min_size=1), st.integers(0, 1 << 42), HASH, HASH, st.none() | st.integers(0), st.text()
    )
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 60), 1 << 60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@given(FILES)
def test_what_is_packed_is_unpacked_in_its_order(files):
    found = unpack(pack(files))
    assert list(found) == files
    assert [found[at] for at in range(len(found))] == files
    assert found[1:-1] == files[1:-1]
    assert list(reversed(found)) == files[::-1]
    assert found.paths == [file.path for file in files]


def test_files_are_made_when_they_are_asked_for(monkeypatch):
    files = [ListedFile(f"{n:03}", n) for n in range(500)]
    packed, made = pack(files), []
    monkeypatch.setattr(file_list, "ListedFile", lambda *facts: made.append(facts) or ListedFile(*facts))
    found = unpack(packed)
    assert (found[-1], found[7:9], len(made)) == (files[-1], files[7:9], 3)
    with pytest.raises(IndexError):
        found[500]


@given(FILES, st.integers(0, 200))
def test_paths_and_sizes_are_read_from_the_start_of_a_list_or_not_at_all(files, few):
    packed = pack(files)
    whole = [file.path for file in files], [file.size for file in files]
    assert paths_and_sizes(packed) == whole
    assert paths_and_sizes(packed[:few]) in (whole, None)


def test_paths_and_sizes_of_a_thousand_files_are_in_the_first_third_of_their_list():
    files = [ListedFile(f"train/{n:06}.jpg", n * 37, sha := sha256(str(n)), sha) for n in range(1_000)]
    packed = pack(files)
    assert paths_and_sizes(packed[: len(packed) // 3]) == ([one.path for one in files], [one.size for one in files])
    assert paths_and_sizes(packed[:1_000]) is None


def test_a_file_takes_some_fifty_bytes_with_its_checksum():
    files = [ListedFile(f"train/{n:06}.jpg", n, sha256(str(n))) for n in range(20_000)]
    assert len(pack(files)) < 60 * len(files)


class Trickle(io.BytesIO):
    """A body that comes in small pieces."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(7)


def _read(text: str, source: type[io.BytesIO] = io.BytesIO) -> dict:
    return read_object(source(text.encode("utf-8", "surrogatepass")), "files", lambda _, entry: entry)


@given(st.dictionaries(st.sampled_from(["files", "kind", "namespace"]), VALUES), st.booleans(), st.booleans())
def test_it_reads_what_json_says(value, ascii_only, indented):
    text = json.dumps(value, ensure_ascii=ascii_only, indent=1 if indented else None)
    assert _read(text) == value
    assert _read(text, Trickle) == value


@pytest.mark.parametrize(
    "text",
    ["", "[]", "1", "{", '{"a"', '{"a":', '{"a":1', '{"a":1,}', '{"a":1}x', "{a:1}", '{1:1}', '{"files":[',
     '{"files":[1', '{"files":[1,]}', '{"files":[1 2]}', '{"a":NaN}', '{"a":"' + "x" * (3 * LONGEST_ENTRY) + '"}',
     '{"a":' + "[" * 5000, '{"a":' + "1" * 5000 + "}", '{"a":"\ud800"}'],
)  # fmt: skip
def test_what_is_no_json_or_too_long_is_refused(text):
    with pytest.raises(NotJson):
        _read(text)


@pytest.mark.parametrize("is_same", [False, True])
def test_more_names_than_an_object_has_end_the_reading(is_same):
    text = "{" + ",".join(f'"{0 if is_same else number}":[]' for number in range(500_000))
    source = io.BytesIO(text.encode())
    tracemalloc.start()
    try:
        with pytest.raises(NotJson, match="more than 20 names"):
            read_object(source, "files", lambda _, entry: entry)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert source.tell() <= 4 * LONGEST_ENTRY
    assert peak < 2 << 20
    assert len(_read("{" + ",".join(f'"{number}":1' for number in range(MOST_NAMES)) + "}")) == MOST_NAMES


def test_entries_are_checked_as_they_come_and_the_rest_is_not_read():
    source = io.BytesIO(b'{"files":[' + b"[]," * (5 << 20))

    def check(index, entry):
        raise KeyError(index)

    tracemalloc.start()
    try:
        with pytest.raises(KeyError):
            read_object(source, "files", check)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert source.tell() <= 4 * LONGEST_ENTRY
    assert peak < 2 << 20
