"""Sends what the spool holds to the portal's log, whatever happens to the network, the portal, or an earlier runner.

The spool numbers lines from 0; `spool.base` is the portal's number of that line. It is learnt at the first contact, and
after every trouble the portal is asked where its log continues, and where in it the lines of this spool end: a lost
answer, a restarted portal, a predecessor's unfinished work, and a pod that still writes while its successor does, are
then all the same case.
"""

from __future__ import annotations

import threading
import time
import traceback
from typing import Callable, Optional, Protocol, Sequence, Tuple

from yardmaster_runner.answers import PortalAway, PortalRefused, PortalRejected
from yardmaster_runner.exits import note
from yardmaster_runner.patience import AWAY_AFTER, Backoff, Patience, is_away
from yardmaster_runner.segments import Gap
from yardmaster_runner.spool import Spool

BATCH_BYTES = 1 << 20
SMALLEST_BATCH = 128 << 10
BACKLOG_BYTES = 256 << 10
PAUSE = 0.4
"""Seconds between two messages while little comes: a script that prints now and then costs no message per line."""
NOTICE = 0.1
"""Seconds in which a backlog is noticed that comes up during a pause."""
LAST_PAUSE = 0.5
SAVE_EVERY = 1.0
REJECTIONS = 3
TAIL_BYTES = 32 << 10
"""The newest output that is held back while the portal's log of this attempt is full: sent at the end, it says why the
script failed, and that much is kept."""
FULL_PAUSE = 5.0
"""Seconds between two messages that say how many lines a full log has missed."""


class LogApi(Protocol):
    """The part of `TaskApi` that takes log lines."""

    def log_place(self, writer: int) -> Tuple[int, Optional[int]]: ...

    def log_write(
        self,
        writer: int,
        first: int,
        lines: int,
        data: bytes,
        times: Sequence[Tuple[int, int]],
        *,
        is_tail: bool = False,
    ) -> str: ...

    def log_gap(self, writer: int, first: int, lines: int, size: int) -> str: ...

    def log_end(self, lines: int) -> None: ...


class Shipper:
    """The sending side, one step at a time; `ShipperThread` gives it a thread. Not safe to use from two threads."""

    def __init__(
        self,
        spool: Spool,
        api: LogApi,
        on_success: Callable[[], None] = lambda: None,
        backoff: Optional[Backoff] = None,
        clock: Callable[[], float] = time.monotonic,
        away_after: float = AWAY_AFTER,
    ) -> None:
        self._spool = spool
        self._api = api
        self._backoff = backoff or Backoff()
        self._clock = clock
        self._is_agreed = False
        self._posted_end = max(spool.recovered_end, spool.line)
        self._batch_bytes = BATCH_BYTES
        self._rejections = 0
        self._saved_at = -SAVE_EVERY
        self._away_after = away_after
        self._unanswered_since: Optional[float] = None
        self._on_success = on_success
        self.full = ""
        """Why the portal's log takes no more lines; empty while it does. Lines are then counted, not sent."""
        self.is_last = False
        """No more lines come: what is held back is to be sent."""
        self.is_gone = False
        """The portal has no such log, and will have none: what is left has nowhere to go."""
        self.trouble = ""
        """What hinders shipping now, in words; empty when it goes well."""

    @property
    def is_done(self) -> bool:
        """Everything there is has been taken by the portal."""
        return self._spool.waiting_lines == 0

    @property
    def is_away(self) -> bool:
        """Whether waiting for the portal would be in vain: it has not answered for so long, or has no such log."""
        return self.is_gone or is_away(self._unanswered_since, self._clock(), self._away_after)

    def step(self) -> float:
        """Exchange at most one message with the portal; how many seconds to wait before the next step."""
        if self._unanswered_since is None:
            self._unanswered_since = self._clock()
        try:
            self._agree()
            is_backlogged = self._send()
        except (PortalAway, PortalRefused, PortalRejected) as error:
            return self._later(error)
        self._backoff.reset()
        self.trouble, self.is_gone = "", False
        self._unanswered_since = None
        self._on_success()
        self._save_sometimes()
        if is_backlogged:
            return 0.0
        return FULL_PAUSE if self.full and not self.is_last else PAUSE

    def send_end(self) -> float:
        """Say that no more is coming; how many seconds to wait before saying it again, 0 when it was heard."""
        try:
            self._agree()
            self._api.log_end((self._spool.base or 0) + self._spool.end)
        except PortalRejected as error:
            note("the end of the log was refused: %s" % error)
        except (PortalAway, PortalRefused) as error:
            return self._later(error)
        return 0.0

    def _send(self) -> bool:
        if self.full:
            self._spool.leave_newest(TAIL_BYTES)
        piece = self._spool.next_piece(self._batch_bytes)
        if piece is None or (self.full and not self.is_last and not isinstance(piece, Gap)):
            return False
        spool, first = self._spool, (self._spool.base or 0) + piece.first
        self._posted_end = max(self._posted_end, piece.end)
        if isinstance(piece, Gap):
            full = self._api.log_gap(spool.writer, first, piece.lines, piece.size)
        else:
            was_full = bool(self.full)
            full = self._api.log_write(spool.writer, first, piece.lines, piece.data, piece.times, is_tail=was_full)
            if full and not was_full:
                self._note_full(full)
                return True
        self._note_full(full)
        self._rejections = 0
        spool.shipped_to(piece.end)
        if self.full and not self.is_last:
            return False
        return spool.waiting_bytes >= BACKLOG_BYTES or isinstance(spool.next_piece(1), Gap)

    def _note_full(self, full: str) -> None:
        if full and not self.full:
            note("lines are dropped: %s" % full)
        self.full = full or ""

    def _agree(self) -> None:
        """Continue where the portal's log continues, with what the portal does not have of this spool. Between the two
        may lie lines of another writer, or of a predecessor whose disk has lost them."""
        if self._is_agreed:
            return
        spool = self._spool
        next_line, mine = self._api.log_place(spool.writer)
        if spool.base is not None and mine is not None:
            spool.shipped_to(min(max(0, mine - spool.base), self._posted_end))
        spool.number_from(next_line)
        self._is_agreed = True

    def _later(self, error: Exception) -> float:
        self._is_agreed = False
        self.trouble = str(error)
        self.is_gone = isinstance(error, PortalRejected) and error.is_gone
        delay = self._backoff.next()
        if isinstance(error, PortalRejected) or (isinstance(error, PortalAway) and error.has_answered):
            self._unanswered_since = None
        is_less = self._send_less_after(error)
        if isinstance(error, PortalAway):
            return max(delay, min(error.retry_after, 15.0))
        if is_less:
            return 0.0
        if isinstance(error, PortalRejected) and error.status in (400, 413, 422):
            self._rejections += 1
            if self._rejections >= REJECTIONS:
                self._give_up_batch(error)
        return delay

    def _send_less_after(self, error: Exception) -> bool:
        """Whether smaller batches follow this error. A 413 from anywhere tells of a limit: a proxy may have its own."""
        if getattr(error, "status", 0) != 413 or self._batch_bytes <= SMALLEST_BATCH:
            return False
        self._batch_bytes //= 2
        return True

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
    """Ships what the spool gets until it learns that no more comes; then what is left, and that it is the end, as long
    as the portal takes anything within `patience`."""

    def __init__(self, spool: Spool, api: LogApi, patience: Patience, away_after: float = AWAY_AFTER) -> None:
        super().__init__(name="shipper", daemon=True)
        self.shipper = Shipper(spool, api, patience.worked, away_after=away_after)
        self._spool = spool
        self._patience = patience
        self._wake = threading.Event()
        self._is_finishing = False

    def no_more_lines(self) -> None:
        """Returns at once; join the thread for the end of its work."""
        self._patience.worked()
        self.shipper.is_last = True
        self._is_finishing = True
        self._wake.set()
        self._spool.arrived.set()

    def run(self) -> None:
        while not self._is_finishing or not self.shipper.is_done:
            try:
                self._spool.arrived.wait()
                self._spool.arrived.clear()
                self._ship_until_quiet()
            except Exception:  # noqa: BLE001 - the script must run on, and its output be kept, whatever goes wrong here
                note("shipping failed:\n" + traceback.format_exc())
                time.sleep(1.0)
                self._spool.arrived.set()
            if self._is_finishing and self._is_in_vain:
                return
        self._say_end()

    def _ship_until_quiet(self) -> None:
        while not self.shipper.is_done:
            self._pause(self.shipper.step())
            if self._is_finishing and self._is_in_vain:
                return

    @property
    def _is_in_vain(self) -> bool:
        return self.shipper.is_gone or not self._patience.may_go_on()

    def _say_end(self) -> None:
        delay = self.shipper.send_end()
        while delay and self._patience.may_go_on():
            self._pause(delay)
            delay = self.shipper.send_end()

    def _pause(self, seconds: float) -> None:
        """Finishing cuts the pause it comes upon; later ones are for trouble only, and short, so that the end is not
        slept through."""
        if self._is_finishing:
            time.sleep(min(seconds, LAST_PAUSE) if self.shipper.trouble else 0.0)
        elif self.shipper.trouble or self.shipper.full:
            self._wake.wait(seconds)
        else:
            self._let_it_gather(seconds)

    def _let_it_gather(self, seconds: float) -> None:
        """Lines that come meanwhile go together; more than a little of them ends the wait."""
        until = time.monotonic() + seconds
        while not self._is_finishing and self._spool.waiting_bytes < BACKLOG_BYTES:
            left = until - time.monotonic()
            if left <= 0:
                return
            self._wake.wait(min(left, NOTICE))
