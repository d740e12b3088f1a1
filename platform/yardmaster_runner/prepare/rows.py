"""Rows of CSV and JSON lines with their numbers, some at a time; a header is row 1. Memory is bounded by a row.

A block of a CSV without quotes is split as text, which takes a third of the time of `csv.reader`; all else is left to
it. Both give the same rows.
"""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from yardmaster_runner.prepare.trouble import BadRecord, PrepareError

LONGEST_LINE = 16 << 20
LONGEST_CELL = 1 << 20
BLOCK = 512 << 10
Bad = Tuple[int, str]
"""The number of a row that cannot be used, and why."""


@dataclass(frozen=True)
class Block:
    """Some rows that follow each other: the numbers and cells of good ones (`columns`, or `objects` of JSON lines), and
    the bad ones. The next row begins at the byte `end`, and has the number `following`."""

    numbers: Sequence[int]
    columns: List[List[str]]
    objects: List[Dict[str, Any]]
    bad: List[Bad]
    end: int
    following: int


class _TooLong(Exception):
    pass


STRICT = {
    "unexpected end of data": "a quote is never closed, up to the end of the file",
    "expected after": "text behind a closing quote: a quote is never closed, or not doubled within a cell",
}
"""What `csv.reader` says of quotes, in words that help."""


class Lines:
    """The lines of a file from a byte on. One that is too long is passed over to its end, and raises `_TooLong`."""

    def __init__(self, path: str, at: int = 0) -> None:
        self.file = open(path, "rb")  # noqa: SIM115
        self.seek(at)

    def seek(self, at: int) -> None:
        self.file.seek(at)
        self.at = at

    def __iter__(self) -> Lines:
        return self

    def __next__(self) -> str:
        line = self.file.readline(LONGEST_LINE + 1)
        if not line:
            raise StopIteration
        is_first = self.at == 0
        self.at += len(line)
        if len(line) > LONGEST_LINE:
            while line and not line.endswith(b"\n"):
                line = self.file.readline(LONGEST_LINE)
                self.at += len(line)
            raise _TooLong("longer than %d bytes" % LONGEST_LINE)
        return line.decode("utf-8-sig" if is_first else "utf-8")


@dataclass(frozen=True)
class Header:
    """The names of a table's columns, the byte at which its first row begins, and what stands between two cells."""

    names: List[str]
    begins: int
    delimiter: str = ","


def header_of(path: str, shown: str) -> Header:
    """The first row of a table. Tabs or semicolons divide it if it has no comma. Raises `PrepareError` where it is
    unusable."""
    csv.field_size_limit(LONGEST_CELL)
    is_tsv = shown.lower().endswith((".tsv", ".tsv.gz"))
    found: List[Header] = []
    errors: List[Exception] = []
    for delimiter in "\t" if is_tsv else ",;\t":
        lines = Lines(path)
        with lines.file:
            try:
                names = next(csv.reader(lines, strict=True, delimiter=delimiter), [])
            except (csv.Error, _TooLong, UnicodeDecodeError) as error:
                errors.append(error)
                continue
        found.append(Header(names, lines.at, delimiter))
        if delimiter == "," and len(names) > 1:
            break
    best = max(found, key=lambda one: len(one.names), default=Header([], 0))
    if errors and len(best.names) < 2:
        raise PrepareError("%s, row 1: %s" % (shown, _in_words(errors[0]))) from None
    if not best.names or len(set(best.names)) != len(best.names) or "" in best.names:
        raise PrepareError("%s, row 1: expected a header with a different name for each column" % shown)
    return best


def csv_blocks(
    path: str,
    header: Header,
    start: int,
    number: int,
    end: Optional[int] = None,
    known: Callable[[bytes], int] = lambda _: 0,
) -> Iterator[Block]:
    """The rows from the byte `start` on, which are as the header and of which the first is row `number`. What begins
    at `end` or later is not read. `known` says of whole lines how many rows they are where these need not be read; such
    a block has no columns."""
    csv.field_size_limit(LONGEST_CELL)
    lines = Lines(path, start)
    size = min(BLOCK, LONGEST_LINE, LONGEST_CELL)
    with lines.file:
        while end is None or lines.at < end:
            begins = lines.at
            wanted = size if end is None else min(size, end - begins)
            data = lines.file.read(wanted)
            if not data:
                return
            if len(data) == size:
                data = data[: data.rfind(b"\n") + 1]
            count = known(data)
            columns = [] if count else _plain_columns(data, len(header.names), header.delimiter)
            if count or columns:
                lines.seek(begins + len(data))
                following = number + (count or len(columns[0]))
                block = Block(range(number, following), columns, [], [], lines.at, following)
            else:
                lines.seek(begins)
                block = _read_rows(lines, header, number, begins + max(1, len(data)))
            number = block.following
            yield block


def _plain_columns(data: bytes, width: int, delimiter: str) -> List[List[str]]:
    """Whole lines as columns of cells; empty where a row needs `csv.reader`, or has another number of cells."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return []
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    if not text or '"' in text or "\r" in text or "\0" in text:
        return []
    text = text[:-1] if text.endswith("\n") else text
    lines = text.split("\n")
    if {line.count(delimiter) for line in lines} != {width - 1} or (width == 1 and "" in lines):
        return []
    cells = text.replace("\n", delimiter).split(delimiter)
    return [cells[place::width] for place in range(width)]


def _read_rows(lines: Lines, header: Header, number: int, end: int) -> Block:
    """Rows by `csv.reader`, to the first one that begins at `end` or later."""
    reader, width = csv.reader(lines, strict=True, delimiter=header.delimiter), len(header.names)
    numbers: List[int] = []
    rows: List[List[str]] = []
    bad: List[Bad] = []
    while lines.at < end:
        try:
            cells = next(reader)
        except StopIteration:
            break
        except (csv.Error, _TooLong, UnicodeDecodeError) as error:
            bad.append((number, _in_words(error)))
        else:
            if len(cells) == width:
                numbers.append(number)
                rows.append(cells)
            elif cells:
                bad.append((number, "%d cells, expected %d" % (len(cells), width)))
        number += 1
    columns = [list(column) for column in zip(*rows)] if rows else [[] for _ in range(width)]
    return Block(numbers, columns, [], bad, lines.at, number)


def _in_words(error: Exception) -> str:
    said = str(error)
    return next((words for part, words in STRICT.items() if part in said), said)


def json_blocks(path: str, start: int, number: int, end: Optional[int] = None) -> Iterator[Block]:
    """The objects from the byte `start` on, one of each line. Empty lines are passed over."""
    lines = Lines(path, start)
    with lines.file:
        while end is None or lines.at < end:
            stop = lines.at + BLOCK if end is None else min(end, lines.at + BLOCK)
            block = _read_objects(lines, number, stop)
            if block.following == number:
                return
            number = block.following
            yield block


def _read_objects(lines: Lines, number: int, end: int) -> Block:
    numbers: List[int] = []
    objects: List[Dict[str, Any]] = []
    bad: List[Bad] = []
    while lines.at < end:
        reason = "expected an object"
        record: Any = None
        try:
            line = next(lines)
            if not line.strip():
                number += 1
                continue
            record = json.loads(line)
        except StopIteration:
            break
        except RecursionError:
            reason = "nested too deeply"
        except (ValueError, _TooLong) as error:
            reason = str(error)
        if isinstance(record, dict):
            numbers.append(number)
            objects.append(record)
        else:
            bad.append((number, reason))
        number += 1
    return Block(numbers, [], objects, bad, lines.at, number)


def place_of(shown: str, number: int) -> str:
    return "%s, row %d" % (shown, number)


def bad_record(shown: str, bad: Bad) -> BadRecord:
    return BadRecord(place_of(shown, bad[0]), bad[1])
