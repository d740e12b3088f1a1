"""Zips from strangers are judged before anything of them is unpacked."""

from __future__ import annotations

import io
import stat
import struct
import tracemalloc
import zipfile
import zlib

import pytest

from yardmaster.storage.archives import ArchiveRefused
from yardmaster.storage.zip_directory import ZipRefused
from yardmaster.storage.zips import EntryReader, Zip

MOST = 100


def _zip(*entries: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return out.getvalue()


def _opened(data: bytes, most: int = MOST) -> Zip:
    return Zip(io.BytesIO(data), len(data), max_files=most)


def _content(data: bytes) -> dict[str, bytes]:
    with _opened(data) as archive:
        return {entry.path: _drain(entry) for entry in archive.entries()}


def _only(data: bytes) -> EntryReader:
    with _opened(data) as archive:
        [entry] = archive.entries()
    return entry


def _drain(reader) -> bytes:
    return b"".join(iter(lambda: reader.read(1000), b""))


def _code(data: bytes, most: int = MOST) -> str:
    with pytest.raises(ArchiveRefused) as refused:
        _opened(data, most)
    return refused.value.code


def _entry(name: str, mode: int = 0o100644, **fields: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    for field, value in fields.items():
        setattr(info, field, value)
    return info


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_plain_zip_holds_its_files(method):
    data = _zip(("a/b.txt", b"x" * 5000), ("c", b""), ("d/", b""), ("名.txt", b"\0\1"), method=method)
    assert _content(data) == {"a/b.txt": b"x" * 5000, "c": b"", "名.txt": b"\0\1"}


def test_a_zip_with_a_comment_and_a_zip_in_a_zip_are_fine():
    inner = _zip(("x", b"y"))
    out = io.BytesIO(_zip(("inner.zip", inner)))
    with zipfile.ZipFile(out, "a") as archive:
        archive.comment = b"hello " * 1000
    assert _content(out.getvalue()) == {"inner.zip": inner}


def test_a_zip64_is_read():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive, archive.open("big", "w", force_zip64=True) as file:
        file.write(b"data")
    assert _content(out.getvalue()) == {"big": b"data"}


def test_what_macos_adds_is_left_out():
    assert _content(_zip(("a", b"1"), ("__MACOSX/._a", b"2"))) == {"a": b"1"}


@pytest.mark.parametrize("data", [b"", b"x", b"no zip at all" * 1000, b"PK\x05\x06", b"PK\x03\x04" + b"\0" * 100])
def test_what_is_no_zip_is_told_as_such(data):
    assert _code(data) == "not_a_zip"


@pytest.mark.parametrize("name", ["../a", "a/../../b", "/etc/passwd", "C:/x", "a/../b"])
def test_a_path_that_leads_out_is_refused(name):
    assert _code(_zip(("ok", b""), (name, b"x"))) == "path_escape"


@pytest.mark.parametrize("name", ["a\\b", "a\nb", "a//b", "a ", "./a"])
def test_a_path_that_is_none_is_refused(name):
    assert _code(_zip((name, b"x"))) == "path_invalid"


def test_a_doubled_entry_is_refused():
    with pytest.warns(UserWarning, match="Duplicate"):
        data = _zip(("a", b"1"), ("a", b"2"))
    assert _code(data) == "path_doubled"


def test_a_file_that_is_a_folder_too_is_refused():
    assert _code(_zip(("a", b"1"), ("a/b", b"2"))) == "path_conflict"


def test_a_link_is_refused_by_name():
    data = _zip(("ok", b""), (_entry("evil", stat.S_IFLNK | 0o777), b"/etc/passwd"))
    with pytest.raises(ZipRefused, match="evil") as refused:
        _opened(data)
    assert refused.value.code == "link_refused"


@pytest.mark.parametrize("kind", [stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFSOCK])
def test_devices_and_pipes_are_refused(kind):
    assert _code(_zip((_entry("dev", kind | 0o644), b""))) == "special_file_refused"


def test_an_encrypted_entry_is_refused():
    data = bytearray(_zip(("a", b"secret")))
    data[data.index(b"PK\x01\x02") + 8] |= 1
    assert _code(bytes(data)) == "zip_encrypted"


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_methods_are_refused(method):
    assert _code(_zip(("a", b"x" * 100), method=method)) == "zip_method"


def test_an_empty_zip_is_refused():
    assert _code(_zip()) == "zip_empty"
    assert _code(_zip(("folder/", b""))) == "zip_empty"


def test_too_many_files_are_refused():
    data = _zip(*[(f"f{number}", b"") for number in range(MOST + 1)])
    assert _code(data) == "zip_too_many_files"


def test_a_million_entries_are_refused_before_they_are_read():
    """By the end record alone, where so many are not allowed."""
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0, 0)
    end64 = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, 1_000_000, 1_000_000, 60_000_000, 0)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, 60_000_000, 1)

    class Sparse(io.BytesIO):
        """60 MB of directory that nobody should read."""

        def seek(self, position, whence=0):
            return super().seek(max(0, position - 60_000_000), whence)

    data = end64 + locator + end
    with pytest.raises(ZipRefused) as refused:
        Zip(Sparse(data), 60_000_000 + len(data), max_files=20_000)
    assert refused.value.code == "zip_too_many_files"


def test_a_large_directory_with_a_small_count_is_refused():
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, 60_000_000, 0, 0)
    assert _code(b"\0" * 1000 + end) == "zip_too_many_files"


def test_an_end_record_that_lies_about_the_number_of_entries_is_refused():
    folder = b"PK\1\2" + b"\0" * 24 + b"\2\0" + b"\0" * 16 + b"d/"
    directory = bytes(40) + folder * (2 * MOST + 1)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, len(directory) - 40, 40, 0)
    assert _code(directory + end) == "zip_too_many_files"


def test_a_directory_larger_than_the_file_is_refused():
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, 10_000, 0, 0)
    assert _code(b"\0" * 100 + end) == "zip_damaged"


def test_an_end_record_in_two_places_is_refused():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive, archive.open("big", "w", force_zip64=True) as file:
        file.write(b"data")
    data = out.getvalue()
    end = data[-22:]
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, 3, 1)
    assert _code(data[:-22] + locator + end) == "zip_damaged"


def test_a_bomb_is_refused_by_its_ratio():
    data = _zip(("zeros", b"\0" * (100 << 20)))
    assert len(data) < 200_000
    assert _code(data) == "zip_bomb"


def test_many_small_files_that_compress_well_are_no_bomb():
    assert len(_content(_zip(*[(f"{n}.csv", b"0,0,0\n" * 5000) for n in range(50)]))) == 50


def test_overlapping_entries_are_refused():
    """Two names for the same bytes: the way a small zip holds petabytes."""
    data = bytearray(_zip(("a", b"x" * 100), ("b", b"y" * 100), method=zipfile.ZIP_STORED))
    second = data.index(b"PK\x01\x02", data.index(b"PK\x01\x02") + 4)
    struct.pack_into("<L", data, second + 42, 0)
    assert _code(bytes(data)) == "zip_bomb"


def test_an_entry_that_is_larger_than_it_says_is_refused_while_it_is_read():
    data = bytearray(_zip(("a", b"x" * 100_000)))
    directory = data.index(b"PK\x01\x02")
    struct.pack_into("<L", data, directory + 24, 10)
    reader = _only(bytes(data))
    with pytest.raises(ZipRefused) as refused:
        _drain(reader)
    assert refused.value.code == "zip_damaged"


def test_an_entry_that_is_smaller_than_it_says_is_refused():
    data = bytearray(_zip(("a", b"x" * 100)))
    struct.pack_into("<L", data, data.index(b"PK\x01\x02") + 24, 5_000)
    reader = _only(bytes(data))
    with pytest.raises(ZipRefused):
        _drain(reader)


def test_damaged_content_is_refused():
    data = bytearray(_zip(("a", b"hello world" * 100), method=zipfile.ZIP_STORED))
    data[60] ^= 0xFF
    reader = _only(bytes(data))
    with pytest.raises(ZipRefused, match="damaged"):
        _drain(reader)


def test_any_damaged_byte_is_refused_or_harmless():
    """No byte of a zip, changed, makes anything but a refusal or the same paths with checked content."""
    data = _zip(("a/b", b"hello " * 20), ("c", b"world"))
    good = {zlib.crc32(b"hello " * 20), zlib.crc32(b"world")}
    for position in range(len(data)):
        for value in (0, 0xFF, data[position] ^ 1):
            changed = data[:position] + bytes([value]) + data[position + 1 :]
            try:
                content = _content(changed)
            except ArchiveRefused:
                continue
            assert good.issuperset(map(zlib.crc32, content.values()))


def test_a_zip_with_something_before_it_is_read():
    assert _content(b"#!/bin/sh\n" * 50 + _zip(("a", b"1"), ("b", b"2"))) == {"a": b"1", "b": b"2"}


def test_entries_in_another_order_than_the_directory_are_read_and_overlaps_found():
    data = _zip(("a", b"x" * 100), ("b", b"y" * 100), method=zipfile.ZIP_STORED)
    at = data.index(b"PK\x01\x02")
    one, end = data.index(b"PK\x01\x02", at + 4), data.index(b"PK\x05\x06")
    swapped = data[:at] + data[one:end] + data[at:one] + data[end:]
    assert list(_content(swapped)) == ["b", "a"]
    broken = bytearray(swapped)
    struct.pack_into("<L", broken, at + 42, 10)
    assert _code(bytes(broken)) == "zip_bomb"


def test_many_entries_are_read_in_flat_memory():
    """Python's reader would take 20 MB here. What grows is 64 bits of each path, and two numbers."""
    count = 20_000
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for number in range(count):
            archive.writestr(f"train/{number:07}.txt", b"x")
    data = out.getvalue()
    del out, archive
    assert len(data) > 100 * count
    tracemalloc.start()
    with _opened(data, 30_000) as opened:
        found = sum(1 for entry in opened.entries() if entry.read(10) == b"x")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (found, opened.total, peak < len(data) + (5 << 20)) == (count, count, True)


def test_an_unknown_directory_entry_is_refused():
    data = bytearray(_zip(("a", b"1"), ("b", b"2")))
    second = data.index(b"PK\x01\x02", data.index(b"PK\x01\x02") + 4)
    data[second] = 0
    assert _code(bytes(data)) == "zip_damaged"
