"""Putting files together that were sent in parts, and reading through them, many side by side: a store answers slowly
(a disk that flushes, a network), but many at once.

The work speaks to the store alone, and must not touch the database: connections belong to the thread that made them.
Not here: which files there are, and what becomes of what was found in them (`apps.uploads`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from yardmaster.storage.base import ObjectMissing, Part, Storage, UploadMissing
from yardmaster.storage.facts import FactFinder, FileFacts, find_facts

PARALLEL = 8
_AHEAD = 2 * PARALLEL
_BEAT = 5.0

CRC_BUDGET = 8 << 20
"""Bytes of records per upload whose checksums are verified when it comes: half a second of work."""

T = TypeVar("T")
R = TypeVar("R")


def in_parallel(work: Callable[[T], R], items: Iterable[T], beat: Callable[[], None]) -> Iterator[R]:
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


def crc_budgets(sizes: Iterable[int]) -> Iterator[int]:
    """For each file, how many bytes of its records may have their checksums verified."""
    left = CRC_BUDGET
    for size in sizes:
        yield left
        left = max(0, left - size)


@dataclass(frozen=True)
class Assembly:
    """One file that is sent in parts. `multipart_id` is empty before its first part; `part_sizes` are those that it
    should have, by number."""

    store: Storage
    key: str
    size: int
    multipart_id: str
    part_sizes: Mapping[int, int]

    def arrived(self) -> list[Part] | None:
        """The parts of the file that are there; each without an ETag where they are put together already. None: the
        store knows nothing of the file any more."""
        if not self.multipart_id:
            return []
        try:
            return self.store.parts(self.key, self.multipart_id)
        except UploadMissing:
            # Put together by a try that was interrupted before it could note so: then the object is there, whole.
            try:
                whole = self.store.stat(self.key).size == self.size
            except ObjectMissing:
                whole = False
            return [Part(n, size, "") for n, size in self.part_sizes.items()] if whole else None

    def lacking(self, arrived: Iterable[Part]) -> list[int]:
        """The numbers of the parts that are not there whole."""
        sizes = {part.number: part.size for part in arrived}
        return [number for number, size in self.part_sizes.items() if sizes.get(number) != size]

    def assemble(
        self, arrived: Iterable[Part], *, count_as: str | None, crc_budget: int, beat: Callable[[int], None]
    ) -> FileFacts:
        """Make the object of its parts, unless that was done, and read it through. The rest as in `FactFinder`."""
        parts = list(arrived)
        if self.size == 0:
            self.store.put(self.key, b"")
        elif any(part.etag for part in parts):
            self.store.multipart_complete(self.key, self.multipart_id, parts)
        with self.store.open_range(self.key) as source:
            return find_facts(FactFinder(source, count_as=count_as, crc_budget=crc_budget, beat=beat))
