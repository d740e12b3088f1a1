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
from typing import Any, overload

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
    """The list in little space; about 70 bytes a file. What `paths_and_sizes` reads comes first."""
    columns = {
        "path": [file.path for file in files],
        "size": [file.size for file in files],
        "declared": {index: file.declared for index, file in enumerate(files) if file.declared != file.sha256},
        "sha256": [file.sha256 for file in files],
        "records": {index: file.records for index, file in enumerate(files) if file.records is not None},
        "fault": {index: file.fault for index, file in enumerate(files) if file.fault},
    }
    return zlib.compress(json.dumps(columns, separators=(",", ":")).encode(), 1)


class PackedFiles(Sequence[ListedFile]):
    """A packed list, read. A file is made when it is asked for: who wants a hundred of a thousand pays for those."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self.paths: list[str] = columns["path"]
        """Of all files, in their order: what one is found by."""
        self._columns = columns

    def __len__(self) -> int:
        return len(self.paths)

    @overload
    def __getitem__(self, at: int) -> ListedFile: ...

    @overload
    def __getitem__(self, at: slice) -> list[ListedFile]: ...

    def __getitem__(self, at: int | slice) -> ListedFile | list[ListedFile]:
        if isinstance(at, slice):
            return [self._file(one) for one in range(*at.indices(len(self)))]
        return self._file(range(len(self))[at])

    def __iter__(self) -> Iterator[ListedFile]:
        return map(self._file, range(len(self)))

    def _file(self, index: int) -> ListedFile:
        found, at = self._columns, str(index)
        sha256 = found["sha256"][index]
        declared, records, fault = found["declared"], found["records"], found["fault"]
        return ListedFile(
            self.paths[index], found["size"][index], declared.get(at, sha256), sha256, records.get(at),
            fault.get(at, ""),
        )  # fmt: skip


@lru_cache(maxsize=8)
def unpack(packed: bytes) -> PackedFiles:
    """The list, in its order. Remembered for a while: a client that sends many files asks for each of them."""
    return PackedFiles(_columns(packed))


def contents(packed: bytes) -> tuple[list[str], list[str]]:
    """The paths of a packed list, and the checksums beside them."""
    columns = _columns(packed)
    return columns["path"], columns["sha256"]


_PATHS, _SIZES = '{"path":', ',"size":'


def paths_and_sizes(start: bytes) -> tuple[list[str], list[int]] | None:
    """The paths of a packed list, and the sizes beside them, from its first bytes: `pack` puts both before all else.
    None: these bytes are too few."""
    text = zlib.decompressobj().decompress(start).decode("ascii")
    try:
        paths, end = _read_value(text, len(_PATHS))
        sizes, _ = _read_value(text, end + len(_SIZES))
    except json.JSONDecodeError:
        return None
    return paths, sizes


def noteworthy(packed: bytes) -> Iterator[ListedFile]:
    """The files of a packed list whose records were counted, or in which a fault was found."""
    columns = _columns(packed)
    records, faults = columns["records"], columns["fault"]
    files = PackedFiles(columns)
    return (files[int(at)] for at in sorted({*records, *faults}, key=int))


def _columns(packed: bytes) -> dict[str, Any]:
    columns: dict[str, Any] = json.loads(zlib.decompress(packed))
    return columns


_read_value = json.JSONDecoder().raw_decode
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
