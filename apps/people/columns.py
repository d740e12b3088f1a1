"""The heads of a table that can be sorted: where each leads, and which way the table is sorted now. Pure, over the
address of a request.

Not here: the orders themselves (`user_rows`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpRequest

LARGEST_FIRST = frozenset({"joined", "created", "last_use", "jobs", "storage", "members"})


@dataclass(frozen=True)
class Column:
    """`url` empty: not sorted by. `sort` is the value of `aria-sort`, or empty."""

    words: str
    url: str = ""
    sort: str = ""
    is_number: bool = False


def columns(request: HttpRequest, shown: Sequence[tuple[str, str]], order: str) -> list[Column]:
    """The heads of these columns, as pairs of order and words. The one that is sorted by leads to its reverse."""
    return [_column(request, key, words, order) for key, words in shown]


def _column(request: HttpRequest, key: str, words: str, order: str) -> Column:
    first = f"-{key}" if key in LARGEST_FIRST else key
    is_here = order.removeprefix("-") == key
    other = key if order.startswith("-") else f"-{key}"
    query = request.GET.copy()
    query.pop("cursor", None)
    query["order"] = other if is_here else first
    sort = ("descending" if order.startswith("-") else "ascending") if is_here else ""
    return Column(words, f"?{query.urlencode()}", sort, key in ("jobs", "storage", "members"))
