"""Which worker reads what: whole files, or pieces of them that begin and end between two records. Pure.

All workers find the same pieces, each record in one of them. Tables and few arrays are cut by bytes: the files stand
one behind the other, and each worker has as many bytes of all. A cut is moved on to the next place that is known to
lie between two records (`Marks`).
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Any, Dict, List, Sequence

from yardmaster_runner.prepare.files import File

MARK_EVERY = 256 << 10


@dataclass(frozen=True)
class Piece:
    """Of `file` the bytes from `start` to `end`, which hold the records `first` to `following` - 1."""

    file: File
    start: int
    end: int
    first: int
    following: int

    @property
    def records(self) -> int:
        return self.following - self.first


@dataclass
class Marks:
    """Places between two records of one file, in their order, with the numbers of the records behind them."""

    places: List[int] = field(default_factory=list)
    numbers: List[int] = field(default_factory=list)

    def add(self, place: int, number: int, *, is_last: bool = False) -> None:
        """Note a place; those that stand close behind the one before are left out, but not the last."""
        if not self.places or is_last or place - self.places[-1] >= MARK_EVERY:
            self.places.append(place)
            self.numbers.append(number)

    def at(self, place: int) -> int:
        """Which mark is the first one at this place or behind it; the last one where there is none."""
        return min(bisect_left(self.places, place), len(self.places) - 1)


class Wholes(Sequence[Piece]):
    """All records of each file, made when they are asked for: there may be millions of files. A file without marks is
    one record."""

    def __init__(self, files: Sequence[File], marks: Dict[str, Marks]) -> None:
        self._files, self._marks = files, marks

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, number: Any) -> Any:
        file = self._files[number]
        if not self._marks:
            return Piece(file, 0, file.size, 0, 1)
        marks = self._marks[file.path]
        return Piece(file, marks.places[0], marks.places[-1], marks.numbers[0], marks.numbers[-1])


def cut(files: Sequence[File], marks: Dict[str, Marks], workers: int, worker: int) -> List[Piece]:
    """The pieces of one worker."""
    total = sum(one.size for one in files)
    begin, end = total * worker // workers, total * (worker + 1) // workers
    pieces, before = [], 0
    for one in files:
        known = marks[one.path]
        low, high = known.at(begin - before), known.at(end - before)
        if begin <= before:
            low = 0
        if high > low:
            places, numbers = known.places, known.numbers
            pieces.append(Piece(one, places[low], places[high], numbers[low], numbers[high]))
        before += one.size
    return pieces
