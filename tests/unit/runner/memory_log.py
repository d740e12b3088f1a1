"""The portal's log as one list in memory, with a script of troubles: what the shipper talks to in unit tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from yardmaster_runner.answers import PortalAway, PortalRejected

ANOTHER = 0
"""Some other writer of the same stream."""
BETWEEN = b"a line of another writer"


class MemoryLog:
    """Keeps lines by number; None stands for a line lost in a gap. Each call takes the next of `troubles`:
    "away" (nothing happens), "lost" (it happens, but the answer is lost), "another" (another writer adds a line just
    before), or "" (all is well)."""

    def __init__(self, troubles: Iterable[str] = ()) -> None:
        self.lines: list[bytes | None] = []
        self.writers: list[int] = []
        self.gaps: list[tuple[int, int, int]] = []
        self.times: list[tuple[int, int]] = []
        self.calls: list[str] = []
        self.end: int | None = None
        self.refuse_with = 0
        self.most_bytes = 1 << 20
        self.limit = 1 << 40
        """So many lines are taken; then only the last ones of the task."""
        self._troubles: Iterator[str] = iter(troubles)

    def log_place(self, writer: int) -> tuple[int, int | None]:
        self._maybe_away("place")
        mine = [number for number, whose in enumerate(self.writers) if whose == writer]
        return len(self.lines), mine[-1] + 1 if mine else None

    @property
    def full(self) -> str:
        return "limit" if sum(line is not None for line in self.lines) >= self.limit else ""

    def log_write(
        self,
        writer: int,
        first: int,
        lines: int,
        data: bytes,
        times: Sequence[tuple[int, int]],
        *,
        is_tail: bool = False,
    ) -> str:
        is_answer_lost = self._maybe_away("write")
        if self.refuse_with:
            raise PortalRejected(self.refuse_with, "not these", {})
        if len(data) > self.most_bytes:
            raise PortalRejected(413, "too much", {})
        assert data.endswith(b"\n")
        sent = data.split(b"\n")[:-1]
        assert len(sent) == lines
        assert times
        assert times[0][0] == 0
        assert all(0 <= offset < lines for offset, _ in times)
        self._require_place(writer, first)
        if self.full and not is_tail:
            return self.full
        self.times += [(first + offset, ms) for offset, ms in times]
        self.add(writer, sent[len(self.lines) - first :])
        self._answer(is_answer_lost)
        return self.full if is_tail else ""

    def log_gap(self, writer: int, first: int, lines: int, size: int) -> str:
        is_answer_lost = self._maybe_away("gap")
        self._require_place(writer, first)
        missing = first + lines - len(self.lines)
        if missing > 0:
            self.gaps.append((len(self.lines), missing, size))
            self.add(writer, [None] * missing)
        self._answer(is_answer_lost)
        return self.full

    def log_end(self, lines: int) -> None:
        self._maybe_away("end")
        self.end = lines

    def add(self, writer: int, lines: Sequence[bytes | None]) -> None:
        """As if this writer had sent them."""
        self.lines += lines
        self.writers += [writer] * len(lines)

    def forget(self, first: int) -> None:
        """As if the lines from there on had never come."""
        del self.lines[first:], self.writers[first:]

    def _require_place(self, writer: int, first: int) -> None:
        if first > len(self.lines) or any(whose != writer for whose in self.writers[first:]):
            raise PortalRejected(409, "out of step", {})

    def _maybe_away(self, call: str) -> bool:
        self.calls.append(call)
        trouble = next(self._troubles, "")
        if trouble == "another":
            self.add(ANOTHER, [BETWEEN])
        if trouble == "away":
            raise PortalAway("away")
        return trouble == "lost"

    def _answer(self, is_lost: bool) -> None:
        if is_lost:
            raise PortalAway("the answer was lost")
