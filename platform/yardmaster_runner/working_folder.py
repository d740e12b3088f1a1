"""What a script has written in its working folder, the copy of its code: outputs, event files, perhaps the model. Event
files are sent while it runs, all else when it has ended: until then a file may be a temporary one.

An output is a regular file that the staged code version does not have, or has otherwise. Of those that are more than
the limits, event files are kept first, then the smallest: the largest are left out, and named.

A script may write anything. No link is followed, and how much is looked at is bounded.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from yardmaster_runner.order import Limits
from yardmaster_runner.output_files import LONGEST_PATH, Listing, OutputFile, has_events, is_sendable, list_files
from yardmaster_runner.relative_model import RelativeModel, find_relative_model
from yardmaster_runner.summaries import FOLDER as SUMMARIES

_CACHES = (".ipynb_checkpoints", ".mypy_cache", ".pytest_cache", ".ruff_cache", "__pycache__")
PASSED_BY = frozenset((*_CACHES, ".git", ".hg", ".venv", "venv", "node_modules"))
"""Folders of tools, which can be made again."""
COMPILED = (".pyc", ".pyo")
OUTSIDE = "working_folder"
"""The folder of those whose names the log directory has as well."""
DEEPEST = 8
MOST_EVENT_FILES = 200
MOST_ENTRIES = 20_000
PAUSE_TIMES_SCAN = 20.0
NAMED = 20
States = Mapping[str, Tuple[int, int, int]]
"""By path a file's size, time of change and number: others once it has changed."""


@dataclass(frozen=True)
class Choice:
    """Of the files found, those that are kept; and those over the limits, the largest first."""

    kept: List[OutputFile]
    left_out: List[OutputFile]
    problem: str = ""
    """Why files are neither here nor there."""


def states_of(folder: str, paths: Iterable[str]) -> States:
    """How these files are now."""
    found = {}
    for path in paths:
        state = os.lstat(os.path.join(folder, path))
        found[os.path.normpath(path)] = (state.st_size, state.st_mtime_ns, state.st_ino)
    return found


def choose(files: Iterable[OutputFile], most_bytes: int, most_files: int) -> Choice:
    """Event files first, then the smallest."""
    kept: List[OutputFile] = []
    left_out: List[OutputFile] = []
    size = 0
    for file in sorted(files, key=lambda one: (not one.has_events, one.size, one.path)):
        if len(kept) < most_files and size + file.size <= most_bytes:
            kept.append(file)
            size += file.size
        else:
            left_out.append(file)
    return Choice(kept, sorted(left_out, key=lambda one: (-one.size, one.path)))


def words_of(left_out: Sequence[OutputFile], limits: Limits, most: int = NAMED) -> str:
    """Which files are not kept, and why; empty where all are."""
    if not left_out:
        return ""
    named = ", ".join("%s (%s)" % (one.path, in_words(one.size)) for one in left_out[:most])
    if len(left_out) > most:
        named += " and %d more (%s)" % (len(left_out) - most, in_words(sum(one.size for one in left_out[most:])))
    limit = (in_words(limits.working_bytes), limits.working_files)
    return "not kept: %s: over the limit of %s and %d files for the working folder" % (named, *limit)


def in_words(size: int) -> str:
    """A number of bytes as people write it: `12.0 GiB`."""
    amount, unit = float(size), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return "%d bytes" % size if unit == "bytes" else "%.1f %s" % (amount, unit)


class WorkingFolder:
    """Of one start of a task. `staged` is its code as it was staged; `log_dir` has names of its own for outputs."""

    def __init__(self, folder: str, log_dir: str, staged: States, limits: Limits) -> None:
        self._folder = folder
        self._log_dir = log_dir
        self._staged = staged
        self._limits = limits
        self._tops: Dict[str, str] = {}
        self._events: List[str] = []
        self._scan_at = float("-inf")
        self.model: Optional[RelativeModel] = None
        """It is kept as the job's model, and therefore not as an output."""

    def listing(self, is_last: bool) -> Listing:
        """The outputs; before the end, the event files alone."""
        if not is_last:
            return Listing([self._named(one) for one in self._event_outputs()])
        choice = self._choice()
        return Listing([self._named(one) for one in choice.kept], choice.problem)

    def left_out(self, most: int = NAMED) -> str:
        """What is over the limits, in words; empty: nothing."""
        return words_of(self._choice().left_out, self._limits, most)

    def find_model(self, *, is_finished: bool) -> Optional[RelativeModel]:
        """The model that the script has saved here. `is_finished`: it has written all that it wanted to."""
        return find_relative_model(self._folder, self._written().files, is_finished=is_finished)

    def event_files(self, is_last: bool) -> List[Tuple[str, str]]:
        """The place of each event file, and the run that it is of. They are looked for at most a twentieth of the time,
        and at the end."""
        if is_last or time.monotonic() >= self._scan_at:
            begun = time.monotonic()
            self._events = sorted(self._find_event_files())
            self._scan_at = time.monotonic() + PAUSE_TIMES_SCAN * (time.monotonic() - begun)
        return [(os.path.join(self._folder, path), self._run_of(path)) for path in self._events]

    def _run_of(self, path: str) -> str:
        folder = os.path.dirname(self._name_of(path))
        return folder or OUTSIDE

    def _choice(self) -> Choice:
        listed = self._written()
        of_model = frozenset() if self.model is None else self.model.in_working_folder
        files = [one for one in listed.files if one.path not in of_model]
        choice = choose(files, self._limits.working_bytes, self._limits.working_files)
        return replace(choice, problem=listed.left_out)

    def _is_written(self, path: str, entry: "os.DirEntry[str]") -> bool:
        return entry.is_file(follow_symlinks=False) and is_sendable(path) and not self._is_other(path, entry)

    def _written(self) -> Listing:
        return list_files(self._folder, passed_by=PASSED_BY, is_other=self._is_other)

    def _is_other(self, path: str, entry: "os.DirEntry[str]") -> bool:
        """Whether it is as it was staged, or can be made again."""
        if path.endswith(COMPILED):
            return True
        staged = self._staged.get(path)
        if staged is None:
            return False
        state = entry.stat(follow_symlinks=False)
        return staged == (state.st_size, state.st_mtime_ns, state.st_ino)

    def _event_outputs(self) -> List[OutputFile]:
        found = []
        for place, _ in self.event_files(False):
            try:
                state = os.lstat(place)
            except OSError:
                continue
            path = os.path.relpath(place, self._folder)
            found.append(OutputFile(path, state.st_size, state.st_mtime_ns, state.st_ino))
        return choose(found, self._limits.working_bytes, self._limits.working_files).kept

    def _named(self, file: OutputFile) -> OutputFile:
        name = self._name_of(file.path)
        return file if name == file.path else replace(file, name=name)

    def _name_of(self, path: str) -> str:
        """What an output is called: a name that the log directory has as well is below a folder of ours. Decided once
        for each name at the top, so that a file that grows keeps its own."""
        top = path.split("/", 1)[0]
        if top not in self._tops:
            is_taken = os.path.lexists(os.path.join(self._log_dir, top)) or top in (OUTSIDE, SUMMARIES)
            self._tops[top] = OUTSIDE + "/" if is_taken else ""
        return self._tops[top] + path

    def _find_event_files(self) -> List[str]:
        """Those nearest to the top first, within the bounds."""
        found: List[str] = []
        folders, entries = [""], 0
        while folders and entries < MOST_ENTRIES and len(found) < MOST_EVENT_FILES:
            below = folders.pop(0)
            try:
                with os.scandir(os.path.join(self._folder, below)) as listed:
                    for entry in listed:
                        entries += 1
                        path = below + "/" + entry.name if below else entry.name
                        if entry.is_dir(follow_symlinks=False):
                            if path.count("/") < DEEPEST and entry.name not in PASSED_BY and len(path) <= LONGEST_PATH:
                                folders.append(path)
                        elif has_events(path) and self._is_written(path, entry):
                            found.append(path)
            except OSError:
                continue  # removed meanwhile, or not ours to read: perhaps at the next look
        return found[:MOST_EVENT_FILES]
