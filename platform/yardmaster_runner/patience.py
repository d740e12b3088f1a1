"""How long to keep trying, and how long to wait before asking again: at a task's end, until nothing has worked for an
hour or a stop is due; and for how long a script that prints is held up by a portal that does not answer.
"""

from __future__ import annotations

import random
import time
from typing import Callable, Optional, Tuple

PORTAL_MAY_BE_AWAY = 3600.0
"""Seconds. A portal that is stopped, killed or upgraded while a job ends must cost neither its model nor its last
lines. Waiting holds nothing up: only the portal can decide what follows."""

LONGEST_UPLOAD = 3600.0
"""Seconds after the grace period of a script that was asked to stop: then the engine kills its task, however much of
what the script wrote is still on its way."""
STALL_TIMES_GRACE = 5.0
LONGEST_STALL = 300.0
LAST_REPORT = 0.2
"""The part of that time that is left for reporting what became of the uploads."""


def upload_stall(grace: float) -> float:
    """Seconds that the uploads of a task may stand still once its script was asked to stop and the grace period is
    over. In proportion to that period, so that a job with a short one ends soon where the store does not answer."""
    return min(grace * STALL_TIMES_GRACE, LONGEST_STALL)


def upload_time(grace: float) -> float:
    """The most seconds that uploads may take after the grace period; none without a grace period, which is how a job
    says that it has nothing to save."""
    return LONGEST_UPLOAD if grace else 0.0


def uploads_end(stopped_at: float, grace: float, moved_at: float) -> float:
    """When the uploads of a task that was asked to stop end, if no more bytes move than did until `moved_at`: as long
    as bytes move it may take up to `upload_time`. All times are seconds of one clock."""
    over_at = stopped_at + grace
    return min(max(over_at, moved_at) + upload_stall(grace), over_at + upload_time(grace))


AWAY_AFTER = 60.0
"""Seconds without any answer after which lines may be dropped: longer than one call may take (`portal.TIMEOUT`)."""


def is_away(unanswered_since: Optional[float], now: float, bound: float) -> bool:
    """Whether the portal counts as away: it was asked at `unanswered_since` and has answered nothing for `bound`
    seconds since then. None: it has answered the last question, or there was none. A slow portal is never away."""
    return unanswered_since is not None and now - unanswered_since >= bound


class Haste:
    """A moment by which all must be over. None is set until a signal comes."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._over_at = float("inf")

    @property
    def over_at(self) -> float:
        return self._over_at

    def be_done_within(self, seconds: float) -> None:
        self._over_at = min(self._over_at, self.clock() + seconds)

    def moved(self) -> None:
        """There was progress."""


class UploadHaste(Haste):
    """That of uploads, which have longer as long as bytes move (`uploads_end`). Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock)
        self._moved_at = float("-inf")
        self._stop: Optional[Tuple[float, float]] = None

    def moved(self) -> None:
        """Bytes were sent."""
        self._moved_at = self.clock()

    def stop(self, stopped_at: float, grace: float) -> None:
        """The script was asked to stop. Said again where its grace period becomes known later."""
        self._stop = (stopped_at, grace)

    @property
    def over_at(self) -> float:
        if self._stop is None:
            return self._over_at
        stopped_at, grace = self._stop
        end = uploads_end(stopped_at, grace, self._moved_at)
        return min(self._over_at, end - upload_stall(grace) * LAST_REPORT)


class Patience:
    """One activity's. It starts when it is first asked, and again with each success."""

    def __init__(self, seconds: float, haste: Haste) -> None:
        self._seconds = seconds
        self._haste = haste
        self._since = float("-inf")

    def worked(self) -> None:
        """There was progress."""
        self.renew()
        self._haste.moved()

    def renew(self) -> None:
        """It starts again, for another piece of work."""
        self._since = self._haste.clock()

    def may_go_on(self) -> bool:
        now = self._haste.clock()
        if self._since == float("-inf"):
            self._since = now
        return now - self._since < self._seconds and now < self._haste.over_at


class Backoff:
    """Delays that double from `first` to `longest`, less some jitter, so that tasks do not ask in step."""

    def __init__(self, first: float = 0.25, longest: float = 15.0, dice: Callable[[], float] = random.random) -> None:
        self._first = first
        self._longest = longest
        self._dice = dice
        self._next = first

    def next(self) -> float:
        """The next delay in seconds; never more than `longest`."""
        delay = self._next
        self._next = min(self._longest, delay * 2)
        return delay * (1 - self._dice() / 4)

    def reset(self) -> None:
        """It worked: the next trouble starts from the first delay again."""
        self._next = self._first
