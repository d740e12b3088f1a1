"""Files of a version, by path: pages by position, like every list, only in the order of the paths."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db.models import QuerySet
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from apps.api.paging import LARGEST_PAGE
from apps.api.problems import Invalid
from apps.uploads.versioned.models import VersionFile
from yardmaster.errors import Problem

_USUAL_PAGE = 100

F = TypeVar("F", bound=VersionFile)


@dataclass(frozen=True)
class FilesPage(Generic[F]):
    """Some files of a version, in the order of their paths, and the cursors of the pages beside it (None: none)."""

    rows: list[F]
    previous: str | None
    next: str | None


def files_page(files: QuerySet[F], cursor: str, size: int = _USUAL_PAGE) -> FilesPage[F]:
    """The page that begins at the cursor (empty: the first). Raises `Invalid` for what is no cursor."""
    back, at = _read_cursor(cursor)
    if back:
        rows = list(files.filter(path__lt=at).order_by("-path")[: size + 1])
        page = rows[:size][::-1]
        has_next, has_previous = bool(page), len(rows) > size
    else:
        rows = list(files.filter(path__gt=at).order_by("path")[: size + 1])
        page = rows[:size]
        has_next, has_previous = len(rows) > size, bool(at and page)
    return FilesPage(
        page,
        previous=_cursor("p", page[0].path) if has_previous else None,
        next=_cursor("n", page[-1].path) if has_next else None,
    )


class ByPath(BasePagination):
    """`{"next", "previous", "results"}`; `?cursor=` and `?page_size=` (1 to 200)."""

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        self._url = request.build_absolute_uri()
        self._page = files_page(queryset, request.query_params.get("cursor", ""), _page_size(request))
        return self._page.rows

    def get_paginated_response(self, data: Any) -> Response:
        return Response(
            {
                "next": self._link(self._page.next),
                "previous": self._link(self._page.previous),
                "results": data,
            }
        )

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        link = {"type": ["string", "null"], "format": "uri"}
        return {
            "type": "object",
            "required": ["next", "previous", "results"],
            "properties": {"next": link, "previous": link, "results": schema},
        }

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        size = {"type": "integer", "minimum": 1, "maximum": LARGEST_PAGE, "default": _USUAL_PAGE}
        return [
            {"name": "cursor", "in": "query", "required": False, "schema": {"type": "string"}},
            {"name": "page_size", "in": "query", "required": False, "schema": size},
        ]

    def _link(self, cursor: str | None) -> str | None:
        return None if cursor is None else str(replace_query_param(self._url, "cursor", cursor))


def _cursor(direction: str, path: str) -> str:
    return base64.urlsafe_b64encode(f"{direction}{path}".encode()).decode()


def _read_cursor(text: str) -> tuple[bool, str]:
    """Whether it leads back, and the path it stands at."""
    if not text:
        return False, ""
    try:
        raw = base64.b64decode(text.encode("ascii"), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeError) as error:
        raise _not_a_cursor(text) from error
    if raw[:1] not in ("n", "p") or "\0" in raw:
        raise _not_a_cursor(text)
    return raw[0] == "p", raw[1:]


def _not_a_cursor(text: str) -> Invalid:
    remedy = "Use `next` or `previous` of a page as it is, or leave the cursor out."
    return Invalid([Problem("cursor", "invalid", "This is not a cursor of this list.", remedy, text[:100])])


def _page_size(request: Request) -> int:
    text = request.query_params.get("page_size", "")
    if not text:
        return _USUAL_PAGE
    if text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= LARGEST_PAGE:
        return int(text)
    message = f"A page holds 1 to {LARGEST_PAGE} entries."
    raise Invalid([Problem("page_size", "invalid", message, f"Ask for a number from 1 to {LARGEST_PAGE}.", text[:100])])
