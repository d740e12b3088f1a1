"""The records of a TFRecord file, and what a `tf.train.Example` holds. Without TensorFlow and protobuf's objects, for
processes that may not start the one, or have too many records for the other. Not here: an Example from values
(`example_bytes`).

Scripts get this package alone (`offered`), so it walks through messages by itself instead of with `protowire`.
"""

from __future__ import annotations

import contextlib
import gzip
import struct
import zlib
from typing import Any, BinaryIO, Dict, Iterator, List, Tuple, Union

from yardmaster_runner.data.damage import HEADER, masked_crc32c
from yardmaster_runner.data.example_bytes import Values

FOOTER = struct.Struct("<I")
KINDS = {1: "bytes", 2: "float", 3: "int64"}
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class BadRecord(ValueError):
    """A record that cannot be read; the message names the file and the byte at which it begins."""


def records_of(path: str) -> Iterator[Tuple[int, bytes]]:
    """The records of a TFRecord file, each with the byte (of a compressed file: of its content) at which it begins.
    Both checksums are compared. Raises `BadRecord` and `OSError`."""
    return records_in(open(path, "rb"), path)


def records_in(source: Any, path: str) -> Iterator[Tuple[int, bytes]]:
    """The same of a file that is open, and closed at the end. Its `path` says whether it is compressed."""
    at = 0
    try:
        with source, _plain(source, path) as file:
            while True:
                header = file.read(HEADER.size)
                if not header:
                    return
                record = _after(header, file)
                yield at, record
                at += HEADER.size + len(record) + FOOTER.size
    except (BadRecord, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadRecord("%s: the record at byte %d cannot be read: %s" % (path, at, error)) from None


def _plain(source: Any, path: str) -> Any:
    return gzip.GzipFile(fileobj=source) if path.lower().endswith(".gz") else contextlib.nullcontext(source)


def _after(header: bytes, file: BinaryIO) -> bytes:
    """The content of the record with this header."""
    if len(header) < HEADER.size:
        raise BadRecord("the file ends within it")
    length, checksum = HEADER.unpack(header)
    if masked_crc32c(header[:8]) != checksum:
        raise BadRecord("the checksum of its length is wrong, so that this is no TFRecord file, or it is damaged")
    content, footer = file.read(length), file.read(FOOTER.size)
    if len(content) < length or len(footer) < FOOTER.size:
        raise BadRecord("the file ends within it")
    if masked_crc32c(content) != FOOTER.unpack(footer)[0]:
        raise BadRecord("its checksum is wrong")
    return content


def framed(record: bytes) -> bytes:
    """The record as a TFRecord file has it."""
    length = struct.pack("<Q", len(record))
    return b"".join(
        (length, FOOTER.pack(masked_crc32c(length)), record, FOOTER.pack(masked_crc32c(record))),
    )


def parsed(example: bytes) -> Dict[str, Values]:
    """The features of a serialized Example by their names; one without a kind is left out. Raises `ValueError`."""
    found: Dict[str, Values] = {}
    for number, features in _fields(example):
        for inner, entry in _fields(_of_bytes(features)) if number == 1 else ():
            if inner == 1:
                name, feature = _entry(_of_bytes(entry))
                if feature is not None:
                    found[name] = feature
    return found


def _entry(message: bytes) -> Tuple[str, Union[Values, None]]:
    name, feature = "", None
    for number, value in _fields(message):
        if number == 1:
            name = _of_bytes(value).decode("utf-8")
        elif number == 2:
            for kind, values in _fields(_of_bytes(value)):
                if kind in KINDS:
                    feature = KINDS[kind], _READERS[kind](_of_bytes(values))
    return name, feature


def _bytes_list(message: bytes) -> List[Union[int, float, bytes]]:
    return [_of_bytes(value) for number, value in _fields(message) if number == 1]


def _float_list(message: bytes) -> List[Union[int, float, bytes]]:
    """Packed or not: both are valid."""
    found: List[Union[int, float, bytes]] = []
    for number, value in _fields(message):
        if number == 1:
            packed = _of_bytes(value)
            if len(packed) % 4:
                raise ValueError("a list of floats has %d bytes" % len(packed))
            found += struct.unpack("<%df" % (len(packed) // 4), packed)
    return found


def _int64_list(message: bytes) -> List[Union[int, float, bytes]]:
    found: List[Union[int, float, bytes]] = []
    for number, value in _fields(message):
        if number == 1 and isinstance(value, int):
            found.append(_signed(value))
        elif number == 1:
            packed, at = _of_bytes(value), 0
            while at < len(packed):
                one, at = _varint_at(packed, at)
                found.append(_signed(one))
    return found


_READERS = {1: _bytes_list, 2: _float_list, 3: _int64_list}


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _of_bytes(value: Union[int, bytes]) -> bytes:
    if isinstance(value, int):
        raise ValueError("it is no tf.train.Example: bytes were expected")
    return value


def _fields(message: bytes) -> Iterator[Tuple[int, Union[int, bytes]]]:
    """(number, value) of each field; a varint as an unsigned number."""
    at, end = 0, len(message)
    while at < end:
        key, at = _varint_at(message, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = _varint_at(message, at)
            yield key >> 3, value
            continue
        length = {_FIXED64: 8, _FIXED32: 4}.get(kind, -1)
        if kind == _BYTES:
            length, at = _varint_at(message, at)
        if length < 0 or at + length > end:
            raise ValueError("it is no tf.train.Example: a field goes past its end, or has an unknown type")
        yield key >> 3, message[at : at + length]
        at += length


def _varint_at(message: bytes, at: int) -> Tuple[int, int]:
    result = shift = 0
    while at < len(message) and shift <= 63:
        byte = message[at]
        result |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return result & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
    raise ValueError("it is no tf.train.Example: a number does not end")
