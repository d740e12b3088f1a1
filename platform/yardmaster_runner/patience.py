"""How long to keep trying, and how long to wait before asking again: at a task's end, until nothing has worked for an
hour or a stop is due; and for how long a script that prints is held up by a portal that does not answer.
"""

from __future__ import annotations

import random
import time
from typing import Callable, Optional

PORTAL_MAY_BE_AWAY = 3600.0
"""Seconds. A portal that is stopped, killed or upgraded while a job ends must cost neither its model nor its last
lines. Waiting holds nothing up: only the portal can decide what follows."""

UPLOAD_TIMES_GRACE = 5.0
LONGEST_UPLOAD = 300.0


def upload_time(grace: float) -> float:
    """Seconds, after the grace period of a script that was asked to stop: what its task may still take to upload what
    the script wrote. The engine kills the task only then. In proportion to the grace period, so that a job with a short
    one ends soon whatever happens."""
    return min(grace * UPLOAD_TIMES_GRACE, LONGEST_UPLOAD)


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
        self.over_at = float("inf")

    def be_done_within(self, seconds: float) -> None:
        self.over_at = min(self.over_at, self.clock() + seconds)


class Patience:
    """One activity's. It starts when it is first asked, and again with each success."""

    def __init__(self, seconds: float, haste: Haste) -> None:
        self._seconds = seconds
        self._haste = haste
        self._since = float("-inf")

    def worked(self) -> None:
        """There was progress."""
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
