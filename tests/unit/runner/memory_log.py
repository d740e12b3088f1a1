"""The portal's log as one list in memory, with a script of troubles: what the shipper talks to in unit tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from yardmaster_runner.portal import PortalAway, PortalRejected
from yardmaster_runner.task_api import OutOfStep


class MemoryLog:
    """Keeps lines by number; None stands for a line lost in a gap. Each call takes the next of `troubles`:
    "away" (nothing happens), "lost" (it happens, but the answer is lost), or "" (all is well)."""

    def __init__(self, troubles: Iterable[str] = ()) -> None:
        self.lines: list[bytes | None] = []
        self.gaps: list[tuple[int, int, int]] = []
        self.times: list[tuple[int, int]] = []
        self.calls: list[str] = []
        self.end: int | None = None
        self.refuse_with = 0
        self.most_bytes = 1 << 20
        self._troubles: Iterator[str] = iter(troubles)

    def log_next_line(self) -> int:
        self._maybe_away("next_line")
        return len(self.lines)

    def log_write(self, first: int, lines: int, data: bytes, times: Sequence[tuple[int, int]]) -> int:
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
        self._require_place(first)
        self.times += [(first + offset, ms) for offset, ms in times]
        self.lines += sent[len(self.lines) - first :]
        return self._answer(is_answer_lost)

    def log_gap(self, first: int, lines: int, size: int) -> int:
        is_answer_lost = self._maybe_away("gap")
        self._require_place(first)
        missing = first + lines - len(self.lines)
        if missing > 0:
            self.gaps.append((len(self.lines), missing, size))
            self.lines += [None] * missing
        return self._answer(is_answer_lost)

    def log_end(self, lines: int) -> None:
        self._maybe_away("end")
        self.end = lines

    def _require_place(self, first: int) -> None:
        if first > len(self.lines):
            raise OutOfStep(len(self.lines))

    def _maybe_away(self, call: str) -> bool:
        self.calls.append(call)
        trouble = next(self._troubles, "")
        if trouble == "away":
            raise PortalAway("away")
        return trouble == "lost"

    def _answer(self, is_lost: bool) -> int:
        if is_lost:
            raise PortalAway("the answer was lost")
        return len(self.lines)
