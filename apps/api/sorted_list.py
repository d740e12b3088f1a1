"""Lists in an order that is chosen, by the position of a row: page 1,000 costs what page 1 costs.

The cursor names a row. What the list is sorted by is read again for it, so that a row whose value has changed since
keeps its place from where it stands now. Not here: pages and cursors (`paging`), and which orders a list has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

from apps.api.paging import Cursor, not_a_cursor
from apps.errors import Invalid
from yardmaster.errors import Problem


@dataclass(frozen=True)
class SortedList:
    """Rows sorted by a column or an annotation that is never null, then by primary key. A source for `page_of`."""

    rows: QuerySet[Any]
    by: str
    descending: bool = False

    def page(self, cursor: Cursor | None, limit: int) -> list[Any]:
        """Up to `limit` rows from the cursor on, in its direction. Raises `Invalid` where its row is gone."""
        back = cursor is not None and cursor.newer
        falls = self.descending != back
        rows = self.rows if cursor is None else self.rows.filter(self._beyond(cursor, falls))
        sign = "-" if falls else ""
        return list(rows.order_by(f"{sign}{self.by}", f"{sign}pk")[:limit])

    def _beyond(self, cursor: Cursor, falls: bool) -> Q:
        value = self.rows.filter(pk=cursor.at).values_list(self.by, flat=True).first()
        if value is None:
            raise not_a_cursor(cursor.encode())
        word = "lt" if falls else "gt"
        return Q(**{f"{self.by}__{word}": value}) | Q(**{self.by: value, f"pk__{word}": cursor.at})


def order_of(text: str, known: dict[str, str], default: str) -> tuple[str, bool]:
    """The column that an order such as `-joined` means, and whether it falls. Raises `Invalid` for an unknown one."""
    wish = text or default
    name = wish.removeprefix("-")
    if name not in known:
        words = ", ".join(sorted(known))
        remedy = f"Use one of {words}; with - in front of it for the reverse order."
        raise Invalid([Problem("order", "invalid", "The list has no such order.", remedy, text[:100])])
    return known[name], wish.startswith("-")
