"""Files of an upload as one value: packed for one row of the database, and read from a request piece by piece.

A request may have 20,000 files, so it costs no more memory than the files themselves. Pure.
"""

from __future__ import annotations

import codecs
import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any

from yardmaster.storage.base import Readable

LONGEST_ENTRY = 64 << 10
"""Characters up to which one file, or one other value beside the files, is taken: a path is at most 512 bytes."""
MOST_NAMES = 20
"""Of one object. Requests that announce files have up to four."""


@dataclass(frozen=True, slots=True)
class ListedFile:
    """One file. `declared` is the SHA-256 that its sender announced, if any; what follows is what was found in it, and
    empty until it was read. `records` None: its format is not one that is counted."""

    path: str
    size: int
    declared: str = ""
    sha256: str = ""
    records: int | None = None
    fault: str = ""


def pack(files: Sequence[ListedFile]) -> bytes:
    """The list in little space; about 70 bytes a file."""
    columns = {
        "path": [file.path for file in files],
        "size": [file.size for file in files],
        "declared": {index: file.declared for index, file in enumerate(files) if file.declared != file.sha256},
        "sha256": [file.sha256 for file in files],
        "records": {index: file.records for index, file in enumerate(files) if file.records is not None},
        "fault": {index: file.fault for index, file in enumerate(files) if file.fault},
    }
    return zlib.compress(json.dumps(columns, separators=(",", ":")).encode(), 1)


@lru_cache(maxsize=8)
def unpack(packed: bytes) -> tuple[ListedFile, ...]:
    """The list, in its order. Remembered for a while: a client that sends many files asks for each of them."""
    columns = json.loads(zlib.decompress(packed))
    declared, records, faults = columns["declared"], columns["records"], columns["fault"]
    rows = zip(columns["path"], columns["size"], columns["sha256"], strict=True)
    return tuple(
        ListedFile(path, size, declared.get(at := str(index), sha256), sha256, records.get(at), faults.get(at, ""))
        for index, (path, size, sha256) in enumerate(rows)
    )


def contents(packed: bytes) -> tuple[list[str], list[str]]:
    """The paths of a packed list, and the checksums beside them: a fifth of the work of `unpack`."""
    columns = json.loads(zlib.decompress(packed))
    return columns["path"], columns["sha256"]


def paths_and_sizes(packed: bytes) -> tuple[list[str], list[int]]:
    """The paths of a packed list, and the sizes beside them, as cheap as `contents`."""
    columns = json.loads(zlib.decompress(packed))
    return columns["path"], columns["size"]


def noteworthy(packed: bytes) -> Iterator[ListedFile]:
    """The files of a packed list whose records were counted, or in which a fault was found."""
    columns = json.loads(zlib.decompress(packed))
    records, faults = columns["records"], columns["fault"]
    for at in sorted({*records, *faults}, key=int):
        index = int(at)
        path, size, sha256 = (columns[name][index] for name in ("path", "size", "sha256"))
        yield ListedFile(path, size, columns["declared"].get(at, sha256), sha256, records.get(at), faults.get(at, ""))


_PIECE = 64 << 10


class NotJson(ValueError):
    """The text is no JSON object, or has more names or a longer value than any that has a meaning here."""


Check = Callable[[int, Any], Any]
"""Makes of the entry at this index what is kept of it, or raises."""


def read_object(source: Readable, listed: str, check: Check) -> dict[str, Any]:
    """The JSON object that `source` holds. The entries of the list named `listed` are handed to `check` one by one, so
    that what is not wanted is refused before the rest is read. Raises `NotJson`, and what `check` raises."""
    text = _Text(source)
    text.expect("{")
    found: dict[str, Any] = {}
    if text.peek() == "}":
        text.expect("}")
    else:
        for number in count(1):
            if number > MOST_NAMES:
                raise NotJson(f"the object has more than {MOST_NAMES} names")
            name = text.value(str)
            text.expect(":")
            is_listed = name == listed and text.peek() == "["
            found[name] = [check(index, one) for index, one in enumerate(text.entries())] if is_listed else text.value()
            if text.next_of(",}") == "}":
                break
    if text.peek():
        raise NotJson("something follows the object")
    return found


class _Text:
    """JSON text that is read as it is needed; no more of it is kept than one chunk and one entry."""

    def __init__(self, source: Readable) -> None:
        self._source = source
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._parse = json.JSONDecoder(parse_constant=_refuse).raw_decode
        self._text = ""
        self._at = 0
        self._is_over = False

    def peek(self) -> str:
        """The next character that is no white space; empty at the end."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in " \t\r\n":
                    return self._text[self._at]
                self._at += 1
            if not self._more():
                return ""

    def expect(self, sign: str) -> None:
        if self.next_of(sign) != sign:
            raise NotJson(f"{sign!r} is missing")

    def next_of(self, signs: str) -> str:
        """Take the next character, which must be one of these."""
        if (sign := self.peek()) == "" or sign not in signs:
            raise NotJson(f"one of {signs!r} is missing")
        self._at += 1
        return sign

    def entries(self) -> Iterator[Any]:
        """The values of the list that begins here, one by one."""
        self.expect("[")
        if self.peek() == "]":
            self._at += 1
            return
        while True:
            yield self.value()
            if self.next_of(",]") == "]":
                return

    def value(self, kind: type = object) -> Any:
        """The value that begins here. Raises `NotJson`: it is none, is too long, or of another kind."""
        self.peek()
        while len(self._text) - self._at < LONGEST_ENTRY and self._more():
            pass
        start = self._at
        try:
            value, self._at = self._parse(self._text, start)
        except (ValueError, RecursionError) as error:
            shown = self._text[start : start + 60]
            raise NotJson(f"a value is malformed, or longer than {LONGEST_ENTRY} characters: {shown!r}") from error
        if not isinstance(value, kind):
            raise NotJson(f"a name is not text: {self._text[start : start + 60]!r}")
        return value

    def _more(self) -> bool:
        """Read on; false at the end."""
        if self._is_over:
            return False
        data = self._source.read(_PIECE)
        try:
            piece = self._decode(data, not data)
        except UnicodeDecodeError as error:
            raise NotJson("it is not UTF-8") from error
        self._is_over = not data
        self._text, self._at = self._text[self._at :] + piece, 0
        return bool(data)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number of JSON")
