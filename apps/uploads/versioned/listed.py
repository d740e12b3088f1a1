"""Versions of several stores in one statement, with the columns that a list of them needs.

Not here: which versions a person may see (`selectors`), and what a list shows of them.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db.models import QuerySet, Value


class Listed(NamedTuple):
    """One version of a named thing, as far as lists show it and its files are found."""

    pk: uuid.UUID
    number: int
    upload_id: uuid.UUID
    key_prefix: str
    parent_id: uuid.UUID
    name: str
    """Of the thing."""
    namespace: str
    """Its short name."""


_COLUMNS = ("pk", "number", "upload_id", "key_prefix", "parent_id", "parent__name", "parent__namespace__slug")


def versions_listed(wanted: Sequence[QuerySet[Any]]) -> list[list[Listed]]:
    """The rows of each of these querysets of versions, of whatever store, in no order. One statement for all of them.

    None may be sliced: not every database takes that in a part of a union. `pk__in` takes a sliced one.
    """
    found: list[list[Listed]] = [[] for _ in wanted]
    parts = [
        rows.order_by().annotate(place=Value(place)).values_list("place", *_COLUMNS)
        for place, rows in enumerate(wanted)
    ]
    if parts:
        for place, *columns in parts[0].union(*parts[1:], all=True):
            found[place].append(Listed(*columns))
    return found
