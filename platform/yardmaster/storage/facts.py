"""What is found in a file while its bytes pass by once: SHA-256, size, and how many records it holds."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from yardmaster.formats.records import Counter, counter_for
from yardmaster.storage.base import CHUNK, Readable

_SNIFFED = 12


@dataclass(frozen=True)
class FileFacts:
    """`records` is None where the format is unknown or was not asked for."""

    size: int
    sha256: str
    records: int | None = None
    fault: str = ""


class FactFinder:
    """A reader that passes another's bytes on and remembers facts about them.

    `count_as` is the file's path when its records are to be counted; `crc_budget` how many bytes of records may have
    their checksums verified; `beat` is called with the number of bytes of each piece.
    """

    def __init__(
        self,
        source: Readable,
        *,
        count_as: str | None = None,
        crc_budget: int = 0,
        beat: Callable[[int], None] | None = None,
    ) -> None:
        self._source = source
        self._count_as = count_as
        self._crc_budget = crc_budget
        self._beat = beat
        self._digest = hashlib.sha256()
        self._size = 0
        self._counter: Counter | None = None

    def read(self, size: int = -1, /) -> bytes:
        piece = self._source.read(size)
        if self._size == 0 and self._count_as is not None:
            # A name that tells enough needs no sniffing, and no store gives a first piece of under twelve bytes.
            self._counter = counter_for(self._count_as, piece[:_SNIFFED], crc_budget=self._crc_budget)
        self._size += len(piece)
        self._digest.update(piece)
        if piece and self._counter is not None:
            self._counter.feed(piece)
        if self._beat is not None:
            self._beat(len(piece))
        return piece

    def facts(self) -> FileFacts:
        """Of everything that was read."""
        if self._counter is None:
            return FileFacts(self._size, self._digest.hexdigest())
        count = self._counter.finish()
        return FileFacts(self._size, self._digest.hexdigest(), count.records, count.fault)


def find_facts(finder: FactFinder) -> FileFacts:
    """Read to the end, then the facts."""
    while finder.read(CHUNK):
        pass
    return finder.facts()
