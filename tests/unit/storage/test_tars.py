"""Tars from strangers are read in one pass, and refused by name where they hold more than files."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tarfile
import time
from collections.abc import Callable

import pytest
from backports import zstd

from yardmaster.storage import archives, tars
from yardmaster.storage.archives import MAX_RATIO, RATIO_MATTERS_FROM, ArchiveRefused
from yardmaster.storage.base import read_chunks
from yardmaster.storage.compressed import Decompressed, decompressor_for
from yardmaster.storage.tars import LONGEST_HEADER, TarReader, is_tar

CONTENT = {"train/pos/0_9.txt": b"good", "train/neg/0_1.txt": b"bad" * 1000, "empty": b"", "名.txt": b"\0\1"}
LONG = "/".join(["folder" * 10] * 6) + "/file"


def _zst(data: bytes) -> bytes:
    """As the command makes it: with a checksum."""
    return zstd.compress(data, options={zstd.CompressionParameter.checksum_flag: 1})


PACKED = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda data: zstd.compress(data, options={zstd.CompressionParameter.checksum_flag: 1}),
}


def tarred(*entries: tuple[str | tarfile.TarInfo, bytes], form: int = tarfile.PAX_FORMAT, **more: object) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form, **more) as archive:
        for entry, data in entries:
            info = entry if isinstance(entry, tarfile.TarInfo) else tarfile.TarInfo(entry)
            info.size = info.size or len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def test_the_lease_is_renewed_while_what_is_no_file_is_passed_over():
    """A folder with content is passed over, and its content may take hours to be decompressed."""
    beats: list[None] = []
    data = tarred((special("folder", tarfile.DIRTYPE), b""), ("a", b"1"))
    header = bytearray(data[:512])
    header[124:136] = b"%011o\0" % (8 << 20)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    whole = bytes(header) + bytes(8 << 20) + data[512:]
    reader = TarReader(io.BytesIO(whole), most_files=100, beat=lambda: beats.append(None))
    assert [entry.path for entry in reader.entries()] == ["a"]
    assert len(beats) > 32


def special(name: str, kind: bytes, **fields: object) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    for field, value in fields.items():
        setattr(info, field, value)
    return info


def read(data: bytes, most: int = 100) -> dict[str, bytes]:
    return {entry.path: b"".join(read_chunks(entry, 1000)) for entry in _entries(io.BytesIO(data), most)}


def _entries(source, most: int = 100):
    return TarReader(source, most_files=most).entries()


def code(data: bytes, most: int = 100) -> str:
    with pytest.raises(ArchiveRefused) as refused:
        read(data, most)
    return refused.value.code


def unpacked(data: bytes) -> bytes:
    make = decompressor_for(data[:16])
    assert make is not None
    source = Decompressed(io.BytesIO(data), len(data), make)
    return b"".join(iter(lambda: source.read(10_000), b""))


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_a_tar_of_any_format_holds_its_files(form):
    folder = special("train", tarfile.DIRTYPE)
    data = tarred((folder, b""), *CONTENT.items(), ("./below", b"x"), form=form)
    assert is_tar(data)
    assert read(data) == CONTENT | {"below": b"x"}


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_paths_are_read(form):
    assert read(tarred((LONG, b"x"), ("after", b"y"), form=form)) == {LONG: b"x", "after": b"y"}


def test_entries_that_are_not_read_are_passed_over():
    data = tarred(("a", b"x" * 5000), ("b", b"y"))
    assert [(entry.path, entry.size) for entry in _entries(io.BytesIO(data))] == [("a", 5000), ("b", 1)]


@pytest.mark.parametrize(
    ("expected", "entry"),
    [
        ("link_refused", special("evil", tarfile.SYMTYPE, linkname="/etc/passwd")),
        ("link_refused", special("evil", tarfile.LNKTYPE, linkname="fine")),
        ("special_file_refused", special("evil", tarfile.CHRTYPE, devmajor=1)),
        ("special_file_refused", special("evil", tarfile.BLKTYPE, devmajor=1)),
        ("special_file_refused", special("evil", tarfile.FIFOTYPE)),
        ("sparse_refused", special("evil", tarfile.GNUTYPE_SPARSE)),
        ("sparse_refused", special("evil", b"0", pax_headers={"GNU.sparse.major": "1", "GNU.sparse.minor": "0"})),
        ("tar_entry_unknown", special("evil", b"Z")),
        ("path_escape", special("../evil", b"0")),
        ("path_escape", special("/evil", b"0")),
        ("path_invalid", special("ev\nil", b"0")),
        ("path_too_long", special("evil/" * 120 + "evil", b"0")),
        ("path_doubled", special("fine", b"0")),
        ("path_conflict", special("fine/evil", b"0")),
    ],
)
def test_what_is_no_plain_file_of_its_own_is_refused_by_name(expected, entry):
    with pytest.raises(ArchiveRefused) as refused:
        read(tarred(("fine", b"x"), (entry, b"")))
    assert refused.value.code == expected
    assert entry.name.split("/")[-1].replace("\n", "\\n") in refused.value.message


def test_too_many_files_and_none_are_refused():
    assert code(tarred(*((str(number), b"") for number in range(4))), most=3) == "too_many_files"
    folders = ((special(str(number), tarfile.DIRTYPE), b"") for number in range(7))
    assert code(tarred(*folders), most=3) == "too_many_files"
    assert code(tarred()) == "archive_empty"


def _cut(data: bytes) -> bytes:
    return data[:1000]


def _without_end(data: bytes) -> bytes:
    return data.rstrip(b"\0") + b"\0" * (-len(data.rstrip(b"\0")) % 512)


def _changed_header(data: bytes) -> bytes:
    return data[:10] + b"!" + data[11:]


def _followed(data: bytes) -> bytes:
    return data + b"x" * (65 << 20)


def _checksummed(header: bytearray) -> bytes:
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


def _negative(data: bytes) -> bytes:
    header = bytearray(data[:512])
    header[124:136] = b"\xff" * 12
    return _checksummed(header) + data[512:]


def _huge_header(data: bytes) -> bytes:
    header = bytearray(data[:512])
    header[156:157], header[124:136] = b"x", b"%011o\0" % (LONGEST_HEADER + 1)
    return _checksummed(header) + b"\0" * (LONGEST_HEADER + 1)


def _header_after_header(data: bytes) -> bytes:
    header = bytearray(data[:512])
    header[156:157], header[124:136] = b"L", b"%011o\0" % 1
    return (_checksummed(header) + b"a" + b"\0" * 511) * 20 + data


def _bad_record(data: bytes) -> bytes:
    header = bytearray(data[:512])
    header[156:157], header[124:136] = b"x", b"%011o\0" % 12
    return _checksummed(header) + b"99 path=evil\n".ljust(512, b"\0") + data


@pytest.mark.parametrize(
    "damage",
    [_cut, _without_end, _changed_header, _followed, _negative, _huge_header, _header_after_header, _bad_record],
)
def test_what_is_not_whole_is_refused(damage: Callable[[bytes], bytes]):
    assert code(damage(tarred(("file", b"x" * 2000)))) == "archive_damaged"


def test_a_size_that_a_header_of_its_own_gives_is_believed_and_bounded():
    info = special("big", b"0", pax_headers={"size": "3"})
    info.size = 3
    assert read(tarred((info, b"abc"))) == {"big": b"abc"}
    info = special("big", b"0", pax_headers={"size": "9" * 19})
    assert code(tarred((info, b""))) == "archive_damaged"


@pytest.mark.parametrize("kind", PACKED)
def test_compressed_streams_are_recognized_and_read(kind):
    data = os.urandom(300_000) + b"\0" * 100_000
    assert unpacked(PACKED[kind](data)) == data
    assert unpacked(PACKED[kind](data) + PACKED[kind](b"more")) == data + b"more"


def test_what_is_not_compressed_is_not_recognized():
    assert decompressor_for(tarred(("a", b"b"))[:512]) is None
    assert decompressor_for(b"") is None


@pytest.mark.parametrize("kind", PACKED)
@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: data[:500] + b"\xff" * 50 + data[550:]])
def test_a_compressed_stream_that_is_broken_is_refused(kind, damage):
    data = damage(PACKED[kind](os.urandom(2000)))
    with pytest.raises(ArchiveRefused, match="damaged"):
        unpacked(data)


def test_a_gzip_whose_checksum_is_wrong_is_refused():
    data = bytearray(gzip.compress(tarred(("a", b"b"))))
    data[-6] ^= 0xFF
    make = decompressor_for(bytes(data))
    with pytest.raises(ArchiveRefused, match="damaged"):
        list(_entries(Decompressed(io.BytesIO(data), len(data), make)))


@pytest.mark.parametrize("kind", ["gz", "xz", "zst"])
def test_a_bomb_is_noticed_while_it_is_read(kind):
    source = io.BytesIO(PACKED[kind](b"\0" * (2 * RATIO_MATTERS_FROM)))
    size = len(source.getvalue())
    assert size * MAX_RATIO < RATIO_MATTERS_FROM
    pieces = read_chunks(Decompressed(source, size, decompressor_for(source.getvalue()[:16])), 1 << 20)
    lengths: list[int] = []
    with pytest.raises(ArchiveRefused) as refused:
        lengths.extend(map(len, pieces))
    assert refused.value.code == "archive_bomb"
    assert sum(lengths) <= RATIO_MATTERS_FROM


@pytest.mark.parametrize("kind", PACKED)
@pytest.mark.parametrize("content", [b"", b"x"], ids=["empty", "of one byte"])
def test_many_streams_of_next_to_nothing_are_refused_before_they_cost_much(kind, content):
    source = io.BytesIO(PACKED[kind](content) * 20_000)
    size = len(source.getvalue())
    began = time.process_time()
    with pytest.raises(ArchiveRefused) as refused:
        unpacked(source.getvalue())
    assert refused.value.code == "too_many_streams"
    assert size >= 13 * 20_000
    assert time.process_time() - began < 1, "what follows a stream is not copied for each"


@pytest.mark.parametrize("kind", PACKED)
def test_many_streams_as_some_programs_write_them_are_one(kind):
    blocks = [bytes([number]) * 300 for number in range(100)]
    assert unpacked(b"".join(map(PACKED[kind], blocks)) * 30 + bytes(3_000)) == b"".join(blocks) * 30


def test_a_stream_that_wants_more_memory_than_it_may_is_refused():
    options = {zstd.CompressionParameter.window_log: 28, zstd.CompressionParameter.enable_long_distance_matching: 1}
    compressor = zstd.ZstdCompressor(options=options)
    data = compressor.compress(os.urandom(1 << 20)) + compressor.flush()
    with pytest.raises(ArchiveRefused, match="damaged"):
        unpacked(data)


def test_a_flood_of_descriptions_is_refused_before_it_is_read():
    """What other programs write of a file is some hundred bytes. Parsing costs processor time that no quota counts."""
    described = special("a", b"0", pax_headers={"comment": "x" * 900_000})
    flood = b"".join(_block(special(str(number), b"0", pax_headers=described.pax_headers)) for number in range(20))
    assert code(flood) == "archive_damaged"
    assert "headers" in message(flood)


def test_a_flood_of_records_is_refused(monkeypatch):
    monkeypatch.setattr(tars, "RECORDS_FREE", 100)
    many = special("a", b"0", pax_headers={f"k{number}": "" for number in range(200)})
    assert "records" in message(tarred((many, b"")))
    few = [(special(str(number), b"0", pax_headers={"k": "v", "l": "w"}), b"") for number in range(100)]
    assert len(read(tarred(*few))) == 100


def test_folders_with_content_are_refused_beyond_padding(monkeypatch):
    monkeypatch.setattr(tars, "_LONGEST_REST", 1000)
    folder = special("folder", tarfile.DIRTYPE)
    header = bytearray(tarred((folder, b""))[:512])
    header[124:136] = b"%011o\0" % 512
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    filled = bytes(header) + bytes(512)
    assert "folders" in message(filled * 2 + tarred(("a", b"")))


def test_folders_have_a_bound_whatever_their_depth(monkeypatch):
    monkeypatch.setattr(archives, "_FOLDERS_FREE", 50)
    deep = [(f"{number}/" + "f/" * 40 + "x", b"") for number in range(2)]
    assert code(tarred(*deep), most=10) == "too_many_folders"
    assert len(read(tarred(*deep), most=100)) == 2


def _block(info: tarfile.TarInfo) -> bytes:
    """The entry without the end of its tar."""
    return info.tobuf(tarfile.PAX_FORMAT)


def message(data: bytes) -> str:
    with pytest.raises(ArchiveRefused) as refused:
        read(data)
    return refused.value.message
