"""Rows of CSV and JSON lines with their numbers; a header is row 1. Memory is bounded by a row."""

from __future__ import annotations

import csv
import json
from typing import Any, Dict, Iterator, List, Set, Tuple, Union

from yardmaster_runner.data.description import Feature
from yardmaster_runner.prepare.schema import Columns
from yardmaster_runner.prepare.trouble import BadRecord, PrepareError

LONGEST_LINE = 16 << 20
LONGEST_CELL = 1 << 20
MOST_CLASSES = 100_000
Row = Tuple[int, Union[Dict[str, Any], BadRecord]]


class _TooLong(Exception):
    pass


class Lines:
    """The lines of a file. One that is too long is passed over to its end, and told by `_TooLong`."""

    def __init__(self, path: str) -> None:
        self.file = open(path, "rb")  # noqa: SIM115
        self.number = 0

    def __iter__(self) -> Lines:
        return self

    def __next__(self) -> str:
        line = self.file.readline(LONGEST_LINE + 1)
        if not line:
            self.file.close()
            raise StopIteration
        self.number += 1
        if len(line) > LONGEST_LINE:
            while line and not line.endswith(b"\n"):
                line = self.file.readline(LONGEST_LINE)
            raise _TooLong("longer than %d bytes" % LONGEST_LINE)
        return line.decode("utf-8-sig" if self.number == 1 else "utf-8")


def csv_rows(path: str, shown: str) -> Iterator[Row]:
    """The rows by the names of the header, as text. Raises `PrepareError` for a file without a usable header."""
    lines = Lines(path)
    try:
        yield from _cells(lines, shown)
    finally:
        lines.file.close()


def _cells(lines: Lines, shown: str) -> Iterator[Row]:
    csv.field_size_limit(LONGEST_CELL)
    reader = csv.reader(lines)
    number = 1
    try:
        header = next(reader, [])
    except (csv.Error, _TooLong, UnicodeDecodeError) as error:
        raise PrepareError("%s, row 1: %s" % (shown, error)) from None
    if not header or len(set(header)) != len(header) or "" in header:
        raise PrepareError("%s, row 1: expected a header with a different name for each column" % shown)
    while True:
        number += 1
        place = "%s, row %d" % (shown, number)
        try:
            cells = next(reader)
        except StopIteration:
            return
        except (csv.Error, _TooLong, UnicodeDecodeError) as error:
            yield number, BadRecord(place, str(error))
            continue
        if not cells:
            continue
        if len(cells) != len(header):
            yield number, BadRecord(place, "%d cells, expected %d" % (len(cells), len(header)))
        else:
            yield number, dict(zip(header, cells))


def json_rows(path: str, shown: str) -> Iterator[Row]:
    """The objects, one of each line. Empty lines are passed over."""
    lines = Lines(path)
    try:
        yield from _objects(lines, shown)
    finally:
        lines.file.close()


def _objects(lines: Lines, shown: str) -> Iterator[Row]:
    while True:
        try:
            line = next(lines)
            if not line.strip():
                continue
            record = json.loads(line)
        except StopIteration:
            return
        except RecursionError:
            record = None
            reason = "nested too deeply"
        except (ValueError, _TooLong) as error:
            record, reason = None, str(error)
        else:
            reason = "expected an object"
        place = "%s, row %d" % (shown, lines.number)
        yield lines.number, record if isinstance(record, dict) else BadRecord(place, reason)


def cell_kind(text: str, known: str) -> str:
    """The narrowest kind from `known` on that holds the text: int64, float, bytes."""
    if known == "int64":
        try:
            if -(2**63) <= int(text) < 2**63 and "_" not in text:
                return "int64"
        except ValueError:
            pass  # no whole number: perhaps one of the wider kinds below
    if known != "bytes":
        try:
            if "_" not in text and (abs(float(text)) < 3.4e38 or float(text) in (float("inf"), -float("inf"))):
                return "float"
        except ValueError:
            if text == "":
                return "float"
        if text != text.strip() and not text.strip():
            return "float"
    return "bytes"


class Table:
    """What a first pass over all rows finds, so that every worker writes the same features and classes."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.kinds: Dict[str, str] = {}
        self.columns = Columns()
        self.names: Set[str] = set()

    def see_cells(self, cells: Dict[str, str]) -> None:
        for name, text in cells.items():
            known = self.kinds.get(name, "int64")
            if known != "bytes":
                self.kinds[name] = cell_kind(text, known)
        self._see_label(cells)

    def see_members(self, record: Dict[str, Any]) -> None:
        self.columns.see(record)
        self._see_label(record)

    def _see_label(self, record: Dict[str, Any]) -> None:
        if not self.label:
            return
        if self.label not in record:
            raise ValueError("no column %s, which is the label" % self.label)
        self.names.add(str(record[self.label]))
        if len(self.names) > MOST_CLASSES:
            raise PrepareError("%s has more than %d values: it is no label" % (self.label, MOST_CLASSES))

    def features(self) -> Dict[str, Feature]:
        """The features with the label as whole numbers."""
        found = dict(self.columns.features)
        for name, kind in self.kinds.items():
            found[name] = Feature(kind, (), "utf8" if kind == "bytes" else "")
        if self.classes():
            found[self.label] = Feature("int64", ())
        return found

    def classes(self) -> List[str]:
        """The names of the classes, where the label is text."""
        kind = self.kinds.get(self.label) or (
            self.columns.features[self.label].kind if self.label in self.columns.features else "")  # fmt: skip
        return sorted(self.names) if self.label and kind == "bytes" else []


def converted(cells: Dict[str, str], kinds: Dict[str, str]) -> Dict[str, Any]:
    """Cells as values. An empty cell of a column of numbers is NaN."""
    out: Dict[str, Any] = {}
    for name, text in cells.items():
        kind = kinds[name]
        out[name] = int(text) if kind == "int64" else text
        if kind == "float":
            out[name] = float(text) if text.strip() else float("nan")
    return out
