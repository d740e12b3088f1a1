"""Verifying that a version's files are intact: every byte is read and its SHA-256 compared. A request reads for a time
and says where the next one continues, which may be within a file: behind one of the parts that its checksum is made of.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from apps.datasets.models import DatasetVersion
from apps.errors import Invalid
from apps.stores import storage
from apps.uploads.versioned.selectors import file_key, files_at, files_in
from yardmaster.errors import Problem
from yardmaster.storage.base import CHUNK, ObjectMissing
from yardmaster.storage.facts import FactFinder, find_facts
from yardmaster.storage.file_list import ListedFile
from yardmaster.storage.sha256_state import Sha256State
from yardmaster_runner.checksums import Checksum, part_size_of

ETAG = "etag:"
"""Before the store's ETag, in the place of a checksum: what the portal knows of content that it has not read."""
PATIENCE = 20.0
"""Seconds after which nothing further is begun."""
WHOLE_PATIENCE = 60.0
"""Seconds for a file whose checksum is of the whole: no request can continue within it."""
_WITHIN = re.compile(r"/([1-9][0-9]{0,8})/([0-9a-f]{64})/((?:[0-9a-f]{64})?)/(.+)", re.DOTALL)


@dataclass(frozen=True)
class Corrupt:
    """A file that is not what it was. `found` is empty where it was not read, as it is gone or has another size."""

    path: str
    expected: str
    found: str
    message: str


@dataclass(frozen=True)
class CheckResult:
    """`checked` files of this version, of which nothing is left to read, and the `bytes` that were read. `unread`: the
    paths of files that cannot be read in one request. `next`: where checking continues, None at the end."""

    checked: int
    bytes: int
    corrupt: list[Corrupt]
    unread: list[str]
    next: str | None


@dataclass(frozen=True)
class Place:
    """Behind so many parts of the file at this path, whose checksums made this state; without any: behind the file."""

    path: str
    parts: int = 0
    state: Sha256State = field(default_factory=Sha256State)

    @classmethod
    def of(cls, text: str) -> Place:
        """As `text` gave it. Raises `Invalid`."""
        if not text.startswith("/"):  # no path does
            return cls(text)
        found = _WITHIN.fullmatch(text)
        if found is None:
            remedy = "Send `next` of the previous answer as it is."
            raise Invalid([Problem("after", "invalid", "A check cannot continue here.", remedy)])
        parts = int(found[1])
        return cls(found[4], parts, Sha256State(32 * parts, bytes.fromhex(found[2]), bytes.fromhex(found[3])))

    def text(self) -> str:
        if not self.parts:
            return self.path
        return f"/{self.parts}/{self.state.words.hex()}/{self.state.rest.hex()}/{self.path}"


class _OutOfTime(Exception):
    """It is to be continued here, or, without a place, from its beginning."""

    def __init__(self, place: Place | None = None) -> None:
        super().__init__()
        self.place = place


def version_check(
    version: DatasetVersion,
    *,
    after: str = "",
    patience: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> CheckResult:
    """Check files in the order of their paths, from `next` of the last result on, at least one part of one and for
    about `patience` seconds. Raises `Invalid`."""
    place = Place.of(after)
    check = _Check(version, clock, clock() + (PATIENCE if patience is None else patience))
    for file, begun in _from(version, place):
        if check.has_read and check.is_late():
            break
        try:
            check.file(file, begun)
        except _OutOfTime as end:
            place = end.place or place
            break
        place = Place(file.path)
    else:
        return check.result(None)
    return check.result(place.text())


def _from(version: DatasetVersion, place: Place) -> Iterator[tuple[ListedFile, Place]]:
    """The files that are left, each with where it is begun."""
    if place.parts and (file := files_at(version, [place.path]).get(place.path)):
        yield file, place
    for file in files_in(version, place.path):
        yield file, Place(file.path)


class _Check:
    """What one request finds."""

    def __init__(self, version: DatasetVersion, clock: Callable[[], float], deadline: float) -> None:
        self._version = version
        self._clock = clock
        self._begun = clock()
        self._deadline = deadline
        self._checked = self._bytes = 0
        self._corrupt: list[Corrupt] = []
        self._unread: list[str] = []
        self.has_read = False

    def is_late(self) -> bool:
        return self._clock() > self._deadline

    def result(self, following: str | None) -> CheckResult:
        return CheckResult(self._checked, self._bytes, self._corrupt, self._unread, following)

    def file(self, file: ListedFile, begun: Place) -> None:
        """Check one, or what is left of it. Raises `_OutOfTime`."""
        try:
            if file.sha256.startswith(ETAG):
                fault = _change_of(self._version, file)
            elif part_size := part_size_of(file.size, file.sha256):
                fault = self._in_parts(file, begun, part_size)
            else:
                fault = self._as_a_whole(file)
        except ObjectMissing:
            fault = Corrupt(file.path, file.sha256, "", "The file is missing in the object store.")
        self.has_read = True
        self._checked += file.path not in self._unread
        if fault:
            self._corrupt.append(fault)

    def _in_parts(self, file: ListedFile, begun: Place, part_size: int) -> Corrupt | None:
        key, count = file_key(self._version, file.path), -(-file.size // part_size)
        if (size := storage().stat(key).size) != file.size:
            return Corrupt(file.path, file.sha256, "", f"The file has {size} bytes instead of {file.size}.")
        state = begun.state
        for number in range(begun.parts, count):
            if number and self.has_read and self.is_late():
                raise _OutOfTime(Place(file.path, number, state))
            length = min(part_size, file.size - number * part_size)
            with storage().open_range(key, number * part_size, length) as stream:
                facts = find_facts(FactFinder(stream))
            self._bytes += facts.size
            self.has_read = True
            state = state.updated(bytes.fromhex(facts.sha256))
        return _compared(file, f"{state.hexdigest()}-{count}", file.size)

    def _as_a_whole(self, file: ListedFile) -> Corrupt | None:
        until = self._deadline if self.has_read else max(self._deadline, self._begun + WHOLE_PATIENCE)
        with storage().open_range(file_key(self._version, file.path)) as stream:
            finder = FactFinder(stream, checksum=Checksum(file.size, file.sha256))
            while piece := finder.read(CHUNK):
                self._bytes += len(piece)
                if self._clock() <= until:
                    continue
                if self.has_read:
                    raise _OutOfTime  # the next request has more time for it
                self._unread.append(file.path)
                return None
            facts = finder.facts()
        return _compared(file, facts.sha256, facts.size)


def _compared(file: ListedFile, found: str, size: int) -> Corrupt | None:
    if found == file.sha256:
        return None
    return Corrupt(file.path, file.sha256, found, f"The file's {size} bytes do not match the checksum.")


def _change_of(version: DatasetVersion, file: ListedFile) -> Corrupt | None:
    """Of a file in a registered bucket, which is not read: whether it is still the object that was listed."""
    try:
        found = storage().stat(file_key(version, file.path))
    except ObjectMissing:
        return Corrupt(file.path, file.sha256, "", "The object was deleted from its bucket.")
    etag = ETAG + found.etag.strip('"')
    if etag == file.sha256 and found.size == file.size:
        return None
    message = f"The object was replaced in its bucket: it has {found.size} bytes and another ETag."
    return Corrupt(file.path, file.sha256, etag, message)
