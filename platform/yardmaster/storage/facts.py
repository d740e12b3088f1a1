"""What is found in a file while its bytes pass by once: checksum, size, and how many records it holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from yardmaster.formats.records import Counter, counter_for
from yardmaster.storage.base import CHUNK, Readable
from yardmaster_runner.checksums import Checksum

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

    `checksum` is made of them, a plain SHA-256 unless another is given; with `known` none is made. `count_as` is the
    file's path when its records are to be counted; `crc_budget` how many bytes of records may have their checksums
    verified; `beat` is called with the number of bytes of each piece.
    """

    def __init__(
        self,
        source: Readable,
        *,
        checksum: Checksum | None = None,
        known: str = "",
        count_as: str | None = None,
        crc_budget: int = 0,
        beat: Callable[[int], None] | None = None,
    ) -> None:
        self._source = source
        self._count_as = count_as
        self._crc_budget = crc_budget
        self._beat = beat
        self._checksum = checksum or Checksum(0)
        self._known = known
        self._size = 0
        self._counter: Counter | None = None

    def read(self, size: int = -1, /) -> bytes:
        piece = self._source.read(size)
        if self._size == 0 and self._count_as is not None:
            # A name that tells enough needs no sniffing, and no store gives a first piece of under twelve bytes.
            self._counter = counter_for(self._count_as, piece[:_SNIFFED], crc_budget=self._crc_budget)
        self._size += len(piece)
        if not self._known:
            self._checksum.update(piece)
        if piece and self._counter is not None:
            self._counter.feed(piece)
        if self._beat is not None:
            self._beat(len(piece))
        return piece

    def facts(self) -> FileFacts:
        """Of everything that was read. To be asked once."""
        sha256 = self._known or self._checksum.text()
        if self._counter is None:
            return FileFacts(self._size, sha256)
        count = self._counter.finish()
        return FileFacts(self._size, sha256, count.records, count.fault)


def find_facts(finder: FactFinder) -> FileFacts:
    """Read to the end, then the facts."""
    while finder.read(CHUNK):
        pass
    return finder.facts()
