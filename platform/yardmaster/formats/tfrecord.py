"""TFRecord files and the tf.train.Example messages in them, read without TensorFlow.

A file is records one after another: length (8 bytes), masked CRC-32C of the length (4), data, masked CRC-32C of the
data (4). Counting looks at the lengths and skips the data, whose CRCs are checked up to a bound: in pure Python they
cost some 70 ns per byte. Not here: other formats (`records`), and where the bytes come from.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

HEADER = struct.Struct("<QI")
FOOTER = struct.Struct("<I")
FRAME = HEADER.size + FOOTER.size
"""Bytes of a record besides its data."""
_POLYNOMIAL = 0x82F63B78
_REMEMBERED_LENGTHS = 65_536


class Damaged(ValueError):
    """The file is not whole: which record (from 0), at which byte the record begins, and what is wrong."""

    def __init__(self, record: int, offset: int, what: str) -> None:
        super().__init__(f"record {record} at byte {offset}: {what}")
        self.record = record
        self.offset = offset
        self.what = what


class TooLong(Damaged):
    """The record is longer than the reader takes; the file may be whole."""

    def __init__(self, record: int, offset: int, size: int, longest: int) -> None:
        super().__init__(record, offset, f"it has {size} bytes; more than {longest} are not shown")
        self.size = size


class Readable(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


@dataclass(frozen=True)
class Record:
    """One record."""

    index: int
    offset: int
    data: bytes


def _tables() -> list[list[int]]:
    """Eight tables: `tables[k][b]` is the CRC's state after byte b and k zero bytes."""
    first = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
        first.append(byte)
    tables = [first]
    for _ in range(7):
        tables.append([first[value & 0xFF] ^ value >> 8 for value in tables[-1]])
    return tables


_T0, _T1, _T2, _T3, _T4, _T5, _T6, _T7 = _tables()
_EIGHT = struct.Struct("<8B")


def crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli)."""
    crc = 0xFFFFFFFF
    whole = len(data) - len(data) % 8
    for a, b, c, d, e, f, g, h in _EIGHT.iter_unpack(memoryview(data)[:whole]):
        crc = (
            _T7[a ^ crc & 0xFF] ^ _T6[b ^ crc >> 8 & 0xFF] ^ _T5[c ^ crc >> 16 & 0xFF] ^ _T4[d ^ crc >> 24]
            ^ _T3[e] ^ _T2[f] ^ _T1[g] ^ _T0[h]
        )  # fmt: skip
    for byte in data[whole:]:
        crc = _T0[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def masked_crc(data: bytes) -> int:
    """The CRC as TFRecord files hold it."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


_crc_of_length: dict[int, int] = {}


def _length_crc(length: int) -> int:
    known = _crc_of_length.get(length)
    if known is None:
        if len(_crc_of_length) >= _REMEMBERED_LENGTHS:
            _crc_of_length.clear()
        known = _crc_of_length[length] = masked_crc(length.to_bytes(8, "little"))
    return known


def looks_like_tfrecord(start: bytes) -> bool:
    """Whether the first bytes of a file are a record's header. By chance they are one time in four thousand million."""
    if len(start) < HEADER.size:
        return False
    length, crc = HEADER.unpack_from(start)
    return bool(crc == _length_crc(length))


class RecordCounter:
    """Counts the records of a file that is fed to it in pieces.

    The lengths' CRCs are all checked; the data's as long as `crc_budget` bytes of records last, where a record lies in
    one piece.
    """

    def __init__(self, crc_budget: int = 0) -> None:
        self.count = 0
        self.crc_budget = crc_budget
        self.damage: Damaged | None = None
        self._fed = 0
        self._next = 0  # where the next record begins
        self._last = 0  # where the last counted record begins
        self._rest = b""  # the beginning of a header that the last piece cut in two

    def feed(self, piece: bytes) -> None:
        if self.damage is None:
            buffer = self._rest + piece if self._rest else piece
            try:
                self._scan(buffer, self._fed - len(self._rest))
            except Damaged as damage:
                self.damage = damage
        self._fed += len(piece)

    def finish(self) -> Damaged | None:
        """The first damage found, if any."""
        if self.damage is None and self._rest:
            self.damage = Damaged(self.count, self._next, f"the file ends in its header, {len(self._rest)} bytes in")
        if self.damage is None and self._next > self._fed:
            self.count -= 1
            self.damage = Damaged(self.count, self._last, f"the file ends {self._next - self._fed} bytes too early")
        return self.damage

    def _scan(self, buffer: bytes, base: int) -> None:
        at, end = self._next - base, len(buffer)
        while at + HEADER.size <= end:
            length, crc = HEADER.unpack_from(buffer, at)
            if crc != _length_crc(length):
                raise Damaged(self.count, base + at, "the checksum of its length is wrong")
            following = at + FRAME + length
            if FRAME + length <= self.crc_budget and following <= end:  # an empty record costs work too
                self.crc_budget -= FRAME + length
                data = buffer[at + HEADER.size : following - FOOTER.size]
                if FOOTER.unpack_from(buffer, following - FOOTER.size)[0] != masked_crc(data):
                    raise Damaged(self.count, base + at, "the checksum of its data is wrong")
            self.count += 1
            self._last = base + at
            at = following
        self._next = base + at
        self._rest = buffer[at:] if at < end else b""


def read_records(stream: Readable, *, longest: int = 64 << 20, check_data: bool = True) -> Iterator[Record]:
    """The records in order. Raises `Damaged`, and `TooLong` for a record longer than `longest` bytes.

    Without `check_data` only the lengths' CRCs are checked, which is some ten times faster.
    """
    index = offset = 0
    while header := _exactly(stream, HEADER.size):
        if len(header) < HEADER.size:
            raise Damaged(index, offset, f"the file ends in its header, {len(header)} bytes in")
        length, crc = HEADER.unpack(header)
        if crc != _length_crc(length):
            raise Damaged(index, offset, "the checksum of its length is wrong")
        if length > longest:
            raise TooLong(index, offset, length, longest)
        body = _exactly(stream, length + FOOTER.size)
        if len(body) < length + FOOTER.size:
            raise Damaged(index, offset, f"the file ends {length + FOOTER.size - len(body)} bytes too early")
        data = body[:length]
        if check_data and FOOTER.unpack_from(body, length)[0] != masked_crc(data):
            raise Damaged(index, offset, "the checksum of its data is wrong")
        yield Record(index, offset, data)
        index += 1
        offset += FRAME + length


def _exactly(stream: Readable, size: int) -> bytes:
    pieces = []
    while size and (piece := stream.read(size)):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
