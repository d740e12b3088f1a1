"""Which paths an upload's files may have: relative, plain, and the same file on every system that will hold them.

Pure. Not here: keys (`base`), and whether there is space.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

from yardmaster.errors import Problem
from yardmaster.storage.base import MAX_SEGMENT_BYTES

MAX_PATH_BYTES = 512
MAX_PROBLEMS = 20
"""How many are listed at once; the rest would only repeat them."""

_DRIVE = re.compile(r"[A-Za-z]:")
# Line and paragraph separators end a line, and bidirectional controls make a name read as another.
_HIDDEN = re.compile("[\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def path_fault(path: str) -> tuple[str, str] | None:
    """What is wrong with one path: (code, message), or None."""
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        return "path_invalid", "is not valid Unicode"
    if size == 0:
        return "path_invalid", "is empty"
    if size > MAX_PATH_BYTES:
        return "path_too_long", f"has {size} bytes; at most {MAX_PATH_BYTES} are allowed"
    if path.startswith(("/", "\\")) or _DRIVE.match(path):
        return "path_escape", "is absolute"
    if "\\" in path:
        return "path_invalid", "has a backslash; folders are separated by /"
    if any(unicodedata.category(sign) == "Cc" for sign in path) or _HIDDEN.search(path):
        return "path_invalid", "has a control character"
    for segment in path.split("/"):
        if fault := _segment_fault(segment):
            return fault
    return None


def _segment_fault(segment: str) -> tuple[str, str] | None:
    if segment == "..":
        return "path_escape", "leads out of the upload with .."
    if segment in {"", "."}:
        return "path_invalid", "has an empty segment or a single dot"
    if len(segment.encode()) > MAX_SEGMENT_BYTES:
        return "path_too_long", f"has a name of more than {MAX_SEGMENT_BYTES} bytes"
    if segment != segment.strip() or segment.endswith("."):
        return "path_invalid", "has a name that begins or ends with a space or ends with a dot"
    return None


def path_problems(paths: Iterable[str], field: str = "files.{index}.path") -> list[Problem]:
    """What is wrong with these paths together: each by itself, doubled ones, and a file where another needs a folder.

    Paths that differ only in how accents are composed are doubled: some systems hold them as one file.
    """
    return list(_first(MAX_PROBLEMS, _problems(list(paths), field)))


def _problems(paths: list[str], field: str) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    for index, path in enumerate(paths):
        name = field.format(index=index)
        if fault := path_fault(path):
            code, message = fault
            yield Problem(name, code, f"This path {message}.", "Rename the file, or leave it out.", path)
            continue
        earlier = seen.setdefault(unicodedata.normalize("NFC", path), index)
        if earlier != index:
            message = f"This path is the same as that of file {earlier}."
            yield Problem(name, "path_doubled", message, "Send each file once.", path)
    for path, index in seen.items():
        for folder in folders_of(path):
            if folder in seen:
                message = f"{folder!r} is a file of this upload, so it cannot be a folder as well."
                yield Problem(field.format(index=index), "path_conflict", message, "Rename one of the two.", path)
                break


def folders_of(path: str) -> Iterator[str]:
    """The folders that it lies in, the outermost first."""
    position = path.find("/")
    while position != -1:
        yield path[:position]
        position = path.find("/", position + 1)


def _first(count: int, problems: Iterable[Problem]) -> Iterator[Problem]:
    for _, problem in zip(range(count), problems, strict=False):
        yield problem
