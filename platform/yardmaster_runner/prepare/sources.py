"""The records of each format, with their places. A record that cannot be used comes as its `BadRecord`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Sequence, Tuple, Union

from yardmaster_runner.data.description import Feature
from yardmaster_runner.prepare import arrays, folder, pieces, rows, tables
from yardmaster_runner.prepare.cells import converted
from yardmaster_runner.prepare.files import File
from yardmaster_runner.prepare.known_rows import KnownRows
from yardmaster_runner.prepare.labels import labelled
from yardmaster_runner.prepare.layout import Chosen
from yardmaster_runner.prepare.pieces import Piece
from yardmaster_runner.prepare.schema import Columns, are_like
from yardmaster_runner.prepare.splits import FEW_KEYS
from yardmaster_runner.prepare.trouble import BadRecord, PrepareError
from yardmaster_runner.prepare.unpacked import Unpacked
from yardmaster_runner.prepare.whole_files import read_whole

ROWS_AT_ONCE = 4 << 20
"""Bytes of an array that are read at once."""
Placed = Tuple[str, Union[Dict[str, Any], BadRecord]]


@dataclass(frozen=True)
class Rows:
    """Records that have one value of each feature, by column, with the numbers of the rows that they were."""

    numbers: Sequence[int]
    columns: Dict[str, Sequence[Any]]


class Source:
    """The chosen files below `top`: those in `files` are there. Knows features and classes of all before the first
    record is read."""

    def __init__(self, top: str, chosen: Chosen, files: Sequence[File], label: str, skip: bool) -> None:
        form = chosen.form
        self.top, self.form, self.label, self.skip = top, form, label, skip
        self.listed, self.layout = chosen.files, chosen.layout
        self.files = files
        self.features: Dict[str, Feature] = {}
        self.classes: List[str] = []
        self.kinds: Dict[str, str] = {}
        self.notes: List[str] = []
        self.headers: Dict[str, rows.Header] = {}
        self.unpacked = Unpacked()
        self.numbered: List[Tuple[str, Sequence[int]]] = []
        self.count = 0
        self.marks: Dict[str, pieces.Marks] = {}
        if form in ("images", "text"):
            self._open_folders()
        elif form == "numpy":
            self._open_numpy()
        else:
            self._open_tables()
        self.numbers = {name: number for number, name in enumerate(self.classes)}
        self.is_flat = form != "jsonl" or (
            all(one.shape == () and one.kind != "none" for one in self.features.values())
        )
        """Each record has one value of each feature: `flat` reads it, or `flat_files`."""
        self.is_of_files = form in ("images", "text")

    def pieces(self, workers: int, worker: int) -> List[Piece]:
        """Those of a worker, where all files are there."""
        return pieces.cut(self.files, self.marks, workers, worker)

    def wholes(self) -> Sequence[Piece]:
        """All records, a piece for each file."""
        return pieces.Wholes(self.files, self.marks)

    def _open_folders(self) -> None:
        self.classes = sorted({self.layout.class_of(one.path) for one in self.listed} - {""})
        name, encoding = ("image", "image") if self.form == "images" else ("text", "utf8")
        self.features = {name: Feature("bytes", (), encoding)}
        self.label = "label" if self.classes else ""
        if self.classes:
            self.features["label"] = Feature("int64", ())

    def _open_tables(self) -> None:
        """Read all rows once: what the columns hold, and where rows begin."""
        table = tables.Table(self.label)
        # Of one that is compressed the size is that of its rows: the files are cut by it.
        self.files = [File(one.path, os.path.getsize(self._path(one))) for one in self.files]
        for one in self.files:
            start, number = 0, 1
            if self.form == "csv":
                header = self.headers[one.path] = rows.header_of(self._path(one), one.path)
                tables.check_same(self.headers, self.files[0].path, one.path)
                start, number = header.begins, 2
            marks = self.marks[one.path] = pieces.Marks()
            marks.add(start, number)
            for block in self._all_blocks(table, one, start, number):
                self._see(table, one, block)
                self._number(one, block.numbers)
                start, number = block.end, block.following
                marks.add(start, number)
            marks.add(start, number, is_last=True)
        self.features, self.classes, self.kinds = table.features(), table.classes(), table.kinds
        self.notes = [*tables.delimiters(self.headers), *table.notes()]

    def _number(self, one: File, numbers: Sequence[int]) -> None:
        """Note good rows (`Splits`), but not of all in large tables."""
        if self.count <= FEW_KEYS:
            self.numbered.append((one.path, numbers))
            self.count += len(numbers)

    def _all_blocks(self, table: tables.Table, one: File, start: int, number: int) -> Iterator[rows.Block]:
        if self.form != "csv":
            return self._blocks(one, start, number, None)
        header = self.headers[one.path]
        known = KnownRows(header.names, self.label, table.seen, table.names, header.delimiter)
        return self._labelled(one, rows.csv_blocks(self._path(one), header, start, number, None, known.count))

    def _see(self, table: tables.Table, one: File, block: rows.Block) -> None:
        if block.bad and not self.skip:
            raise rows.bad_record(one.path, block.bad[0])
        if block.columns:
            try:
                table.see_columns(dict(zip(self.headers[one.path].names, block.columns)))
            except ValueError as error:
                raise PrepareError("%s: %s" % (one.path, error)) from None
        elif block.objects and not table.see_objects(block.objects):
            for number, record in zip(block.numbers, block.objects):
                try:
                    table.see_members(record)
                except ValueError as error:
                    if not self.skip:
                        raise rows.bad_record(one.path, (number, str(error))) from None

    def _blocks(self, one: File, start: int, number: int, end: Any) -> Iterator[rows.Block]:
        if self.form == "csv":
            found = rows.csv_blocks(self._path(one), self.headers[one.path], start, number, end)
        else:
            found = rows.json_blocks(self._path(one), start, number, end)
        return self._labelled(one, found)

    def _labelled(self, one: File, blocks: Iterator[rows.Block]) -> Iterator[rows.Block]:
        header = self.headers[one.path].names if self.form == "csv" else []
        return (labelled(block, self.label, header) for block in blocks) if self.label else blocks

    def _path(self, one: File) -> str:
        return self.unpacked.path(os.path.join(self.top, one.path), one.path)

    def _open_numpy(self) -> None:
        partners = folder.partners(self.files)
        self.files = [one for one in self.files if one.path not in partners]
        self.label = "y" if folder.partners(self.listed) else ""
        for one in self.files:
            found = self._arrays(one)
            features = {name: array.feature() for name, array in found}
            if self.features and features != self.features:
                raise PrepareError("%s: its items or shape differ from those of %s" % (one.path, self.files[0].path))
            self.features = features
            array = found[0][1]
            every = max(1, pieces.MARK_EVERY // array.row_bytes)
            numbers = [*range(0, array.rows, every), array.rows]
            self._number(one, range(array.rows))
            self.marks[one.path] = pieces.Marks([array.begins + n * array.row_bytes for n in numbers], numbers)

    def _arrays(self, one: File) -> List[Tuple[str, arrays.Array]]:
        found = [("x", arrays.opened(self._path(one), one.path))]
        other = folder.partner(one.path)
        if other and os.path.isfile(os.path.join(self.top, other)):
            found.append(("y", arrays.opened(os.path.join(self.top, other), other)))
            if found[0][1].rows != found[1][1].rows:
                message = "%s has %d records, %s has %d"
                raise PrepareError(message % (one.path, found[0][1].rows, other, found[1][1].rows))
        return found

    def flat(self, piece: Piece) -> Iterator[Union[Rows, BadRecord]]:
        """The records of a piece by columns, where the source `is_flat`; texts as bytes."""
        shown = piece.file.path
        if self.form == "numpy":
            found = self._arrays(piece.file)
            at_once = max(1, ROWS_AT_ONCE // sum(array.row_bytes for _, array in found))
            for first in range(piece.first, piece.following, at_once):
                end = min(first + at_once, piece.following)
                yield Rows(range(first, end), {name: array.read(first, end) for name, array in found})
            return
        for block in self._blocks(piece.file, piece.start, piece.first, piece.end):
            for bad in block.bad:
                yield rows.bad_record(shown, bad)
            if block.columns and block.numbers:
                header = self.headers[shown].names
                cells = {name: self._cells(shown, name, one) for name, one in zip(header, block.columns)}
                yield Rows(block.numbers, cells)
            elif block.objects:
                yield from self._flat_objects(shown, block)

    def _cells(self, shown: str, name: str, cells: Sequence[str]) -> Sequence[Any]:
        """A column of cells as values."""
        try:
            if self.classes and name == self.label:
                return [self.numbers[one] for one in cells]
            kind = self.kinds[name]
            return [one.encode() for one in cells] if kind == "bytes" else converted(cells, kind)
        except (KeyError, ValueError):
            raise PrepareError("%s: it changed while it was read" % shown) from None

    def _whole(self, one: File) -> Dict[str, Any]:
        record = read_whole(self._path(one), one, self.form)
        if self.classes:
            record["label"] = self.numbers[self.layout.class_of(one.path)]
        return record

    def flat_files(self, group: Sequence[Piece]) -> Iterator[Union[Rows, BadRecord]]:
        """As `flat`, of files that are a record each; the numbers are those of the files in the group."""
        read: List[Tuple[int, Dict[str, Any]]] = []
        for number, piece in enumerate(group):
            try:
                read.append((number, self._whole(piece.file)))
            except BadRecord as error:
                yield error
        if read:
            columns: Dict[str, Sequence[Any]] = {name: [record[name] for _, record in read] for name in self.features}
            if self.form == "text":
                columns["text"] = [one.encode() for one in columns["text"]]
            yield Rows([number for number, _ in read], columns)

    def _flat_objects(self, shown: str, block: rows.Block) -> Iterator[Union[Rows, BadRecord]]:
        if are_like(self._features_as_read(), block.objects):
            yield self._columns_of(block.numbers, block.objects)
            return
        for number, record in zip(block.numbers, block.objects):
            if are_like(self._features_as_read(), [record]):
                yield self._columns_of([number], [record])
            else:
                yield BadRecord(rows.place_of(shown, number), self._difference(record))

    def _difference(self, record: Dict[str, Any]) -> str:
        try:
            Columns(self._features_as_read()).values(record)
        except ValueError as error:
            return str(error)
        return "its members differ from those of the rows before"

    def _features_as_read(self) -> Dict[str, Feature]:
        texts = {self.label: Feature("bytes", (), "utf8")} if self.classes else {}
        return {**self.features, **texts}

    def _columns_of(self, numbers: Sequence[int], records: Sequence[Dict[str, Any]]) -> Rows:
        columns: Dict[str, Sequence[Any]] = {}
        for name, feature in self.features.items():
            values = [record[name] for record in records]
            if self.classes and name == self.label:
                values = [self.numbers[one] for one in values]
            elif feature.kind == "bytes":
                values = [one.encode("utf-8", "replace") for one in values]
            columns[name] = values
        return Rows(numbers, columns)

    def records(self, piece: Piece) -> Iterator[Placed]:
        """All records of a piece, one by one."""
        shown = piece.file.path
        if self.form == "numpy":
            for found in self.flat(piece):
                assert isinstance(found, Rows)
                for number, values in zip(found.numbers, zip(*found.columns.values())):
                    yield rows.place_of(shown, number), dict(zip(found.columns, values))
        elif self.form in ("csv", "jsonl"):
            for block in self._blocks(piece.file, piece.start, piece.first, piece.end):
                for bad in block.bad:
                    yield rows.place_of(shown, bad[0]), rows.bad_record(shown, bad)
                for number, record in zip(block.numbers, self._objects(shown, block)):
                    yield self._valued(rows.place_of(shown, number), record)
        else:
            try:
                yield shown, self._whole(piece.file)
            except BadRecord as error:
                yield shown, error

    def _objects(self, shown: str, block: rows.Block) -> Iterator[Dict[str, Any]]:
        if not block.columns:
            return iter(block.objects)
        header = self.headers[shown].names
        columns = [converted(cells, self.kinds[name]) for name, cells in zip(header, block.columns)]
        return (dict(zip(header, values)) for values in zip(*columns))

    def _valued(self, place: str, record: Dict[str, Any]) -> Placed:
        if self.classes:
            try:
                record[self.label] = self.numbers[str(record[self.label])]
            except KeyError:
                return place, BadRecord(place, "no column %s, which is the label" % self.label)
        return place, record
