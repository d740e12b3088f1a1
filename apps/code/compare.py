"""What differs between two texts, as hunks of lines with their numbers on both sides. Bounded.

Finding equal lines takes time that grows faster than the square of their number, so all but small texts are compared in
a sandboxed process, which sees numbers in the place of lines.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from yardmaster.sandbox.function import NoResult, Sandbox

CONTEXT = 3
MOST_LINES = 4_000
"""Lines of one side up to which two texts are compared line by line."""
SMALL = 10_000
"""Pairs of lines that take some milliseconds, whatever they are."""
_MATCHER = Sandbox("apps.code.compare:steps_between")

Step = tuple[str, int, int, int, int]


@dataclass(frozen=True)
class DiffLine:
    """`kind` is `same`, `added` or `removed`; `old` and `new` are line numbers from 1, None where the side lacks it."""

    kind: str
    old: int | None
    new: int | None
    text: str

    @property
    def sign(self) -> str:
        return {"added": "+", "removed": "−"}.get(self.kind, "")


@dataclass(frozen=True)
class Hunk:
    """Lines that belong together: changes, and what stands around them."""

    lines: list[DiffLine]

    @property
    def title(self) -> str:
        before, after = [line.old for line in self.lines], [line.new for line in self.lines]
        return f"{_range('Before', before)} · {_range('after', after)}"


@dataclass(frozen=True)
class TextDiff:
    """`too_large`: the texts are too long, or too hard to compare, and there are no hunks. `cut`: not all hunks are
    here."""

    hunks: list[Hunk]
    added: int = 0
    removed: int = 0
    too_large: bool = False
    cut: bool = False

    @property
    def length(self) -> int:
        return sum(len(hunk.lines) for hunk in self.hunks)

    def first(self, lines: int) -> TextDiff:
        """No more than so many lines of it."""
        kept: list[Hunk] = []
        for hunk in self.hunks:
            if lines <= 0:
                break
            kept.append(Hunk(hunk.lines[:lines]))
            lines -= len(hunk.lines)
        return replace(self, hunks=kept, cut=lines < 0 or len(kept) < len(self.hunks))


def compare_texts(before: str, after: str, *, wait: float = 6.0) -> TextDiff:
    """The hunks that make `after` of `before`, found within `wait` seconds."""
    old, new = before.splitlines(), after.splitlines()
    if max(len(old), len(new)) > MOST_LINES:
        return TextDiff([], too_large=True)
    # Equal lines at both ends are most of a usual change; without them the matcher has little to do.
    head = _same_at_start(old, new)
    tail = _same_at_start(old[head:][::-1], new[head:][::-1])
    try:
        middle = _steps(old[head : len(old) - tail], new[head : len(new) - tail], wait)
    except NoResult:
        return TextDiff([], too_large=True)
    steps = [("equal", 0, head, 0, head)]
    steps += [(tag, a + head, b + head, c + head, d + head) for tag, a, b, c, d in middle]
    steps.append(("equal", len(old) - tail, len(old), len(new) - tail, len(new)))
    lines = [line for step in steps for line in _lines(old, new, *step)]
    return TextDiff(
        _hunks(lines),
        added=sum(line.kind == "added" for line in lines),
        removed=sum(line.kind == "removed" for line in lines),
    )


def steps_between(old: Sequence[object], new: Sequence[object]) -> list[Step]:
    """(tag, from, to, from, to) as `difflib` has them."""
    return list(difflib.SequenceMatcher(None, old, new, autojunk=True).get_opcodes())


def _steps(old: list[str], new: list[str], wait: float) -> list[Step]:
    if len(old) * len(new) <= SMALL:
        return steps_between(old, new)
    numbers: dict[str, int] = {}
    sides = [[numbers.setdefault(line, len(numbers)) for line in side] for side in (old, new)]
    return [(str(tag), int(a), int(b), int(c), int(d)) for tag, a, b, c, d in _MATCHER.call(*sides, wait=wait)]


def _same_at_start(one: Sequence[str], other: Sequence[str]) -> int:
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _lines(old: list[str], new: list[str], tag: str, a: int, b: int, c: int, d: int) -> list[DiffLine]:
    if tag == "equal":
        return [DiffLine("same", a + i + 1, c + i + 1, old[a + i]) for i in range(b - a)]
    removed = [DiffLine("removed", i + 1, None, old[i]) for i in range(a, b)]
    return removed + [DiffLine("added", None, i + 1, new[i]) for i in range(c, d)]


def _hunks(lines: list[DiffLine]) -> list[Hunk]:
    """Changed lines with `CONTEXT` lines around them; what touches or overlaps is one hunk."""
    hunks: list[Hunk] = []
    end = 0
    for at in (at for at, line in enumerate(lines) if line.kind != "same"):
        start, stop = max(end, at - CONTEXT), min(len(lines), at + CONTEXT + 1)
        if hunks and at - CONTEXT <= end:
            hunks[-1].lines.extend(lines[end:stop])
        else:
            hunks.append(Hunk(lines[start:stop]))
        end = max(end, stop)
    return hunks


def _range(side: str, numbers: list[int | None]) -> str:
    there = [number for number in numbers if number is not None]
    if not there:
        return f"{side}: nothing"
    return f"{side}: line {there[0]}" if len(there) == 1 else f"{side}: lines {there[0]}–{there[-1]}"
