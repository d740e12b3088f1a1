"""Files of a version, by path: pages by position, like every list, only in the order of the paths."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from apps.api.paging import ByCursor, not_a_cursor
from apps.uploads.file_blocks import files_after, files_before
from apps.uploads.versioned.models import Version
from yardmaster.storage.file_list import ListedFile

_USUAL_PAGE = 100


MOST_SEARCHED = 100_000
"""Files that are looked at for one page of those that are wanted: about half a second."""


@dataclass(frozen=True)
class FilesPage:
    """Some files of a version, in the order of their paths, and the cursors of the pages beside it (None: none).
    `is_short`: the search ended before the page was full, and continues at its cursor."""

    rows: list[ListedFile]
    previous: str | None
    next: str | None
    is_short: bool = False


def files_page(
    version: Version, cursor: str, size: int = _USUAL_PAGE, wanted: Callable[[ListedFile], bool] | None = None
) -> FilesPage:
    """The page of the version's files that begins at the cursor (empty: the first); of those that are wanted, which are
    looked for among some at a time. Raises `Invalid` for what is no cursor."""
    back, at = _read_cursor(cursor)
    files = (files_before if back else files_after)(version.upload_id, at)
    rows, last, more = _some(files, size, wanted)
    is_short = more and len(rows) < size
    going_on = _cursor("p" if back else "n", last) if more else None
    if back:
        rows.reverse()
        following = _cursor("n", rows[-1].path) if rows else _cursor("n", last) if last else None
        return FilesPage(rows, previous=going_on, next=following, is_short=is_short)
    return FilesPage(
        rows, previous=_cursor("p", rows[0].path) if at and rows else None, next=going_on, is_short=is_short
    )


def _some(
    files: Iterator[ListedFile], size: int, wanted: Callable[[ListedFile], bool] | None
) -> tuple[list[ListedFile], str, bool]:
    """Up to `size` of those that are wanted, the path up to which they were looked for, and whether there are more to
    look at."""
    rows: list[ListedFile] = []
    last = ""
    for count, file in enumerate(files):
        if len(rows) == size or count == MOST_SEARCHED:
            return rows, last, True
        last = file.path
        if wanted is None or wanted(file):
            rows.append(file)
    return rows, last, False


class ByPath(ByCursor):
    """The files of a version, in the order of their paths."""

    largest_page, usual_page = 1_000, _USUAL_PAGE

    def read(self, rows: Any, cursor: str, size: int) -> tuple[list[Any], str | None, str | None]:
        page = files_page(rows, cursor, size)
        return page.rows, page.next, page.previous


def cursor_after(path: str) -> str:
    """The cursor of what follows this path."""
    return _cursor("n", path)


def path_of_cursor(text: str) -> str:
    """The path behind which the page begins; empty: the first page. Raises `Invalid`, also for one that leads back."""
    back, path = _read_cursor(text)
    if back:
        raise not_a_cursor(text)
    return path


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
