"""How many records a data file holds, found while its bytes pass by: TFRecord, CSV and TSV, JSON lines.

A TFRecord file is known by its content, the others by their names. Not here: showing records (`apps.datasets.preview`).
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Protocol

from yardmaster.formats.tfrecord import RecordCounter, looks_like_tfrecord

_NAMED_TFRECORD = (".tfrecord", ".tfrecords", ".tfrec")
_FIRST_LINE = 65_536


class Format(StrEnum):
    """What is counted. A CSV or TSV file's heading is no record."""

    TFRECORD = "tfrecord"
    CSV = "csv"
    TSV = "tsv"
    JSONL = "jsonl"


_BY_SUFFIX = {".csv": Format.CSV, ".tsv": Format.TSV, ".jsonl": Format.JSONL, ".ndjson": Format.JSONL}


@dataclass(frozen=True)
class Count:
    """Records found, and what is wrong with the file (empty: nothing was seen)."""

    records: int
    fault: str = ""


class Counter(Protocol):
    def feed(self, piece: bytes) -> None: ...
    def finish(self) -> Count: ...


def format_of(path: str, start: bytes) -> Format | None:
    """The file's format by its name and first bytes; None: none whose records are counted."""
    if looks_like_tfrecord(start):
        return Format.TFRECORD
    name = PurePosixPath(path).name.lower()
    if any(name.endswith(suffix) or f"{suffix}-" in name for suffix in _NAMED_TFRECORD):
        return Format.TFRECORD
    return _BY_SUFFIX.get(PurePosixPath(name).suffix)


def counter_for(path: str, start: bytes, *, crc_budget: int) -> Counter | None:
    """A counter for this file, not yet fed; `start` is its first piece."""
    match format_of(path, start):
        case Format.TFRECORD:
            return TFRecordCount(crc_budget)
        case Format.CSV:
            return RowCount(",")
        case Format.TSV:
            return RowCount("\t")
        case Format.JSONL:
            return LineCount()
    return None


class TFRecordCount:
    """Records of a TFRecord file, and where it is damaged."""

    def __init__(self, crc_budget: int) -> None:
        self._counter = RecordCounter(crc_budget)
        self.feed = self._counter.feed

    def finish(self) -> Count:
        damage = self._counter.finish()
        return Count(self._counter.count, str(damage) if damage else "")


class LineCount:
    """Lines that hold more than blanks, the last one also when it has no end."""

    def __init__(self) -> None:
        self._lines = 0
        self._open = False  # whether the unfinished line holds something

    def feed(self, piece: bytes) -> None:
        first, *others = piece.split(b"\n")
        self._open = self._open or bool(first.strip())
        if others:
            self._lines += self._open + sum(map(bool, map(bytes.strip, others[:-1])))
            self._open = bool(others[-1].strip())

    def finish(self) -> Count:
        return Count(self._lines + self._open)


class RowCount:
    """Rows of a CSV file: line ends outside quotes, without a heading."""

    def __init__(self, delimiter: str) -> None:
        self._delimiter = delimiter
        self._rows = 0
        self._open = self._quoted = False
        self._start = b""

    def feed(self, piece: bytes) -> None:
        if len(self._start) < _FIRST_LINE:
            self._start += piece[:_FIRST_LINE]
        sections = piece.split(b'"')  # every other one lies between quotation marks
        self._rows += sum(section.count(b"\n") for section in sections[self._quoted :: 2])
        self._quoted ^= len(sections) % 2 == 0
        self._open = not piece.endswith(b"\n")

    def finish(self) -> Count:
        rows = self._rows + self._open
        headings = rows > 0 and has_heading(first_row(self._start, self._delimiter))
        fault = "a quotation mark is never closed" if self._quoted else ""
        return Count(rows - headings, fault)


def first_row(start: bytes, delimiter: str) -> list[str]:
    """The cells of the first row, read from the file's first bytes."""
    text = io.StringIO(start[:_FIRST_LINE].decode("utf-8-sig", "replace"), newline="")
    try:
        return next(csv.reader(text, delimiter=delimiter), [])
    except csv.Error:
        return []


def has_heading(row: list[str]) -> bool:
    """Whether a first row names columns: every cell differs, none is empty or a number."""
    return bool(row) and len(set(row)) == len(row) and not any(_is_number(cell) or not cell.strip() for cell in row)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
