"""The pages of code: versions, the source text, and what differs between two versions."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver, path

from apps.code.compare import TextDiff, compare_texts
from apps.code.highlight import highlight
from apps.code.models import Code, CodeVersion
from apps.code.selectors import CODE, read_source
from apps.code.tree import rows_of, tree_of
from apps.uploads.versioned import pages, selectors
from apps.uploads.versioned.comparing import lists_compare
from apps.uploads.versioned.models import Collection, Version
from yardmaster.storage.file_list import ListedFile

WORDS = pages.Words(
    title="Code", noun="code", icon="code", command="yardmaster code",
    launch_key="code_version", list_page="code_list_page", page="code_page", upload_page="code_upload_page",
    edit_page="code_edit_page", delete_page="code_delete_page", api="code",
)  # fmt: skip
LINES_SHOWN = 1_000
TREE_SHOWN = 1_000
DIFFS_SHOWN = 20
PATIENCE = 10.0
"""Seconds that the comparison of one page may take, all of its files together."""
_ENTRY_POINTS = ("train.py", "main.py", "README.md")


class CodePage(pages.CollectionPage):
    """Code at one of its versions. `?path=` is the file shown, `?from=` its first line where it has very many."""

    store = CODE
    words = WORDS
    template = "code/code.html"

    def content(self, item: Collection, version: Version | None) -> dict[str, Any]:
        if version is None:
            return {}
        version = cast(CodeVersion, version)
        listed = [(file.path, file.size) for file in islice(selectors.files_in(version), TREE_SHOWN + 1)]
        chosen = self.request.GET.get("path", "") or _first_to_read([path for path, _ in listed])
        file = selectors.file_for(version, chosen) if chosen else None
        return {
            "tree": rows_of(tree_of(listed[:TREE_SHOWN], chosen)),
            "unlisted": version.file_count - min(len(listed), TREE_SHOWN),
            "file": file,
            **(self._source(version, file) if file else {}),
        }

    def _source(self, version: CodeVersion, file: Any) -> dict[str, Any]:
        source = read_source(version, file)
        if source.fault:
            return {"fault": source.fault}
        lines = highlight(file.path, source.text)
        first = min(max(pages.number_in(self.request, "from") or 1, 1), max(len(lines), 1))
        first -= (first - 1) % LINES_SHOWN
        return {
            "first_line": first,
            "lines": list(enumerate(lines[first - 1 : first - 1 + LINES_SHOWN], first)),
            "line_count": len(lines),
            "windows": list(range(1, len(lines) + 1, LINES_SHOWN)) if len(lines) > LINES_SHOWN else [],
        }


@dataclass(frozen=True)
class FileChange:
    """One file of a comparison. `diff` is None where its text cannot be compared, and `note` says why."""

    path: str
    kind: str
    diff: TextDiff | None = None
    note: str = ""


class CodeComparePage(pages.VersionStorePage):
    """What differs between `?from=` and `?to=` (numbers; without: the newest and the one before it), file by file."""

    store = CODE
    words = WORDS

    def get(self, request: HttpRequest, collection_id: UUID) -> HttpResponse:
        item = cast(Code, self.collection(collection_id))
        before, after = cast(tuple[CodeVersion | None, CodeVersion | None], self.pair(item, "to", "from"))
        context = {
            "item": item,
            "before": before,
            "after": after,
            "versions": list(selectors.versions_of(CODE, item).order_by("-number")[:100]),
            "breadcrumbs": self.way_to(item),
            **(self._changes(before, after) if before and after else {}),
        }
        return self.show("code/compare.html", context)

    def _changes(self, before: CodeVersion, after: CodeVersion) -> dict[str, Any]:
        found = lists_compare(before.upload_id, after.upload_id).changes
        kinds = dict.fromkeys(found.added, "added") | dict.fromkeys(found.removed, "removed")
        kinds |= dict.fromkeys(found.changed, "changed")
        wanted = self.request.GET.get("path", "")
        paths = sorted([wanted] if wanted in kinds else kinds)
        shown: list[FileChange] = []
        lines_left = LINES_SHOWN
        old = selectors.files_at(before, paths[:DIFFS_SHOWN])
        new = selectors.files_at(after, paths[:DIFFS_SHOWN])
        until = time.monotonic() + PATIENCE
        for file_path in paths[:DIFFS_SHOWN]:
            if lines_left <= 0:
                break
            sides = ((before, old.get(file_path)), (after, new.get(file_path)))
            wait = max(0.0, until - time.monotonic())
            shown.append(_change_of(file_path, kinds[file_path], sides, lines_left, wait))
            lines_left -= shown[-1].diff.length if shown[-1].diff else 1
        return {"changes": found, "shown": shown, "unshown": paths[len(shown) :], "wanted": wanted}


def _change_of(
    file_path: str, kind: str, sides: Iterable[tuple[CodeVersion, ListedFile | None]], lines_left: int, wait: float
) -> FileChange:
    """The change of one file between two versions, found within `wait` seconds, in at most `lines_left` lines. A side
    may lack the file."""
    texts = []
    for version, file in sides:
        if file is None:
            texts.append("")
            continue
        source = read_source(version, file)
        if source.fault:
            return FileChange(file_path, kind, note=source.fault)
        texts.append(source.text)
    diff = compare_texts(*texts, wait=wait)
    if diff.too_large:
        return FileChange(file_path, kind, note="This file is too large or too complex to compare.")
    if not diff.hunks:
        return FileChange(file_path, kind, note=_SAME_LINES if kind == "changed" else "This file is empty.")
    return FileChange(file_path, kind, diff.first(lines_left))


_SAME_LINES = "Only line endings or the end of the file differ."


def _first_to_read(paths: list[str]) -> str:
    """The file to show where none was chosen."""
    at_top = [one for one in paths if "/" not in one]
    known = next((name for name in _ENTRY_POINTS if name in at_top), "")
    script = next((one for one in [*at_top, *paths] if one.endswith(".py")), "")
    return known or script or (paths[0] if paths else "")


class CodeListPage(pages.ListPage):
    store = CODE
    words = WORDS


class CodeUploadPage(pages.UploadPage):
    store = CODE
    words = WORDS


class CodeEditPage(pages.EditPage):
    store = CODE
    words = WORDS


class CodeDeletePage(pages.DeletePage):
    store = CODE
    words = WORDS


class CodeVersionAddress(pages.VersionAddress):
    store = CODE
    words = WORDS


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("code/", CodeListPage.as_view(), name="code_list_page"),
    path("code/upload/", CodeUploadPage.as_view(), name="code_upload_page"),
    path("code/<uuid:collection_id>/", CodePage.as_view(), name="code_page"),
    path("code/<uuid:collection_id>/upload/", CodeUploadPage.as_view(), name="code_upload_page"),
    path("code/<uuid:collection_id>/edit/", CodeEditPage.as_view(), name="code_edit_page"),
    path("code/<uuid:collection_id>/delete/", CodeDeletePage.as_view(), name="code_delete_page"),
    path("code/<uuid:collection_id>/compare/", CodeComparePage.as_view(), name="code_compare_page"),
    path("code/versions/<uuid:version_id>/", CodeVersionAddress.as_view(), name="code_version_page"),
]
