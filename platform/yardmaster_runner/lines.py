"""Chunks of output in, whole lines out, with a few searches per chunk and no work per line.

A line longer than the limit becomes several. Nothing else is changed: no encoding, no control character, no `\\r`.
"""

from __future__ import annotations

from typing import List

CUT = b" [line cut]"
SMALLEST_LIMIT = 64


class LineCutter:
    """Every byte string it returns is empty or ends in a newline, and has no line longer than `limit` bytes, newline
    included. What is kept between calls is shorter than `limit`, however long the script's line is."""

    def __init__(self, limit: int) -> None:
        self._limit = max(limit, SMALLEST_LIMIT)
        self._rest = b""

    def feed(self, chunk: bytes) -> bytes:
        """The lines that `chunk` completes."""
        data = self._rest + chunk if self._rest else chunk
        end = data.rfind(b"\n") + 1
        whole, rest = data[:end], data[end:]
        if len(whole) > self._limit:
            whole = self._cut_whole(whole)
        if len(rest) >= self._limit:
            pieces: List[bytes] = [whole]
            rest = self._cut_rest(rest, pieces)
            whole = b"".join(pieces)
        self._rest = rest
        return whole

    def finish(self) -> bytes:
        """The last line, where the script ended without a newline; one is added."""
        rest, self._rest = self._rest, b""
        return rest + b"\n" if rest else b""

    def _cut_whole(self, data: bytes) -> bytes:
        """Steps through `data` a limit at a time, looking back for a newline: cheap where no line is too long."""
        pieces: List[bytes] = []
        taken = start = 0
        while len(data) - start > self._limit:
            newline = data.rfind(b"\n", start, start + self._limit)
            if newline >= 0:
                start = newline + 1
                continue
            pieces.append(data[taken:start])
            start = taken = self._cut_one(data, start, pieces)
        if not pieces:
            return data
        pieces.append(data[taken:])
        return b"".join(pieces)

    def _cut_rest(self, rest: bytes, pieces: List[bytes]) -> bytes:
        start = 0
        while len(rest) - start >= self._limit:
            start = self._cut_one(rest, start, pieces)
        return rest[start:]

    def _cut_one(self, data: bytes, start: int, pieces: List[bytes]) -> int:
        """Cut one line off the too long one at `start`; where it continues.

        A progress bar is cut after one of its own `\\r`, which shows as it would have. Anything else is cut between
        two UTF-8 characters and gets a mark.
        """
        end = start + self._limit - len(CUT) - 1
        update = data.rfind(b"\r", start, end)
        if update > start:
            pieces.append(data[start : update + 1] + b"\n")
            return update + 1
        seam = end
        while seam > end - 3 and data[seam] & 0xC0 == 0x80:
            seam -= 1
        if data[seam] & 0xC0 == 0x80:
            seam = end  # four of them in a row are not UTF-8
        pieces.append(data[start:seam] + CUT + b"\n")
        return seam
