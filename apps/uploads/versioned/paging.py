"""Files of a version, by path: pages by position, like every list, only in the order of the paths."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db.models import QuerySet

from apps.api.paging import ByCursor, not_a_cursor
from apps.uploads.versioned.models import VersionFile

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


class ByPath(ByCursor):
    """In the order of the paths."""

    usual_page = _USUAL_PAGE

    def read(self, rows: Any, cursor: str, size: int) -> tuple[list[Any], str | None, str | None]:
        page = files_page(rows, cursor, size)
        return page.rows, page.next, page.previous


def _cursor(direction: str, path: str) -> str:
    return base64.urlsafe_b64encode(f"{direction}{path}".encode()).decode()


def _read_cursor(text: str) -> tuple[bool, str]:
    """Whether it leads back, and the path it stands at."""
    if not text:
        return False, ""
    try:
        raw = base64.b64decode(text.encode("ascii"), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeError) as error:
        raise not_a_cursor(text) from error
    if raw[:1] not in ("n", "p") or "\0" in raw:
        raise not_a_cursor(text)
    return raw[0] == "p", raw[1:]
