"""What the folders and names of the input say: which files are records, of which split and class. Pure, and the same
for all workers, since it depends on the list of all files only."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Dict, List, Mapping, Sequence, Set, Tuple

from yardmaster_runner.prepare.files import File, Paths, select
from yardmaster_runner.prepare.folder import is_of, of_format, remedies_for
from yardmaster_runner.prepare.trouble import PrepareError

GIVEN = {"train": "train", "training": "train", "validation": "validation", "valid": "validation",
         "val": "validation", "dev": "validation", "test": "test", "testing": "test"}  # fmt: skip
NAMED = ("csv", "jsonl", "numpy")
"""Formats of whose files the names can give a split. A picture that is called "test" is one record of many."""
PLAIN_WORDS = {"x", "y", "of", "part", "shard", "data", "set"}
FEW_BESIDE, PART_BESIDE = 10, 10
"""So many files, or one of so many, may be left out without being asked for."""
SHOWN = 3


@dataclass(frozen=True)
class Layout:
    """`top`: the folders that hold all others, with "/" at the end. `names`: the file names that give splits."""

    top: str = ""
    names: str = ""
    known: Dict[str, Tuple[str, str]] = field(default_factory=dict, compare=False, repr=False)
    """By folder its split and class: there are far fewer folders than files."""

    def split_of(self, path: str) -> str:
        """The split that the path gives, or ""."""
        return self._of_folder(path)[0] or (split_in_name(path, self.names == "any") if self.names else "")

    def class_of(self, path: str) -> str:
        """The class that the folder below a given split names, or ""."""
        return self._of_folder(path)[1]

    def _of_folder(self, path: str) -> Tuple[str, str]:
        folder = path[: path.rfind("/") + 1]
        found = self.known.get(folder)
        if found is None:
            names = folder[len(self.top) :].split("/")[:-1] if folder.startswith(self.top) else []
            split = GIVEN.get(names[0].lower(), "") if names else ""
            of_class = names[1:] if split else names
            found = self.known[folder] = (split, of_class[0] if of_class else "")
        return found


@dataclass(frozen=True)
class Chosen:
    """The files of a format that are records. Left out are files `beside` them, and those of `other` formats."""

    form: str
    files: Sequence[File]
    layout: Layout
    beside: Sequence[File] = ()
    other: Sequence[File] = ()

    @property
    def splits(self) -> Set[str]:
        """The splits that are given; empty where none is."""
        found = {self.layout.split_of(one.path) for one in self.files}
        return {one or "train" for one in found} if found - {""} else set()


def choose(listed: Sequence[File], wanted: str, skip: bool) -> Chosen:
    """Raises `PrepareError` where there are none, or where too many are of no class or split for them to be no data.
    With `skip` these are left out, as bad records are."""
    form, files = of_format(listed, wanted)
    layout = layout_of(form, Paths(files))
    kept: Sequence[File] = files
    beside: List[File] = []
    if form not in NAMED and any(layout.class_of(one.path) for one in files):
        kept = select(kept, lambda one: bool(layout.class_of(one.path)))
        beside = [one for one in files if not layout.class_of(one.path)]
        _check_few(beside, kept, skip, "no class folder; move them into one")
    if any(layout.split_of(one.path) == "train" for one in kept):
        outside = [one for one in kept if not layout.split_of(one.path)]
        kept = select(kept, lambda one: bool(layout.split_of(one.path)))
        _check_few(outside, kept, skip, "none of the given splits; move them into the folder train")
        beside = sorted([*beside, *outside], key=lambda one: one.path)
    return Chosen(form, kept, layout, beside, select(listed, lambda one: not is_of(one, form)))


def layout_of(form: str, paths: Sequence[str]) -> Layout:
    """Of the files of a format."""
    top = top_of(paths)
    return Layout(top, _names_of(Layout(top), paths) if form in NAMED else "")


def top_of(paths: Sequence[str]) -> str:
    """What archives put before all paths: folders that hold all others and name neither a split nor a class. A few
    files may lie beside them."""
    top = ""
    files: Mapping[str, int] = Counter(path[: path.rfind("/") + 1] for path in paths)
    """By folder, with "/" at the end, how many lie in it."""
    while True:
        names = {folder.partition("/")[0] for folder in files if folder}
        if len(names) != 1:
            return top
        name = names.pop()
        below = {folder[len(name) + 1 :]: count for folder, count in files.items() if folder}
        inside = sum(below.values())
        if name.lower() in GIVEN or 2 * below.get("", 0) >= inside or not _are_few(files.get("", 0), inside):
            return top
        top, files = top + name + "/", below


def split_in_name(path: str, any_word: bool) -> str:
    """The split that a file's name gives, or "": train.csv, x_test.npy, train-00001-of-00003.jsonl. With `any_word` it
    may have other words before or behind it: mnist_train.csv."""
    stem = path.rpartition("/")[2].partition(".")[0].lower()
    words = [one for one in re.split(r"[-_ ]+", stem) if one and not one.isdigit() and one not in PLAIN_WORDS]
    if len([one for one in words if one in GIVEN]) != 1 or not (any_word or len(words) == 1):
        return ""
    return GIVEN.get(words[0], "") or GIVEN.get(words[-1], "")


def _names_of(layout: Layout, paths: Sequence[str]) -> str:
    """Which names give splits. One table alone that is called "train" is still to be split."""
    if any(layout.split_of(path) for path in paths):
        return ""
    if len({split_in_name(path, False) or "train" for path in paths}) > 1:
        return "whole"
    found = {split_in_name(path, True) for path in paths}
    return "any" if "train" in found and len(found - {""}) > 1 else ""


def _are_few(some: int, others: int) -> bool:
    return some <= max(FEW_BESIDE, others // PART_BESIDE) and some < max(1, others)


def _check_few(some: Sequence[File], others: Sequence[File], skip: bool, where: str) -> None:
    if not skip and not _are_few(len(some), len(others)):
        message = "%s: in %s, or out of the dataset; on_bad_record skip (--on-bad-record skip) leaves them out"
        raise PrepareError(message % (shown(some), where))


def shown(files: Sequence[File]) -> str:
    """How many files, and the names of the first."""
    names = ", ".join(one.path for one in files[:SHOWN])
    return "%d file%s (%s%s)" % (len(files), "s" * (len(files) != 1), names, ", …" * (len(files) > SHOWN))


def notes_on(chosen: Chosen, classes: Sequence[str]) -> List[str]:
    """What the log says of files that are left out, and of classes that are likely none."""
    notes = []
    if chosen.beside:
        notes.append("left out, in no class folder or split: %s" % shown(chosen.beside))
    if chosen.other:
        notes.append("left out, of other formats: %s%s" % (shown(chosen.other), remedies_for(chosen.other)))
    if chosen.form not in NAMED and len(classes) == 1:
        notes.append("warning: all files are of one class, %r: classes are folders beside each other" % classes[0])
    return notes
