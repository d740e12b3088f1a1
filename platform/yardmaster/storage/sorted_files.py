"""Files that come in any order, given in the order of their paths. Of very many, most lie in a temporary file."""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import Iterator
from operator import attrgetter
from types import TracebackType
from typing import IO, Self

from yardmaster.storage.file_list import ListedFile, pack, unpack

RUN = 20_000
_BLOCK = 1_000
_PATH = attrgetter("path")


class SortedFiles:
    """Add files, then go through them. A context manager."""

    def __init__(self, run: int = RUN) -> None:
        self._run = run
        self._latest: list[ListedFile] = []
        self._runs: list[list[tuple[int, int]]] = []
        self._aside: IO[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._aside is not None:
            self._aside.close()

    def add(self, file: ListedFile) -> None:
        """One more."""
        self._latest.append(file)
        if len(self._latest) == self._run:
            self._put_aside()

    def __iter__(self) -> Iterator[ListedFile]:
        self._latest.sort(key=_PATH)
        return heapq.merge(*map(self._read, self._runs), self._latest, key=_PATH)

    def _put_aside(self) -> None:
        aside = self._aside = self._aside or tempfile.TemporaryFile()  # noqa: SIM115 - closed at the end of ours
        self._latest.sort(key=_PATH)
        places = []
        for start in range(0, len(self._latest), _BLOCK):
            packed = pack(self._latest[start : start + _BLOCK])
            places.append((aside.tell(), len(packed)))
            aside.write(packed)
        self._runs.append(places)
        self._latest = []

    def _read(self, places: list[tuple[int, int]]) -> Iterator[ListedFile]:
        assert self._aside is not None, "a run was put there"
        for offset, length in places:
            self._aside.seek(offset)
            yield from unpack(self._aside.read(length))
