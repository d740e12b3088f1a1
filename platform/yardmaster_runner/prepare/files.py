"""Lists of input files. There may be millions, and a worker has half a gigabyte for all that it does, so they are
packed: a file takes its path and 16 bytes, and is made when it is asked for."""

from __future__ import annotations

import heapq
from array import array
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Iterator, List, Sequence

RUN = 50_000
"""Files that are sorted as objects; longer lists are merged from as many at a time."""


@dataclass(frozen=True)
class File:
    """One input file: its path below the input with "/", and its size."""

    __slots__ = ("path", "size")
    path: str
    size: int


def path_of(file: File) -> str:
    return file.path


class Files(Sequence[File]):
    """Files in the order in which they were given. Equal to every sequence of the same files."""

    def __init__(self, files: Iterable[File] = ()) -> None:
        self._paths, self._ends, self._sizes = bytearray(), array("Q"), array("Q")
        for one in files:
            self._paths += one.path.encode("utf-8", "surrogateescape")
            self._ends.append(len(self._paths))
            self._sizes.append(one.size)

    def __len__(self) -> int:
        return len(self._sizes)

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        at = range(len(self))[number]
        path = self._paths[self._ends[at - 1] if at else 0 : self._ends[at]]
        return File(path.decode("utf-8", "surrogateescape"), self._sizes[at])

    def __iter__(self) -> Iterator[File]:
        return (self[number] for number in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


class Paths(Sequence[str]):
    """The paths of files, made when they are asked for."""

    def __init__(self, files: Sequence[File]) -> None:
        self._files = files

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, number: Any) -> Any:
        return [one.path for one in self._files[number]] if isinstance(number, slice) else self._files[number].path

    def __iter__(self) -> Iterator[str]:
        return (one.path for one in self._files)


def in_order(found: Iterable[File]) -> Files:
    """All of them in the order of their paths."""
    runs: List[Files] = []
    some: List[File] = []
    for one in found:
        some.append(one)
        if len(some) == RUN:
            runs.append(Files(sorted(some, key=path_of)))
            some = []
    runs.append(Files(sorted(some, key=path_of)))
    return runs[0] if len(runs) == 1 else Files(heapq.merge(*runs, key=path_of))


def select(files: Sequence[File], is_wanted: Callable[[File], bool]) -> Sequence[File]:
    """Those that are wanted, in their order; the same list where all are."""
    count = sum(1 for one in files if is_wanted(one))
    return files if count == len(files) else Files(one for one in files if is_wanted(one))


def assign(files: Sequence[File], workers: int) -> List[Sequence[File]]:
    """The files of each worker, in the order of their paths: the largest first, each to the worker with the fewest
    bytes so far."""
    ordered = files if isinstance(files, Files) else in_order(files)
    loads = [(0, 0, number) for number in range(workers)]
    out = [array("Q") for _ in range(workers)]
    for at in sorted(range(len(ordered)), key=lambda at: -ordered[at].size):
        size, count, number = heapq.heappop(loads)
        out[number].append(at)
        heapq.heappush(loads, (size + ordered[at].size, count + 1, number))
    return [Files(ordered[at] for at in sorted(part)) for part in out]
