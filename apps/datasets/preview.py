"""What a dataset's file looks like: an image, a text, the first rows of a table, the first records of a TFRecord file,
the first values of a NumPy array.

Bounded in time and memory, whatever the file. Not here: what is counted when a version is made.
"""

from __future__ import annotations

import base64
import csv
import io
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from apps.datasets.described import Described, description_of
from apps.datasets.models import DatasetVersion
from apps.datasets.record_arrays import RawArray
from apps.datasets.record_preview import (
    PATIENCE,
    Damage,
    FeatureSummary,
    LabelCounts,
    RecordSample,
    preview_records,
)
from apps.datasets.unpacked import MAGIC, Unpacked, start_of, unpacked_name
from apps.stores import storage
from apps.uploads.delivery import content_type_of
from apps.uploads.versioned.selectors import download_url, file_key
from yardmaster.formats import npy
from yardmaster.formats.records import Format, first_row, format_of, has_heading
from yardmaster.sandbox.function import NoResult, Sandbox
from yardmaster.storage.base import ByteStream
from yardmaster.storage.file_list import ListedFile

_START = 64 << 10
_ROWS = 50
_COLUMNS = 100
_CELL = 200
_SAMPLED_RECORDS = 5
_ARRAY_START = 1 << 20
_NPY = Sandbox("yardmaster.formats.npy:summary", seconds=3)


@dataclass(frozen=True)
class Table:
    """The first rows. `columns` are the heading's names, or numbers where there is none."""

    columns: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Array:
    """A NumPy array: what its header says, and small pictures as data addresses where it looks like some."""

    dtype: str = ""
    shape: list[int] = field(default_factory=list)
    order: str = ""
    pictures: list[str] = field(default_factory=list)
    note: str = ""
    problem: str = ""


@dataclass(frozen=True)
class Preview:
    """One file as people may look at it. `kind` says which of the other fields is filled."""

    path: str
    size: int
    kind: str
    format: str = ""
    records: int | None = None
    url: str = ""
    text: str = ""
    table: Table | None = None
    samples: list[RecordSample] = field(default_factory=list)
    features: list[FeatureSummary] = field(default_factory=list)
    labels: LabelCounts | None = None
    damage: Damage | None = None
    array: Array | None = None
    truncated: bool = False


def preview_file(
    version: DatasetVersion, file: ListedFile, *, described: Described | None = None, patience: float = PATIENCE
) -> Preview:
    """Look at the beginning of the file (for the labels of a TFRecord file: at as much as `patience` seconds allow).

    `described`: what `description_of` this file has given, where the caller has asked already.
    """
    key = file_key(version, file.path)
    with storage().open_range(key, 0, _START) as stream:
        start = stream.read(_START)
    is_packed = start.startswith(MAGIC)
    kind = format_of(unpacked_name(file.path), start_of(start, _START)) if is_packed else format_of(file.path, start)
    if kind is Format.TFRECORD:
        return _records(key, version, file, is_packed, described or description_of(version, file.path), patience)
    if start.startswith(npy.MAGIC):
        return _array(key, file)
    media = content_type_of(file.path)
    if media.startswith("image/"):
        url = download_url(version, file.path, content_type=media)
        return Preview(file.path, file.size, "image", PurePosixPath(file.path).suffix[1:], url=url)
    text = _text_of(start)
    if text is None:
        return Preview(file.path, file.size, "binary", truncated=True)
    more = file.size > len(start)
    if kind in (Format.CSV, Format.TSV):
        table = _table(start, "," if kind is Format.CSV else "\t", more)
        return Preview(file.path, file.size, "table", kind, file.records, table=table, truncated=more)
    return Preview(file.path, file.size, "text", kind or "", file.records, text=text, truncated=more)


def _records(
    key: str, version: DatasetVersion, file: ListedFile, is_packed: bool, described: Described | None, patience: float
) -> Preview:
    """The first records of a TFRecord file. Of a prepared one `dataset.json` says which features are arrays, and how
    many records are in what is packed."""
    about = described.tables if described else {}
    raw = {name: RawArray(dtype, tuple(shape)) for name, (dtype, shape) in about.get("raw", {}).items()}
    with storage().open_range(key) as opened:
        packed = Unpacked(opened) if is_packed else _Raw(opened)
        with io.BufferedReader(packed, 1 << 20) as source:
            size = None if is_packed else file.size
            found = preview_records(source, _SAMPLED_RECORDS, size=size, patience=patience, raw=raw)
    return Preview(
        file.path, file.size, "tfrecord", Format.TFRECORD,
        about.get("records_of") if file.records is None else file.records, samples=found.samples,
        features=found.features, labels=found.labels, damage=found.damage, truncated=found.more,
    )  # fmt: skip


def _array(key: str, file: ListedFile) -> Preview:
    """What the header and the first bytes of a NumPy file say, found in a sandboxed process."""
    with storage().open_range(key, 0, _ARRAY_START) as stream:
        start = stream.read(_ARRAY_START)
    try:
        found = _NPY.call(base64.b64encode(start).decode(), file.size, wait=6.0)
    except NoResult as error:
        words = "Too many files are being read. Reload the page." if error.is_busy else "The file is too complex."
        return Preview(file.path, file.size, "array", "npy", array=Array(problem=words))
    table = Table(found.pop("columns", []), found.pop("rows", []))
    truncated = len(start) < file.size
    return Preview(file.path, file.size, "array", "npy", table=table, array=Array(**found), truncated=truncated)


def _text_of(start: bytes) -> str | None:
    """The bytes as text, unless they are none. A character cut off at the end is left out."""
    if b"\0" in start:
        return None
    try:
        return start.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        whole_but_for_the_end = error.start >= len(start) - 3 and len(start) == _START
        return start[: error.start].decode("utf-8-sig") if whole_but_for_the_end else None


def _table(start: bytes, delimiter: str, cut_off: bool) -> Table:
    text = start.decode("utf-8-sig", "replace")
    rows: list[list[str]] = []
    try:
        for row in csv.reader(io.StringIO(text), delimiter=delimiter):
            rows.append([cell[:_CELL] for cell in row[:_COLUMNS]])
            if len(rows) > _ROWS + 1:
                break
        else:
            rows = rows[:-1] if cut_off else rows  # the last one is not whole
    except csv.Error:
        pass  # what was read before is shown; `file.fault`, found when the version was made, says what is wrong
    if has_heading(first_row(start, delimiter)):
        return Table(rows[0] if rows else [], rows[1 : _ROWS + 1])
    width = max(map(len, rows), default=0)
    return Table([str(number) for number in range(1, width + 1)], rows[:_ROWS])


class _Raw(io.RawIOBase):
    """A store's stream for `io.BufferedReader`."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)
