"""How wide the columns of a table are. IDs and names are always whole, so that they can be copied.

A file or a pipe gets each row on one line, however long. In a terminal the other columns shrink, the widest first: a
sentence with enough space continues on the next line, all else is cut with an ellipsis. Where even that does not fit,
the row is wider than the terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from rich.console import Console
from rich.text import Text

_WHOLE = frozenset(
    {
        "CACHE", "DATASET", "FILE", "ID", "JOB", "LEFT OUT", "MODEL", "NAME", "NAMESPACE", "PARAMETER", "PATH",
        "SESSION", "TASK", "TEMPLATE", "TRIAL", "VERSION",
    }
)  # fmt: skip
"""Heads of columns that are copied into other commands."""
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_GAP = "  "
_LEAST = 8
"""The width below which no column shrinks: a phase or a date is still recognised."""
_LEAST_TO_WRAP = 24
"""The width from which a sentence takes several lines."""


def print_rows(console: Console, head: Sequence[Text], rows: Sequence[Sequence[Text]]) -> None:
    """A table with a head. Each cell is one line of text without control characters."""
    for title in head:
        title.stylize("bold")
    cells = [[_in_one_line(cell) for cell in row] for row in (head, *rows)]
    widths = [max(cell.cell_len for cell in column) for column in zip(*cells, strict=True)]
    if console.file.isatty():
        whole = [_is_whole(column) for column in zip(*cells, strict=True)]
        widths = fitted(widths, whole, console.width - len(_GAP) * (len(widths) - 1))
    for row in cells:
        _print_row(console, [list(_pieces(console, *one)) for one in zip(row, widths, strict=True)], widths)


def print_pairs(console: Console, pairs: Sequence[tuple[Text, Text]]) -> None:
    """Names and values without a head. In a terminal a long sentence continues below its beginning."""
    width = max((name.cell_len for name, _ in pairs), default=0)
    space = max(console.width - width - len(_GAP), _LEAST_TO_WRAP)
    for name, value in pairs:
        name.stylize("dim")
        wraps = console.file.isatty() and " " in value.plain
        lines = value.wrap(console, space) if wraps else value.split("\n", allow_blank=True)
        _print_row(console, [[name], list(lines)], [width, 0])


def fitted(widths: Sequence[int], whole: Sequence[bool], space: int) -> list[int]:
    """The widths, with those that are not `whole` reduced to a common limit, so that their sum is at most `space` where
    that is possible."""
    shrinking = [width for width, is_whole in zip(widths, whole, strict=True) if not is_whole]
    space -= sum(widths) - sum(shrinking)
    limit = max(shrinking, default=0)
    while limit > _LEAST and sum(min(width, limit) for width in shrinking) > space:
        limit -= 1
    return [width if is_whole else min(width, limit) for width, is_whole in zip(widths, whole, strict=True)]


def _is_whole(column: Sequence[Text]) -> bool:
    head, *cells = (cell.plain for cell in column)
    return head in _WHOLE or any(_ID.fullmatch(cell) for cell in cells)


def _in_one_line(cell: Text) -> Text:
    """The cell with a space for each line end and tab: as long as before, so that styles stay in place."""
    cell.plain = re.sub(r"[\n\r\t]", " ", cell.plain)
    return cell


def _pieces(console: Console, cell: Text, width: int) -> Iterator[Text]:
    """The lines of a cell."""
    if cell.cell_len > width and width >= _LEAST_TO_WRAP and " " in cell.plain.strip():
        yield from cell.wrap(console, width)
        return
    cell.truncate(width, overflow="ellipsis")
    yield cell


def _print_row(console: Console, row: Sequence[Sequence[Text]], widths: Sequence[int]) -> None:
    for cells in zip_longest(*row, fillvalue=Text()):
        line = Text()
        for cell, width in zip(cells, widths, strict=True):
            line.append_text(cell).append(" " * (width - cell.cell_len) + _GAP)
        line.rstrip()
        console.print(line, soft_wrap=True)
