"""Putting files together that were sent in parts, and looking at them, many side by side: a store answers slowly
(a disk that flushes, a network), but many at once.

The work speaks to the store alone, and must not touch the database: connections belong to the thread that made them.
Not here: which files there are, and what becomes of what was found in them (`apps.uploads`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

from yardmaster.storage.base import ObjectMissing, ObjectStat, Part, Storage, UploadMissing
from yardmaster.storage.facts import FactFinder, FileFacts, find_facts
from yardmaster_runner.checksums import Checksum, of_parts

PARALLEL = 8
_AHEAD = 2 * PARALLEL
_BEAT = 5.0

CRC_BUDGET = 8 << 20
"""Bytes of records per upload whose checksums are verified when it comes: half a second of work."""

T = TypeVar("T")
R = TypeVar("R")


def in_parallel(work: Callable[[T], R], items: Iterable[T], beat: Callable[[], None]) -> Generator[R, None, None]:
    """`work(item)` of each item, in order, a few ahead of what was taken. `beat` is called now and then while waiting.

    What a piece of work raises is raised here; nothing is begun after that.
    """
    waiting: deque[Future[R]] = deque()
    pool = ThreadPoolExecutor(PARALLEL)
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) == _AHEAD:
                yield _result(waiting.popleft(), beat)
        while waiting:
            yield _result(waiting.popleft(), beat)
    finally:
        pool.shutdown(cancel_futures=True)


def _result(future: Future[R], beat: Callable[[], None]) -> R:
    while True:
        try:
            return future.result(timeout=_BEAT)
        except TimeoutError:
            if future.done():  # the work's own
                raise
            beat()


def crc_budgets(sizes: Iterable[int], left: int = CRC_BUDGET) -> Iterator[int]:
    """For each file, how many bytes of its records may have their checksums verified, of those that are left."""
    for size in sizes:
        yield left
        left = max(0, left - size)


@dataclass(frozen=True)
class Assembly:
    """One file that is sent in parts. `multipart_id` is empty before its first part address was made, and for a file
    that is sent as a whole object; `part_sizes` are those that it should have, by number; `declared` is the checksum
    that its sender announced, if any, and `whole` that of the object that was to be sent. `listed` is the object as a
    listing has it, where nothing but `whole` can have been written: then it is not asked for one by one."""

    store: Storage
    key: str
    size: int
    multipart_id: str
    part_sizes: Mapping[int, int]
    declared: str = ""
    whole: str = ""
    listed: ObjectStat | None = None

    @property
    def is_listed(self) -> bool:
        """All that is needed of the store is known: looking at the file and assembling it ask it nothing."""
        return self.listed is not None and not self.multipart_id and "-" not in self.declared

    def arrived(self) -> list[Part] | None:
        """The parts of the file that are there; each without an ETag where they are put together already. None: the
        store knows nothing of the file any more."""
        if not self.multipart_id:
            return (self._whole() or []) if len(self.part_sizes) == 1 else []
        try:
            return self.store.parts(self.key, self.multipart_id)
        except UploadMissing:
            # Put together by a try that was interrupted before it could note so: then the object is there, whole.
            return self._whole()

    def lacking(self, arrived: Iterable[Part]) -> list[int]:
        """The numbers of the parts that are not there whole."""
        sizes = {part.number: part.size for part in arrived}
        return [number for number, size in self.part_sizes.items() if sizes.get(number) != size]

    def assemble(
        self, arrived: Iterable[Part], *, count_as: str | None, crc_budget: int, beat: Callable[[int], None]
    ) -> FileFacts:
        """Make the object of its parts, unless that was done. It is read where the store has not verified a checksum of
        the form that was announced, and to count its records where that costs little. The rest as in `FactFinder`."""
        parts = list(arrived)
        if self.size == 0:
            self.store.put(self.key, b"")
        elif any(part.etag for part in parts):
            self.store.multipart_complete(self.key, self.multipart_id, parts)
        known = self._verified(parts)
        counts = count_as is not None and self.store.is_near
        if known and not counts:
            beat(self.size)
            return FileFacts(self.size, known)
        checksum = Checksum(self.size, self.declared)
        with self.store.open_range(self.key) as source:
            return find_facts(
                FactFinder(
                    source, checksum=checksum, known=known, count_as=count_as if counts else None,
                    crc_budget=crc_budget, beat=beat,
                )
            )  # fmt: skip

    def _whole(self) -> list[Part] | None:
        """The object's parts, without ETags, where it is there whole."""
        try:
            found = replace(self.listed, sha256=self.whole) if self.listed else self.store.stat(self.key)
        except ObjectMissing:
            return None
        if found.size != self.size or (self.whole and found.sha256 not in ("", self.whole)):
            return None  # it is not there, or a late writer of an earlier try has put its own there
        is_plain = len(self.part_sizes) == 1
        return [Part(n, size, "", found.sha256 if is_plain else "") for n, size in self.part_sizes.items()]

    def _verified(self, parts: Sequence[Part]) -> str:
        """The checksum that the store has verified, in the form of the one that was announced; empty: it has not."""
        if not all(part.sha256 for part in parts):
            return ""
        found = of_parts(part.sha256 for part in parts) if parts else Checksum(0).text()
        is_same_form = found.partition("-")[2] == self.declared.partition("-")[2]
        return found if is_same_form or not self.declared else ""
