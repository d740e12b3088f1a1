"""The records of a dataset version with the file and row of each: TFRecord shards, tables, arrays, files in folders.

A record that cannot be read comes as its `BadRecord`, so that it can be left out. A TFRecord file whose records cannot
be told apart any more ends everything: what would be left out is not known. Not here: what the model takes (`feeding`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from yardmaster_runner.data.damage import HEADER, found_in
from yardmaster_runner.data.description import (
    FILE_NAME,
    LARGEST,
    BadDescription,
    Description,
    OtherFormat,
    from_text,
    is_shard,
)
from yardmaster_runner.predict.examples import Picture, values_of
from yardmaster_runner.prepare import arrays, folder, rows
from yardmaster_runner.prepare.files import File, Paths
from yardmaster_runner.prepare.layout import layout_of
from yardmaster_runner.prepare.sources import ROWS_AT_ONCE
from yardmaster_runner.prepare.trouble import BadRecord, PrepareError
from yardmaster_runner.prepare.unpacked import Unpacked
from yardmaster_runner.prepare.whole_files import read_whole

TFRECORD = "tfrecord"
READ_AT_ONCE = 64
"""Records that one call of TensorFlow's reader gives."""


@dataclass(frozen=True)
class Record:
    """One record. `row` counts as in the preparation: lines from 1, rows of arrays and TFRecords from 0; a file that is
    one record has row 0. `whole`: the serialized example, where it is one."""

    file: str
    row: int
    values: Mapping[str, Any]
    whole: Optional[bytes] = None
    names_row: bool = True

    @property
    def place(self) -> str:
        return "%s, row %d" % (self.file, self.row) if self.names_row else self.file


Read = Union[Record, BadRecord]


class Data:
    """The files of a dataset version below `top`, as one format. Raises `PrepareError` where they are none."""

    def __init__(self, top: str, form: str = "auto", split: str = "") -> None:
        self.top = top
        self.description = described(top)
        self.known: Dict[str, int] = {}
        self.unpacked = Unpacked()
        listed = folder.list_files(top)
        self.files: Sequence[File]
        if self.description is not None and form in ("auto", self.description.file_format):
            self.form = self.description.file_format
            self.files = self._described_files(self.description, split)
        elif split:
            raise PrepareError("the data has no description (%s), so that it has no split %r" % (FILE_NAME, split))
        else:
            self.form, self.files = of_format(listed, form)
        self.layout = layout_of(self.form, Paths(self.files))
        if self.form == "numpy":
            partners = folder.partners(self.files)
            self.files = [one for one in self.files if one.path not in partners]

    @property
    def label(self) -> str:
        """The column that is what a model is to find out: it is not fed, unless it is asked for by name."""
        if self.description is not None:
            return self.description.label
        return {"images": "label", "text": "label", "numpy": "y"}.get(self.form, "")

    def expected(self, file: File) -> int:
        """About how many records a file has, for the progress; 1 where that is not known."""
        if file.path in self.known:
            return self.known[file.path]
        if self.form in ("csv", "jsonl"):
            with open(self.unpacked.path(self._path(file), file.path), "rb") as stream:
                return max(1, sum(piece.count(b"\n") for piece in iter(lambda: stream.read(1 << 20), b"")))
        if self.form == TFRECORD and not file.path.lower().endswith(".gz"):
            return max(1, _records_in(self._path(file)))
        return arrays.opened(self._path(file), file.path).rows if self.form == "numpy" else 1

    def read(self, file: File) -> Iterator[Read]:
        """All records of one file."""
        if self.form == TFRECORD:
            return self._examples(file)
        if self.form in ("csv", "jsonl"):
            return self._rows(file)
        return self._of_arrays(file) if self.form == "numpy" else iter([self._of_file(file)])

    def _path(self, file: File) -> str:
        return os.path.join(self.top, *file.path.split("/"))

    def _described_files(self, description: Description, split: str) -> List[File]:
        if split and split not in description.splits:
            there = ", ".join(sorted(description.splits)) or "none"
            raise PrepareError("the data has no split %r: it has %s" % (split, there))
        files = []
        for name, shards in description.splits.items():
            for one in shards if split in ("", name) else ():
                file = File(one.path, one.size)
                self.known[one.path] = one.records
                if not os.path.isfile(self._path(file)) or os.path.getsize(self._path(file)) != one.size:
                    raise PrepareError("%s: missing, or of another size than %s says" % (one.path, FILE_NAME))
                files.append(file)
        return files

    def _examples(self, file: File) -> Iterator[Read]:
        import tensorflow as tf

        compression = "GZIP" if file.path.lower().endswith(".gz") else ""
        features = {} if self.description is None else self.description.features
        path, row = self._path(file), 0
        found = tf.data.TFRecordDataset(path, compression).batch(READ_AT_ONCE).as_numpy_iterator()
        while True:
            try:
                records = next(found)
            except StopIteration:
                return
            except tf.errors.OpError as error:
                words = found_in(str(error), [([path], compression)]) or str(error).splitlines()[0]
                why = words.rpartition(" is damaged: ")[2][:200]
                raise PrepareError("%s is damaged: %s" % (file.path, why)) from None
            for data in records:
                try:
                    yield Record(file.path, row, values_of(data, features), data)
                except ValueError as error:
                    yield BadRecord("%s, row %d" % (file.path, row), str(error))
                row += 1

    def _rows(self, file: File) -> Iterator[Read]:
        path = self.unpacked.path(self._path(file), file.path)
        header: List[str] = []
        if self.form == "csv":
            found = rows.header_of(path, file.path)
            header, blocks = found.names, rows.csv_blocks(path, found, found.begins, 2)
        else:
            blocks = rows.json_blocks(path, 0, 1)
        for block in blocks:
            records = block.objects or [dict(zip(header, cells)) for cells in zip(*block.columns)]
            reads: Dict[int, Read] = {one[0]: rows.bad_record(file.path, one) for one in block.bad}
            reads.update((row, Record(file.path, row, values)) for row, values in zip(block.numbers, records))
            yield from (reads[row] for row in sorted(reads))

    def _of_arrays(self, file: File) -> Iterator[Read]:
        import numpy

        found = {"x": arrays.opened(self._path(file), file.path)}
        other = folder.partner(file.path)
        if other and os.path.isfile(os.path.join(self.top, other)):
            found["y"] = arrays.opened(os.path.join(self.top, other), other)
            if found["x"].rows != found["y"].rows:
                raise PrepareError("%s and %s have different numbers of rows" % (file.path, other))
        at_once = max(1, ROWS_AT_ONCE // sum(array.row_bytes for array in found.values()))
        for first in range(0, found["x"].rows, at_once):
            end = min(first + at_once, found["x"].rows)
            columns = {}
            for name, array in found.items():
                values = array.read(first, end)
                kind, shape = array.kind, array.shape
                columns[name] = [numpy.frombuffer(one, kind).reshape(shape) for one in values] if shape else values
            for row, values in enumerate(zip(*columns.values()), first):
                yield Record(file.path, row, dict(zip(columns, values)))

    def _of_file(self, file: File) -> Read:
        try:
            values = read_whole(self._path(file), file, self.form)
        except BadRecord as error:
            return error
        if self.form == "images":
            values["image"] = Picture(values["image"])
        label = self.layout.class_of(file.path)
        return Record(file.path, 0, {**values, "label": label} if label else values, names_row=False)


def _records_in(path: str) -> int:
    """How many records a TFRecord file has, by their lengths; about so many where it is damaged."""
    count = 0
    with open(path, "rb") as file:
        while len(header := file.read(HEADER.size)) == HEADER.size:
            file.seek(min(HEADER.unpack(header)[0] + 4, 1 << 40), os.SEEK_CUR)
            count += 1
    return count


def described(top: str) -> Optional[Description]:
    """The description of a prepared dataset; None where there is none. Raises `PrepareError` for a broken one."""
    try:
        with open(os.path.join(top, FILE_NAME), encoding="utf-8") as file:
            return from_text(file.read(LARGEST + 1))
    except (FileNotFoundError, OtherFormat):
        return None
    except (OSError, UnicodeDecodeError, BadDescription) as error:
        raise PrepareError("%s cannot be read: %s" % (FILE_NAME, error)) from None


def of_format(files: Sequence[File], wanted: str) -> Tuple[str, Sequence[File]]:
    """The format and its files: TFRecord files where there are any, else that of most files."""
    shards = [one for one in files if is_shard(one.path)]
    if wanted == TFRECORD or (wanted == "auto" and shards):
        if not shards:
            raise PrepareError("the data has no TFRecord file (.tfrecord, .tfrecord.gz)")
        return TFRECORD, shards
    data = [one for one in files if one.path != FILE_NAME]
    return folder.of_format(data, wanted)
