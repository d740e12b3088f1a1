"""Lines as WebSocket messages, made once for all who read them.

A frame is found by its stream and first line. The first that needs it makes it, the others wait for the same one; the
newest frames stay for a while. So fifty followers of one log cost one reading and one encoding, also when all start
from the beginning; who falls behind the kept ones has them made again. Not here: who needs which (`followers`).
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from yardmaster.logs.keys import StreamKey
from yardmaster.logs.reading import Gap, Span
from yardmaster.logs.store import LogStore
from yardmaster.logs.volume import reason_of

FRAME_BYTES = 256 << 10
"""No message is longer."""
RAW_BYTES = 128 << 10
ROW_BYTES = 20
"""What a message has around each text: brackets, quotes, the time."""
KEPT_BYTES = 32 << 20
LONGEST_SHOWN = 40_000
"""Characters of a line that alone would fill a frame. The raw log has all of it."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One message: everything from its first line up to, not including, `next_line`."""

    text: str
    next_line: int


class Frames:
    """The frames of all streams that are followed in this process. For one event loop."""

    def __init__(self, store: LogStore, kept_bytes: int = KEPT_BYTES) -> None:
        self._store = store
        self._kept: OrderedDict[tuple[StreamKey, int], Frame] = OrderedDict()
        self._bytes_left = kept_bytes
        self._being_made: dict[tuple[StreamKey, int], asyncio.Future[Frame | None]] = {}
        self.made = 0
        """How many were made, for measurements."""

    @property
    def root(self) -> Path:
        return self._store.root

    async def at(self, stream: StreamKey, first: int) -> Frame | None:
        """The frame that begins with line `first`; None when there is no such line yet. Raises `Unavailable`."""
        key = stream, first
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        if key not in self._being_made:
            made = asyncio.ensure_future(asyncio.to_thread(make_frame, self._store, stream, first))
            self._being_made[key] = made
            made.add_done_callback(lambda future: self._keep(key, future))
        # A follower that leaves must not take the frame from the others.
        return await asyncio.shield(self._being_made[key])

    def _keep(self, key: tuple[StreamKey, int], made: asyncio.Future[Frame | None]) -> None:
        del self._being_made[key]
        self.made += 1
        if made.cancelled() or made.exception() is not None:
            return
        frame = made.result()
        if frame is None:
            return
        self._kept[key] = frame
        self._bytes_left -= len(frame.text)
        while self._bytes_left < 0 and len(self._kept) > 1:
            _, oldest = self._kept.popitem(last=False)
            self._bytes_left += len(oldest.text)


def make_frame(store: LogStore, stream: StreamKey, first: int) -> Frame | None:
    """Read and encode one frame."""
    with store.reader(stream) as reader:
        piece = next(reader.spans(first, span_bytes=RAW_BYTES), None) if reader else None
    if piece is None:
        return None
    if isinstance(piece, Gap):
        gap = {"type": "gap", **_task(stream), "first": piece.first_line, "count": piece.lines}
        gap |= {"cause": piece.why.cause.name.lower(), "detail": reason_of(piece.why)}
        return Frame(json.dumps(gap), piece.first_line + piece.lines)
    return _frame_of(stream, piece)


def _frame_of(stream: StreamKey, span: Span) -> Frame:
    rows = _rows_of(span)
    while True:
        message = {"type": "lines", **_task(stream), "first": span.first, "lines": rows}
        text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
        if (len(text) if text.isascii() else len(text.encode())) <= FRAME_BYTES:
            return Frame(text, span.first + len(rows))
        if len(rows) > 1:
            rows = rows[: len(rows) // 2]
        else:
            time, line = rows[0]
            rows = [(time, line[:LONGEST_SHOWN] + "…" if len(line) > LONGEST_SHOWN else line[: len(line) // 2] + "…")]


def _rows_of(span: Span) -> list[tuple[int, str]]:
    """(time, text) of the first lines, about as many as a frame takes."""
    data = span.data
    if len(data) > RAW_BYTES:
        data = data[: data.rfind(b"\n", 0, RAW_BYTES) + 1 or data.index(b"\n") + 1]
    texts = data.decode("utf-8", "replace").split("\n")
    texts.pop()
    likely_bytes = len(data) + ROW_BYTES * len(texts)
    if likely_bytes > FRAME_BYTES:
        texts = texts[: max(1, len(texts) * FRAME_BYTES // likely_bytes)]
    starts = [first - span.first for first, _ in span.times]
    rows: list[tuple[int, str]] = []
    for (_, time), start, end in zip(span.times, starts, [*starts[1:], len(texts)], strict=True):
        rows += [(time, text) for text in texts[start:end]]
    return rows


def _task(stream: StreamKey) -> dict[str, str | int]:
    return {"role": stream.role.value, "index": stream.index}
