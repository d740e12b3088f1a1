"""Files of a version, by path: pages by position, like every list, only in the order of the paths."""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from apps.api.paging import ByCursor, not_a_cursor
from yardmaster.storage.file_list import ListedFile

_USUAL_PAGE = 100


@dataclass(frozen=True)
class FilesPage:
    """Some files of a version, in the order of their paths, and the cursors of the pages beside it (None: none)."""

    rows: list[ListedFile]
    previous: str | None
    next: str | None


def files_page(files: Sequence[ListedFile], cursor: str, size: int = _USUAL_PAGE) -> FilesPage:
    """The page of these files, which are in the order of their paths, that begins at the cursor (empty: the first).
    Raises `Invalid` for what is no cursor."""
    back, at = _read_cursor(cursor)
    path_of = attrgetter("path")
    if back:
        end = bisect_left(files, at, key=path_of)
        page = list(files[max(0, end - size) : end])
        has_next, has_previous = bool(page), end > size
    else:
        start = bisect_right(files, at, key=path_of)
        page = list(files[start : start + size])
        has_next, has_previous = len(files) > start + size, bool(at and page)
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
