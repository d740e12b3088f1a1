"""What a request that brings log lines holds, unpacked within bounds. Raises API problems. Not here: where it goes."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from apps.errors import Invalid, TooLarge
from yardmaster.errors import Problem
from yardmaster.logs.lines import has_longer_line
from yardmaster_runner.masking import MASK

MOST_BYTES = 1 << 20
MOST_INFLATED = 8 << 20
LONGEST_LINE = 128 << 10
"""Runners cut lines at 64 KiB; other writers may not make a line that no reader can take."""
MOST_MARKS = 4096


@dataclass(frozen=True)
class Judged:
    """What became of a body that was looked at before the view: its lines, or what is wrong with the write."""

    data: bytes = b""
    problem: Exception | None = None

    def lines(self) -> bytes:
        """The lines. Raises the problem."""
        if self.problem is not None:
            raise self.problem
        return self.data


def lines_in(raw: bytes, encoding: str) -> bytes:
    """The lines of a body of at most `MOST_BYTES` (one more byte tells that it was longer)."""
    if len(raw) > MOST_BYTES:
        raise TooLarge(f"A request holds at most {MOST_BYTES} bytes of log.", remedy="Send fewer lines at once.")
    data = _inflated(raw, encoding)
    if has_longer_line(data, LONGEST_LINE):
        raise TooLarge(f"A line holds at most {LONGEST_LINE} bytes.", remedy="Cut longer lines into several.")
    return data


def without_token(data: bytes, authorization: str) -> bytes:
    """The lines without the token that sent them: an older runner does not look for it in what its script prints. No
    line becomes longer by it."""
    token = authorization.rpartition(" ")[2].encode()
    return data.replace(token, MASK) if len(token) > len(MASK) and token in data else data


def times_in(header: str) -> list[tuple[int, int]]:
    """The marks of an `X-Times` header, `offset:unix ms,…`; none in an empty one."""
    if not header:
        return []
    try:
        times = [(int(offset), int(at)) for offset, _, at in (mark.partition(":") for mark in header.split(","))]
    except ValueError:
        times = []
    if not times or len(times) > MOST_MARKS:
        message = f"This is no list of at most {MOST_MARKS} marks offset:milliseconds."
        raise Invalid([Problem("X-Times", "invalid", message, "Write 0:1700000000000,12:1700000000100.", header[:100])])
    return times


def _inflated(raw: bytes, encoding: str) -> bytes:
    if encoding == "identity":
        return raw
    if encoding != "gzip":
        message = f"{encoding!r} is not known here."
        raise Invalid([Problem("Content-Encoding", "unknown", message, "Use gzip, or none.", encoding)])
    inflater = zlib.decompressobj(wbits=31)
    try:
        data = inflater.decompress(raw, MOST_INFLATED + 1)
    except zlib.error as error:
        raise Invalid([Problem("", "invalid", f"The body is not gzip: {error}.", "Send it again.")]) from error
    if len(data) > MOST_INFLATED:
        raise TooLarge(f"A request holds at most {MOST_INFLATED} bytes of inflated log.", remedy="Send fewer lines.")
    if not inflater.eof or inflater.unused_data:
        raise Invalid([Problem("", "invalid", "The body is not one whole gzip stream.", "Send it again.")])
    return data
