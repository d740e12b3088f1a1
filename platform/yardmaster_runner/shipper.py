"""Sends what the spool holds to the portal's log, whatever happens to the network, the portal, or an earlier runner.

The spool numbers lines from 0; `spool.base` is the portal's number of that line. It is learnt at the first contact, and
the portal is asked where its log goes on after every trouble: a lost answer, a restarted portal and a predecessor's
unfinished work are then all the same case.
"""

from __future__ import annotations

import threading
import time
import traceback
from typing import Callable, Optional, Protocol, Sequence, Tuple

from yardmaster_runner.backoff import Backoff
from yardmaster_runner.exits import note
from yardmaster_runner.portal import PortalAway, PortalRefused, PortalRejected
from yardmaster_runner.segments import Gap
from yardmaster_runner.spool import Spool
from yardmaster_runner.task_api import OutOfStep

BATCH_BYTES = 1 << 20
SMALLEST_BATCH = 128 << 10
BACKLOG_BYTES = 256 << 10
PAUSE = 0.1
SAVE_EVERY = 1.0
REJECTIONS = 3


class LogApi(Protocol):
    """The part of `TaskApi` that takes log lines."""

    def log_next_line(self) -> int: ...

    def log_write(self, first: int, lines: int, data: bytes, times: Sequence[Tuple[int, int]]) -> int: ...

    def log_gap(self, first: int, lines: int, size: int) -> int: ...

    def log_end(self, lines: int) -> None: ...


class Shipper:
    """The sending side, one step at a time; `ShipperThread` gives it a thread. Not safe to use from two threads."""

    def __init__(
        self, spool: Spool, api: LogApi, backoff: Optional[Backoff] = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._spool = spool
        self._api = api
        self._backoff = backoff or Backoff()
        self._clock = clock
        self._is_agreed = False
        self._posted_end = spool.recovered_end
        self._batch_bytes = BATCH_BYTES
        self._rejections = 0
        self._saved_at = -SAVE_EVERY
        self.answered_at = clock()
        """When the portal last answered as it should."""
        self.trouble = ""
        """What it said instead since then, in words."""

    @property
    def is_done(self) -> bool:
        """Everything there is has been taken by the portal."""
        return self._spool.waiting_lines == 0

    def step(self) -> float:
        """Exchange at most one message with the portal; how many seconds to wait before the next step."""
        try:
            if not self._is_agreed:
                self._agree(self._api.log_next_line())
            is_backlogged = self._send()
        except (PortalAway, PortalRefused, PortalRejected) as error:
            return self._later(error)
        self._backoff.reset()
        self.answered_at, self.trouble = self._clock(), ""
        self._save_sometimes()
        return 0.0 if is_backlogged else PAUSE

    def send_end(self) -> None:
        """Say that no more is coming. Raises as the portal's calls do."""
        if not self._is_agreed:
            self._agree(self._api.log_next_line())
        self._api.log_end((self._spool.base or 0) + self._spool.end)

    def _send(self) -> bool:
        piece = self._spool.next_piece(self._batch_bytes)
        if piece is None:
            return False
        first = (self._spool.base or 0) + piece.first
        self._posted_end = max(self._posted_end, piece.end)
        try:
            if isinstance(piece, Gap):
                next_line = self._api.log_gap(first, piece.lines, piece.size)
            else:
                next_line = self._api.log_write(first, piece.lines, piece.data, piece.times)
        except OutOfStep as error:
            next_line = error.next_line
            if next_line == first:
                raise PortalAway("the portal contradicts itself about line %d" % first) from error
        self._rejections = 0
        self._agree(next_line)
        return self._spool.waiting_bytes >= BACKLOG_BYTES or isinstance(self._spool.next_piece(1), Gap)

    def _agree(self, next_line: int) -> None:
        """Go on where the portal's log goes on.

        A portal that has more than we can ever have sent got it from somebody else (a predecessor whose spool is lost,
        in part or whole): what we have not sent is then numbered after it, for the same numbers would be skipped.
        """
        spool = self._spool
        known_base = spool.base
        if spool.base is None:
            spool.base = next_line - spool.line
        elif next_line - spool.base > self._posted_end:
            spool.base = next_line - self._posted_end
        if next_line < spool.base:
            spool.base = next_line - spool.line  # the portal begins anew; so do we, with what is left
        spool.shipped_to(next_line - spool.base)
        self._is_agreed = True
        if spool.base != known_base:
            spool.save()

    def _later(self, error: Exception) -> float:
        self._is_agreed = False
        self.trouble = str(error)
        delay = self._backoff.next()
        if isinstance(error, PortalAway):
            return max(delay, min(error.retry_after, 15.0))
        if isinstance(error, PortalRejected) and error.status == 413 and self._batch_bytes > SMALLEST_BATCH:
            self._batch_bytes //= 2
            return 0.0
        if isinstance(error, PortalRejected) and error.status in (400, 413, 422):
            self._rejections += 1
            if self._rejections >= REJECTIONS:
                self._give_up_batch(error)
        return delay

    def _give_up_batch(self, error: Exception) -> None:
        """The portal will never take these lines as they are. They must not hold back all that follow."""
        self._rejections = 0
        lost = self._spool.give_up(self._batch_bytes)
        note("the portal refuses %d log lines from line %d on: %s" % (lost.lines, lost.first, error))

    def _save_sometimes(self) -> None:
        now = self._clock()
        if now - self._saved_at >= SAVE_EVERY:
            self._saved_at = now
            self._spool.save()


class ShipperThread(threading.Thread):
    """Steps a shipper until it is told to finish and either everything is shipped or patience is over."""

    def __init__(self, spool: Spool, shipper: Shipper) -> None:
        super().__init__(name="shipper", daemon=True)
        self._spool = spool
        self._shipper = shipper
        self._wake = threading.Event()
        self._is_finishing = False
        self._may_go_on: Callable[[], bool] = lambda: True

    def finish(self, may_go_on: Callable[[], bool]) -> None:
        """No more lines come. Ship what is left while `may_go_on`; then the thread ends. Returns at once."""
        self._may_go_on = may_go_on
        self._is_finishing = True
        self._wake.set()
        self._spool.arrived.set()

    def run(self) -> None:
        while not (self._is_finishing and (self._shipper.is_done or not self._may_go_on())):
            try:
                self._spool.arrived.wait()
                if not self._is_finishing:
                    self._spool.arrived.clear()
                self._ship_until_quiet()
            except Exception:  # the script must run on, and its output be kept, whatever goes wrong here
                note("shipping stumbled:\n" + traceback.format_exc())
                self._pause(1.0)

    def _ship_until_quiet(self) -> None:
        while not self._shipper.is_done:
            delay = self._shipper.step()
            if self._is_finishing and not self._may_go_on():
                return
            self._pause(min(delay, 0.5) if self._is_finishing else delay)

    def _pause(self, seconds: float) -> None:
        """Finishing wakes it, once; then pauses are real again, so that a portal that is away is not asked in a spin."""
        if seconds > 0 and self._wake.wait(seconds):
            self._wake.clear()
