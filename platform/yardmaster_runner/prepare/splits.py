"""The split of each file and row of a preparation; the same for all workers. Pure."""

from __future__ import annotations

from itertools import islice
from typing import Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from yardmaster_runner.prepare import folder, rows
from yardmaster_runner.prepare.files import File
from yardmaster_runner.prepare.layout import Chosen

Numbered = Sequence[Tuple[str, Sequence[int]]]
"""Rows: files, and the numbers of some of their rows."""
FEW_KEYS = 10_000
"""With more files or rows than this, none is moved for a split that would be empty."""


class Splits:
    """Given by folders or names, or by the parts that are asked for: by rows where files are few. `numbered` are
    good rows of all files: all of them, or the first ones if they are more than `FEW_KEYS`."""

    def __init__(self, chosen: Chosen, numbered: Numbered, by_rows: bool, seed: int, parts: Sequence[float]) -> None:
        self.layout, self.given = chosen.layout, chosen.splits
        self.by_rows, self.seed, self.parts = by_rows, seed, parts
        self.asked = [] if self.given else [name for name, part in zip(folder.SPLITS, parts) if part]
        labels = folder.partners(chosen.files)
        files = (one.path for one in chosen.files if one.path not in labels)
        of_rows = (rows.place_of(path, number) for path, numbers in numbered for number in numbers)
        keys = of_rows if by_rows else files
        self.moved = {} if self.given else moved(keys, seed, parts)

    def words(self) -> List[str]:
        """For the log."""
        if self.given:
            return ["split as folders or names give it: " + ", ".join(n for n in folder.SPLITS if n in self.given)]
        words = ["split by rows: few files" if self.by_rows else "split by files"]
        for key, name in self.moved.items():
            words.append("%s is put into %s, which would be empty" % (key, name))
        return words

    def of(self, file: File, place: str) -> str:
        """The split of the record of `file` at `place`."""
        if self.given:
            return self.layout.split_of(file.path) or "train"
        key = place if self.by_rows else file.path
        return self.moved.get(key) or folder.split_of(key, self.seed, self.parts)

    def of_rows(self, file: File, numbers: Sequence[int]) -> Mapping[str, Optional[List[int]]]:
        """By split, which of these rows are in it, counted from 0; None: all of them."""
        if self.given or not self.by_rows:
            return {self.of(file, ""): None}
        if not self.moved:
            return folder.splits_of_rows(file.path, numbers, self.seed, self.parts)
        found: Dict[str, Optional[List[int]]] = {}
        for at, number in enumerate(numbers):
            of_split = found.setdefault(self.of(file, rows.place_of(file.path, number)), [])
            assert of_split is not None
            of_split.append(at)
        return found


def moved(keys: Iterable[str], seed: int, parts: Sequence[float]) -> Dict[str, str]:
    """What goes into a split that has a part and none of the keys, where there are few of them: by key its split. Each
    such split takes one of the split with most."""
    asked = [name for name, part in zip(folder.SPLITS, parts) if part]
    found: Dict[str, List[str]] = {name: [] for name in asked}
    looked_at = list(islice(_until_all(keys, found, seed, parts), FEW_KEYS + 1))
    out: Dict[str, str] = {}
    if len(looked_at) > FEW_KEYS:
        return out
    for name in asked:
        largest = max(found.values(), key=len)
        if not found[name] and len(largest) > 1:
            # No one place in the order of files is preferred, and with another seed it is another one.
            key = min(largest, key=lambda one: folder.digest_of(one, seed))
            largest.remove(key)
            found[name].append(key)
            out[key] = name
    return out


def _until_all(keys: Iterable[str], found: Dict[str, List[str]], seed: int, parts: Sequence[float]) -> Iterator[str]:
    """The keys, put to their splits, up to the one with which no split is empty."""
    for key in keys:
        found[folder.split_of(key, seed, parts)].append(key)
        yield key
        if all(found.values()):
            return
