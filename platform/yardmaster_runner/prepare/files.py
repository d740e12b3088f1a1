"""Lists of input files. There may be millions, and a worker has half a gigabyte for all that it does, so they are
packed: a file takes its path and 12 bytes, and is made when it is asked for."""

from __future__ import annotations

import heapq
from array import array
from dataclasses import dataclass
from itertools import islice
from typing import Any, Callable, Iterable, Iterator, List, Sequence

RUN = 50_000
"""Files that are sorted as objects; of longer lists the runs are merged."""


@dataclass(frozen=True)
class File:
    """One input file: its path below the input with "/", and its size."""

    __slots__ = ("path", "size")
    path: str
    size: int


def path_of(file: File) -> str:
    return file.path


class Files(Sequence[File]):
    """Files in the order in which they were given, or in that of `order`. Equal to every sequence of the same files."""

    def __init__(self, files: Iterable[File] = ()) -> None:
        self._paths, self._ends, self._sizes = bytearray(), array("I"), array("I")
        self._order: Sequence[int] = ()
        self.extend(files)

    def extend(self, files: Iterable[File]) -> None:
        """Add these at the end; not once there is an order."""
        for one in files:
            self._paths += one.path.encode("utf-8", "surrogateescape")
            self._ends = _with(self._ends, len(self._paths))
            self._sizes = _with(self._sizes, one.size)

    def merge(self, starts: Sequence[int]) -> None:
        """Order all files by their paths, where those from each start to the next are so already."""
        runs = [range(start, end) for start, end in zip(starts, [*starts[1:], len(self)])]
        self._order = array("I", heapq.merge(*runs, key=self._path))

    def __len__(self) -> int:
        return len(self._sizes)

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        at = range(len(self))[number]
        at = self._order[at] if self._order else at
        return File(self._path(at), self._sizes[at])

    def __iter__(self) -> Iterator[File]:
        return (self[number] for number in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def _path(self, at: int) -> str:
        return self._paths[self._ends[at - 1] if at else 0 : self._ends[at]].decode("utf-8", "surrogateescape")


def _with(numbers: "array[int]", one: int) -> "array[int]":
    """The numbers with one more, in 32 bits each as long as that holds all of them."""
    try:
        numbers.append(one)
    except OverflowError:
        numbers = array("Q", numbers)
        numbers.append(one)
    return numbers


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
    packed, starts = Files(), [0]
    rest = iter(found)
    while run := sorted(islice(rest, RUN), key=path_of):
        packed.extend(run)
        starts.append(len(packed))
    if len(starts) > 2:
        packed.merge(starts[:-1])
    return packed


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
