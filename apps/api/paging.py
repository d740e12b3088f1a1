"""Lists, newest first, by the position of an id: page 1,000 costs what page 1 costs, and nothing is ever counted.

Ids are UUIDv7, made in time order, so the primary key is the order and its index serves every page. A list that is
sorted by something else is read by places: values change, so there is no position of a row to continue from.
"""

from __future__ import annotations

import base64
import binascii
import struct
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, Protocol, TypeVar, cast

from django.db.models import QuerySet
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.utils.urls import replace_query_param

from apps.errors import Invalid
from yardmaster.errors import Problem

LARGEST_PAGE = 200

Row = TypeVar("Row")


@dataclass(frozen=True)
class Cursor:
    """A place in a list: the page that follows `at` (older), or the one that comes before it (`newer`)."""

    at: uuid.UUID
    newer: bool = False

    def encode(self) -> str:
        return base64.urlsafe_b64encode((b"n" if self.newer else b"o") + self.at.bytes).decode().rstrip("=")

    @classmethod
    def decode(cls, text: str) -> Cursor:
        """Raises ValueError for what `encode` did not make."""
        try:
            raw = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, UnicodeEncodeError) as error:
            raise ValueError(f"not a cursor: {text[:50]!r}") from error
        if len(raw) != 17 or raw[:1] not in (b"n", b"o"):
            raise ValueError(f"not a cursor: {text[:50]!r}")
        return cls(at=uuid.UUID(bytes=raw[1:]), newer=raw[:1] == b"n")


MOST_PLACES = 1_000_000


@dataclass(frozen=True)
class Place:
    """A place in a sorted list: the page that begins with the `start`-th row, as the list was `at` that time (Unix
    seconds)."""

    start: int
    at: int

    def encode(self) -> str:
        return base64.urlsafe_b64encode(b"s" + struct.pack(">qq", self.start, self.at)).decode().rstrip("=")

    @classmethod
    def decode(cls, text: str) -> Place:
        """Raises ValueError for what `encode` did not make."""
        try:
            raw = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, UnicodeEncodeError) as error:
            raise ValueError(f"not a place: {text[:50]!r}") from error
        if len(raw) != 17 or raw[:1] != b"s":
            raise ValueError(f"not a place: {text[:50]!r}")
        start, at = struct.unpack(">qq", raw[1:])
        if not (0 <= start <= MOST_PLACES and 0 <= at <= _LATEST):
            raise ValueError(f"not a place: {text[:50]!r}")
        return cls(start, at)


_LATEST = 32_503_680_000  # the year 3000


@dataclass(frozen=True)
class Page(Generic[Row]):
    """One page of a list, newest first, and where its neighbours begin (None: there is none)."""

    rows: list[Row]
    newer_cursor: str | None
    older_cursor: str | None


class Source(Protocol[Row]):
    """A list of more than one query, such as `apps.jobs.job_list.JobList`."""

    def page(self, cursor: Cursor | None, limit: int) -> list[Row]:
        """Up to `limit` rows from the cursor on, in its direction."""


class SortedSource(Protocol[Row]):
    """A list in an order of its own, as `apps.jobs.job_list.JobList` is where `is_sorted`."""

    @property
    def is_sorted(self) -> bool: ...

    def part(self, start: int, end: int, at: datetime) -> list[Row]:
        """The rows at the places from `start` to before `end`, as the list was at that time."""


def page_of(rows: QuerySet[Any] | Source[Any], cursor: str | None, size: int) -> Page[Any]:
    """The page of a list that begins at a cursor; None or empty: the newest. Raises `Invalid` for what is no cursor."""
    if getattr(rows, "is_sorted", False):
        return _sorted_page(cast("SortedSource[Any]", rows), cursor or "", size)
    read = (lambda at, limit: list(_from(rows, at)[:limit])) if isinstance(rows, QuerySet) else rows.page
    return _page(read, _cursor(cursor or ""), size)


def _sorted_page(rows: SortedSource[Any], cursor: str, size: int) -> Page[Any]:
    try:
        place = Place.decode(cursor) if cursor else Place(0, int(time.time()))
    except ValueError as error:
        raise not_a_cursor(cursor) from error
    found = rows.part(place.start, place.start + size + 1, datetime.fromtimestamp(place.at, UTC))
    following = Place(place.start + size, place.at)
    before = Place(max(0, place.start - size), place.at)
    return Page(
        rows=found[:size],
        newer_cursor=before.encode() if place.start else None,
        older_cursor=following.encode() if len(found) > size and following.start <= MOST_PLACES else None,
    )


def _page(read: Callable[[Cursor | None, int], list[Any]], cursor: Cursor | None, size: int) -> Page[Any]:
    found = read(cursor, size + 1)
    more, rows = len(found) > size, found[:size]
    if cursor is not None and cursor.newer:
        rows.reverse()
        has_newer, has_older = more, bool(rows)
    else:
        has_newer, has_older = cursor is not None and bool(rows), more
    return Page(
        rows=rows,
        newer_cursor=Cursor(rows[0].pk, newer=True).encode() if has_newer else None,
        older_cursor=Cursor(rows[-1].pk).encode() if has_older else None,
    )


class ByCursor(BasePagination):
    """`{"next", "previous", "results"}`; `?cursor=` and `?page_size=` (1 to 200). The order is the subclass's."""

    largest_page = LARGEST_PAGE
    usual_page = int(api_settings.PAGE_SIZE or LARGEST_PAGE)
    cursor_schema: dict[str, Any] = {"type": "string"}

    def read(self, rows: Any, cursor: str, size: int) -> tuple[list[Any], str | None, str | None]:
        """The page that begins at the cursor (empty: the first), and the cursors of the next and of the previous one
        (None: there is none). Raises `Invalid` for what is no cursor."""
        raise NotImplementedError  # a hook: every subclass has its own

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        cursor, size = request.query_params.get("cursor", ""), self._size(request.query_params.get("page_size", ""))
        page, following, before = self.read(queryset, cursor, size)
        url = request.build_absolute_uri()
        self._links = {"next": _link(url, following), "previous": _link(url, before)}
        return page

    def get_paginated_response(self, data: Any) -> Response:
        return Response({**self._links, "results": data})

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        link = {"type": ["string", "null"], "format": "uri"}
        return {
            "type": "object",
            "required": ["next", "previous", "results"],
            "properties": {"next": link, "previous": link, "results": schema},
        }

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        size = {"type": "integer", "minimum": 1, "maximum": self.largest_page, "default": self.usual_page}
        where = "Position of the page, from `next` or `previous` of another page."
        return [
            {"name": "cursor", "in": "query", "required": False, "description": where, "schema": self.cursor_schema},
            {"name": "page_size", "in": "query", "required": False, "schema": size},
        ]

    def _size(self, text: str) -> int:
        if not text:
            return self.usual_page
        if text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= self.largest_page:
            return int(text)
        message, remedy = f"A page holds 1 to {self.largest_page} entries.", f"Choose 1 to {self.largest_page}."
        raise Invalid([Problem("page_size", "invalid", message, remedy, text[:100])])


class NewestFirst(ByCursor):
    """By id, the newest first; of a query, or of a `Source`."""

    cursor_schema = {"type": "string", "pattern": "^[A-Za-z0-9_-]{23}$"}

    def read(self, rows: Any, cursor: str, size: int) -> tuple[list[Any], str | None, str | None]:
        page = page_of(rows, cursor, size)
        return page.rows, page.older_cursor, page.newer_cursor


def not_a_cursor(text: str) -> Invalid:
    """The problem of a cursor that no page gave."""
    remedy = "Use `next` or `previous` of a page unchanged, or omit the cursor."
    return Invalid([Problem("cursor", "invalid", "The cursor does not belong to this list.", remedy, text[:100])])


def _link(url: str, cursor: str | None) -> str | None:
    return None if cursor is None else str(replace_query_param(url, "cursor", cursor))


def _from(queryset: QuerySet[Any], cursor: Cursor | None) -> QuerySet[Any]:
    if cursor is None:
        return queryset.order_by("-pk")
    if cursor.newer:
        return queryset.filter(pk__gt=cursor.at).order_by("pk")
    return queryset.filter(pk__lt=cursor.at).order_by("-pk")


def _cursor(text: str) -> Cursor | None:
    if not text:
        return None
    try:
        return Cursor.decode(text)
    except ValueError as error:
        raise not_a_cursor(text) from error
