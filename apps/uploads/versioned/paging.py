"""Files of a version, by path: pages by position, like every list, only in the order of the paths."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from apps.api.paging import LARGEST_PAGE
from apps.api.problems import Invalid
from yardmaster.errors import Problem

_USUAL_PAGE = 100


class ByPath(BasePagination):
    """`{"next", "previous", "results"}`; `?cursor=` and `?page_size=` (1 to 200)."""

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        self._url = request.build_absolute_uri()
        back, at = _cursor(request)
        size = _page_size(request)
        if back:
            rows = list(queryset.filter(path__lt=at).order_by("-path")[: size + 1])
            page = rows[:size][::-1]
            self._next, self._previous = bool(page), len(rows) > size
        else:
            rows = list(queryset.filter(path__gt=at).order_by("path")[: size + 1])
            page = rows[:size]
            self._next, self._previous = len(rows) > size, bool(at and page)
        self._page = page
        return page

    def get_paginated_response(self, data: Any) -> Response:
        return Response(
            {
                "next": self._link("n", self._page[-1].path) if self._next else None,
                "previous": self._link("p", self._page[0].path) if self._previous else None,
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

    def _link(self, direction: str, path: str) -> str:
        cursor = base64.urlsafe_b64encode(f"{direction}{path}".encode()).decode()
        return str(replace_query_param(self._url, "cursor", cursor))


def _cursor(request: Request) -> tuple[bool, str]:
    text = request.query_params.get("cursor", "")
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
