"""TFRecord files of about one size, written one after another. The checksums are made in Python: 70 ns a byte."""

from __future__ import annotations

from pathlib import Path
from typing import IO

from yardmaster.formats.tfrecord import FOOTER, FRAME, HEADER, masked_crc
from yardmaster_runner.data.description import Shard


class ShardFiles:
    """The files of one split below `top`; a file ends at `limit` bytes. A context manager that closes the last one."""

    def __init__(self, top: Path, split: str, limit: int) -> None:
        self._top, self._split, self._limit = top, split, limit
        self._file: IO[bytes] | None = None
        self._path, self._records, self._size = "", 0, 0
        self.done: list[Shard] = []
        self.written = 0
        """Bytes of all files."""
        (top / split).mkdir()

    def __enter__(self) -> ShardFiles:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def write(self, record: bytes) -> None:
        if self._file is None:
            self._path = f"{self._split}/{self._split}-{len(self.done):05d}.tfrecord"
            self._file, self._records, self._size = (self._top / self._path).open("wb"), 0, 0
        length = len(record)
        head = HEADER.pack(length, masked_crc(length.to_bytes(8, "little")))
        self._file.write(b"".join((head, record, FOOTER.pack(masked_crc(record)))))
        self._records += 1
        self._size += length + FRAME
        self.written += length + FRAME
        if self._size >= self._limit:
            self._end()

    def _end(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
            self.done.append(Shard(self._path, self._records, self._size))
