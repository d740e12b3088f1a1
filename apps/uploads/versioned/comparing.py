"""What differs between two lists of files that are stored in blocks. A million files on both sides cost the memory of
a few blocks: both are gone through side by side, and blocks that are the same on both sides are not unpacked.

Comparing may end early and continue behind a path, so that a request need not wait for all of it.
"""

from __future__ import annotations

import time
import uuid
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from apps.uploads.file_blocks import BLOCK, packed_blocks
from apps.uploads.versioned.selectors import Changes
from yardmaster.storage.file_list import contents


@dataclass(frozen=True)
class Compared:
    """About `looked_at` files of the later list were compared. `next`: it continues behind this path; None: that was
    all."""

    changes: Changes
    looked_at: int
    next: str | None


def lists_compare(
    before: uuid.UUID | None,
    after: uuid.UUID,
    *,
    behind: str = "",
    most: int | None = None,
    patience: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Compared:
    """Which files differ between these uploads, up to `most` paths of a kind; without an earlier one all are new. With
    `patience`, it ends after about so many seconds, some thousand files at least."""
    sides = _Side(before, behind), _Side(after, behind)
    found = _Found(most)
    until = None if patience is None else clock() + patience
    while _have_more(*sides):
        horizon = min(side.paths[-1] for side in sides if side.paths)
        found.compare(*(side.take(horizon) for side in sides))
        if until is not None and clock() > until and not all(side.is_over() for side in sides):
            return Compared(found.changes(), sides[1].looked_at, horizon)
    return Compared(found.changes(), sides[1].looked_at, None)


_Piece = tuple[list[str], list[str]]


class _Side:
    """One list, of which a block is unpacked at a time."""

    def __init__(self, upload_id: uuid.UUID | None, behind: str) -> None:
        self.looked_at = 0
        self.paths: list[str] = []
        self._checksums: list[str] = []
        self._packed = packed_blocks(upload_id, behind) if upload_id else iter(())
        self._waiting: bytes | None = None
        self._behind = behind

    def is_over(self) -> bool:
        """Whether all was taken."""
        return not self.paths and self._following() is None

    def peek(self) -> bytes | None:
        """The block that follows, as it is stored, where it is wanted as a whole. None: there is none."""
        if self.paths or self._behind:
            return None
        return self._following()

    def pass_over(self) -> None:
        """The other side has the same block."""
        self._waiting = None
        self.looked_at += BLOCK

    def fill(self) -> bool:
        """Whether there are more files; then some are in `paths`."""
        while not self.paths and (packed := self._following()) is not None:
            self._waiting = None
            self.paths, self._checksums = contents(packed)
            if self._behind:
                self._cut(bisect_right(self.paths, self._behind))
                self._behind = ""
        return bool(self.paths)

    def take(self, horizon: str) -> _Piece:
        """The files up to this path, and their checksums."""
        end = bisect_right(self.paths, horizon)
        taken = self.paths[:end], self._checksums[:end]
        self._cut(end)
        self.looked_at += end
        return taken

    def _cut(self, end: int) -> None:
        self.paths, self._checksums = self.paths[end:], self._checksums[end:]

    def _following(self) -> bytes | None:
        if self._waiting is None:
            self._waiting = next(self._packed, None)
        return self._waiting


def _have_more(before: _Side, after: _Side) -> bool:
    """Whether there is more to compare; then the next files of both sides are at hand."""
    while (packed := after.peek()) is not None and packed == before.peek():
        before.pass_over()
        after.pass_over()
    found = [before.fill(), after.fill()]
    return any(found)


@dataclass
class _Found:
    """What differs so far."""

    most: int | None
    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=lambda: {"added": 0, "changed": 0, "removed": 0})

    def compare(self, before: _Piece, after: _Piece) -> None:
        """Two pieces that reach to the same path."""
        if before == after:
            return
        old, new = dict(zip(*before, strict=True)), dict(zip(*after, strict=True))
        self._note("added", self.added, (path for path in new if path not in old))
        self._note("changed", self.changed, (path for path in new if path in old and new[path] != old[path]))
        self._note("removed", self.removed, (path for path in old if path not in new))

    def _note(self, kind: str, kept: list[str], paths: Iterator[str]) -> None:
        found = list(paths)
        self.counts[kind] += len(found)
        kept += found if self.most is None else found[: max(0, self.most - len(kept))]

    def changes(self) -> Changes:
        return Changes(self.added, self.changed, self.removed, self.counts)
