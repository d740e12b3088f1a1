"""Pages of a list that is sorted by what its reader chose: by number, as no id is the order of such a list.

Not here: lists that are newest first (`paging`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db.models import QuerySet

from apps.api.paging import ByCursor, not_a_cursor

Row = TypeVar("Row")
FARTHEST = 1_000_000


@dataclass(frozen=True)
class Numbered(Generic[Row]):
    """One page. `number` counts from 1; `before` and `after` are numbers of pages, None: there is none."""

    rows: Sequence[Row]
    total: int
    number: int
    size: int

    @property
    def first(self) -> int:
        """The place of its first row in the list, from 1; 0 where it is empty."""
        return (self.number - 1) * self.size + 1 if self.rows else 0

    @property
    def last(self) -> int:
        return (self.number - 1) * self.size + len(self.rows)

    @property
    def before(self) -> int | None:
        return self.number - 1 if self.number > 1 else None

    @property
    def after(self) -> int | None:
        return self.number + 1 if self.last < self.total and self.rows else None


def numbered(rows: Sequence[Row] | QuerySet[Any], number: str, size: int) -> Numbered[Row]:
    """The page of this number; what is no number, or past the end, is the nearest page that there is. Of a query: two
    statements."""
    total = rows.count() if isinstance(rows, QuerySet) else len(rows)
    pages = max(1, -(-total // size))
    wanted = int(number) if number.isascii() and number.isdigit() and len(number) < 8 else 1
    at = min(max(wanted, 1), pages)
    return Numbered(list(rows[(at - 1) * size : at * size]), total, at, size)


class ByOffset(ByCursor):
    """The pages of the API: a cursor is how many rows come before."""

    cursor_schema = {"type": "string", "pattern": "^[0-9]{1,7}$"}

    def read(self, rows: Any, cursor: str, size: int) -> tuple[list[Any], str | None, str | None]:
        if cursor and not (cursor.isascii() and cursor.isdigit() and len(cursor) <= 7 and int(cursor) <= FARTHEST):
            raise not_a_cursor(cursor)
        at = int(cursor or 0)
        found = list(rows[at : at + size + 1])
        following = str(at + size) if len(found) > size else None
        return found[:size], following, str(max(0, at - size)) if at else None
