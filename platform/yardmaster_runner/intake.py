"""Reads the script's output pipe in big chunks and puts whole lines into the spool, those that are redrawn in their
last state.

Work is done per chunk, never per line, and a pipe with little in it is left to fill for a few milliseconds, so that a
script that prints at full speed shares its processor with as little as possible.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import threading
import time
import traceback
from typing import Callable, Optional, Tuple

from yardmaster_runner.exits import note
from yardmaster_runner.lines import LineCutter
from yardmaster_runner.masking import TokenMask
from yardmaster_runner.redraw import Redraws
from yardmaster_runner.spool import Spool

PIPE_BYTES = 1 << 20
LET_IT_FILL = 0.004
TAIL_BYTES = 16 << 10
MOST_LATE_BYTES = 8 * PIPE_BYTES
F_SETPIPE_SZ = 1031


class Intake(threading.Thread):
    """Reads until the pipe ends or `stop_reading` is called. Keeps the last of the output for `reasons`.

    Where the spool is full, the pipe is left full and the script waits, as long as `may_wait` says that it may:
    lines are dropped only after that. `watch` is given the end of a chunk now and then (at most every second), to look
    for progress. What `mask` knows is taken out of all that it keeps.
    """

    def __init__(
        self,
        pipe: int,
        spool: Spool,
        line_bytes: int,
        may_wait: Callable[[], bool],
        watch: Optional[Callable[[bytes], None]] = None,
        mask: Optional[TokenMask] = None,
    ) -> None:
        super().__init__(name="intake", daemon=True)
        self._pipe = pipe
        self._spool = spool
        self._redraws = Redraws(line_bytes)
        self._cutter = LineCutter(line_bytes)
        self._open: Tuple[int, bytes] = (0, b"")
        self._may_wait = may_wait
        self._mask = mask or TokenMask(tuple)
        self._watch = watch
        self._watched_at = 0.0
        self._tail = b""
        self._total = 0
        self._stop_at = float("inf")
        self._late_bytes = 0

    @property
    def tail(self) -> bytes:
        """The last bytes of the output."""
        return self._tail

    @property
    def open_line(self) -> Tuple[int, bytes]:
        """The number that the spool will give to the line that is not finished, and what there is of it
        (`redraw.shown`)."""
        return self._open

    @property
    def output(self) -> Tuple[int, bytes]:
        """How many bytes there were so far, and the last of them."""
        return self._total, self._tail

    def stop_reading(self, within: float) -> None:
        """After `within` seconds take only what is in the pipe already: it may be held open by what is not the
        script's. Nothing that the script wrote is lost by this, however late we are."""
        self._stop_at = time.monotonic() + within

    def run(self) -> None:
        while self._read_on():
            pass
        self._keep(self._mask.finish())
        rest = self._cutter.feed(self._redraws.finish())
        self._spool.append(rest + self._cutter.finish(), now_ms())
        self._open = (self._spool.end, b"")
        os.close(self._pipe)

    def _read_on(self) -> bool:
        try:
            return self._read_some()
        except Exception:  # noqa: BLE001 - the script must not block for ever on a pipe that is not read
            note("reading the output failed:\n" + traceback.format_exc())
            time.sleep(0.1)
            return time.monotonic() < self._stop_at

    def _read_some(self) -> bool:
        """One chunk; False at the end of the pipe or of our patience."""
        left = self._stop_at - time.monotonic()
        if not select.select([self._pipe], [], [], min(max(left, 0.0), 0.2))[0]:
            return left > 0
        chunk = os.read(self._pipe, PIPE_BYTES)
        if left <= 0:
            self._late_bytes += len(chunk)
        if not chunk or self._late_bytes > MOST_LATE_BYTES:
            return False
        self._take(chunk)
        if len(chunk) < PIPE_BYTES // 4:
            time.sleep(LET_IT_FILL)
        return True

    def _take(self, chunk: bytes) -> None:
        while not self._spool.has_space and self._may_wait():
            time.sleep(LET_IT_FILL)
        self._keep(self._mask.feed(chunk))
        if self._watch is not None and time.monotonic() - self._watched_at >= 1.0:
            self._watched_at = time.monotonic()
            self._watch(self._tail)

    def _keep(self, chunk: bytes) -> None:
        self._spool.append(self._cutter.feed(self._redraws.feed(chunk)), now_ms())
        self._open = (self._spool.end, self._redraws.open)
        self._total += len(chunk)
        self._tail = chunk[-TAIL_BYTES:] if len(chunk) >= TAIL_BYTES else (self._tail + chunk)[-TAIL_BYTES:]


def open_pipe() -> Tuple[int, int]:
    """A pipe as large as the system lets us have: (read end, write end)."""
    reader, writer = os.pipe()
    with contextlib.suppress(OSError):
        fcntl.fcntl(reader, F_SETPIPE_SZ, PIPE_BYTES)
    return reader, writer


def now_ms() -> int:
    """Unix milliseconds."""
    return time.time_ns() // 1_000_000
