"""Reading a Kubernetes object: each level says which of its keys were read, and the rest is listed, never passed over.

What has another type than it must have is a problem; a mapping or a list that is not there is an empty one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from yardmaster.errors import Problem
from yardmaster.job.spec_limits import shorten
from yardmaster.job.spec_reading import HUGE, MOST_PROBLEMS, show

MOST_NOTES = 200
"""More are counted, not listed."""
MOST_ITEMS = 1_000
"""Entries of one list that are read."""


class Kind(StrEnum):
    """What became of a part of the TFJob."""

    TAKEN = "taken"
    CHANGED = "changed"
    LEFT_OUT = "left_out"
    TO_DO = "to_do"
    """The job file is not complete, or not valid, before this is done."""


@dataclass(frozen=True)
class Note:
    """One sentence about a part of the TFJob, named as in its YAML, and what to do about it. `upload`: what has to be
    uploaded, as `code:NAME` or `dataset:NAME`; there is nothing to do where that exists."""

    kind: Kind
    field: str
    message: str
    remedy: str = ""
    upload: str = ""


class Findings:
    """Notes and problems of one import."""

    def __init__(self) -> None:
        self._notes: list[Note] = []
        self._said: set[tuple[Kind, str]] = set()
        self.problems: list[Problem] = []

    def note(self, kind: Kind, field: str, message: str, remedy: str = "", upload: str = "") -> None:
        """Each sentence once, whichever roles it is about."""
        if (kind, message) not in self._said:
            self._said.add((kind, message))
            self._notes.append(Note(kind, shorten(field, 200), message, remedy, upload))

    def refuse(self, field: str, expected: str, value: object) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            remedy = "Correct the TFJob: kubectl apply --dry-run=server shows the same."
            self.problems.append(Problem(field, "wrong_type", f"Expected {expected}.", remedy, show(value)))

    @property
    def notes(self) -> tuple[Note, ...]:
        """What is to be done first, what was taken last."""
        order = (Kind.TO_DO, Kind.CHANGED, Kind.LEFT_OUT, Kind.TAKEN)
        found = sorted(self._notes, key=lambda one: order.index(one.kind))
        if len(found) <= MOST_NOTES:
            return tuple(found)
        more = Note(Kind.LEFT_OUT, "", f"{len(found) - MOST_NOTES} more notes are not listed.")
        return (*found[:MOST_NOTES], more)


class Part:
    """A mapping of the TFJob. What is read of it counts as known."""

    def __init__(self, field: str, value: object, findings: Findings) -> None:
        self.field, self.findings = field, findings
        if value is not None and not isinstance(value, Mapping):
            findings.refuse(field, "a mapping", value)
        self._data: Mapping[object, object] = value if isinstance(value, Mapping) else {}
        self._read: set[object] = set()

    def name(self, key: str) -> str:
        """The key as a path from the top."""
        return f"{self.field}.{key}" if self.field else key

    def has(self, key: str) -> bool:
        return not _is_empty(self._data.get(key))

    def skip(self, *keys: str) -> None:
        """These say nothing that a job file would have."""
        self._read.update(keys)

    def value(self, key: str) -> object:
        self._read.add(key)
        return self._data.get(key)

    def text(self, key: str) -> str:
        """A text; a number or a truth value as YAML writes it."""
        found = self.value(key)
        if found is None or isinstance(found, str):
            return found or ""
        if isinstance(found, (bool, int, float)):
            return show(found)
        self.findings.refuse(self.name(key), "a text", found)
        return ""

    def whole(self, key: str) -> int | None:
        found = self.value(key)
        if found is None or (isinstance(found, int) and not isinstance(found, bool) and 0 <= found < HUGE):
            return found
        self.findings.refuse(self.name(key), "a whole number that is not negative", found)
        return None

    def truth(self, key: str) -> bool:
        found = self.value(key)
        if found is None or isinstance(found, bool):
            return bool(found)
        self.findings.refuse(self.name(key), "true or false", found)
        return False

    def part(self, key: str) -> Part:
        return Part(self.name(key), self.value(key), self.findings)

    def parts(self, key: str, most: int = MOST_ITEMS) -> list[Part]:
        items = enumerate(self._items(key, most))
        return [Part(f"{self.name(key)}.{index}", one, self.findings) for index, one in items]

    def texts(self, key: str) -> list[str]:
        found = []
        for index, one in enumerate(self._items(key)):
            if isinstance(one, str):
                found.append(one)
            elif isinstance(one, (bool, int, float)):
                found.append(show(one))
            else:
                self.findings.refuse(f"{self.name(key)}.{index}", "a text", one)
        return found

    def items(self) -> Iterator[tuple[str, object]]:
        """All of it, by its keys as texts."""
        for key, one in list(self._data.items())[:MOST_ITEMS]:
            self._read.add(key)
            yield (key if isinstance(key, str) else show(key)), one

    def unread(self) -> list[str]:
        """The keys that no one has asked for, and that say something."""
        left = [key for key, one in self._data.items() if key not in self._read and not _is_empty(one)]
        return [shorten(show(key)) for key in left[:MOST_ITEMS]]

    def list_unread(self, where: str) -> None:
        """One note for all of them. `where`: whose they are, in words."""
        if names := self.unread():
            message = f"{where}: {shorten(', '.join(names), 300)} has no counterpart in a job file."
            self.findings.note(Kind.LEFT_OUT, self.field, message)

    def _items(self, key: str, most: int = MOST_ITEMS) -> Sequence[object]:
        found = self.value(key)
        if found is None:
            return []
        if isinstance(found, Sequence) and not isinstance(found, (str, bytes)):
            if len(found) > most:
                self.findings.refuse(self.name(key), f"at most {most} entries", found)
            return found[:most]
        self.findings.refuse(self.name(key), "a list", found)
        return []


def _is_empty(value: object) -> bool:
    """Whether it says nothing. Never walks into it."""
    return value is None or (isinstance(value, (str, list, dict)) and not value)
