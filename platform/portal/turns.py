"""Whose request advances next, of all that the web process works on.

Not here: how many of a caller are under way at once (`apps.api.slots`), and how often a caller may ask (`rate_limit`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from apps.api.slots import Slot

WORK = "yardmaster.work"
"""Where a scope has its `Work`."""


@dataclass(frozen=True)
class Work:
    """Who a request is worked on for, and the slots that it needs meanwhile."""

    who: str = ""
    slots: Sequence[Slot] = ()


class Turns:
    """`most` requests advance at a time. Callers take turns, each with their requests in the order in which they came;
    a request that takes longer than `short` seconds lets the next one begin. Of one caller at most `share` are at work.
    """

    def __init__(self, most: int, short: float, share: int) -> None:
        self._free = most
        self._short = short
        self._share = share
        self._at_work: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @contextlib.asynccontextmanager
    async def one(self, who: str) -> AsyncIterator[None]:
        """Wait for a turn, and have it."""
        await self._begin(who)
        has_ended = False

        def end() -> None:
            nonlocal has_ended
            if not has_ended:
                has_ended = True
                self._free += 1
                self._next()

        timer = asyncio.get_running_loop().call_later(self._short, end)
        try:
            yield
        finally:
            timer.cancel()
            self._leave(who)
            end()

    async def _begin(self, who: str) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(who, deque()).append(turn)
        self._next()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the turn came at the same moment
                self._free += 1
                self._leave(who)
            else:
                self._take(who, turn)
            raise

    def _leave(self, who: str) -> None:
        self._at_work[who] -= 1
        if not self._at_work[who]:
            del self._at_work[who]
        self._next()

    def _next(self) -> None:
        """Give the free turns away, one caller after the other."""
        while self._free:
            who = next((one for one in self._waiting if self._at_work[one] < self._share), None)
            if who is None:
                return
            turn = self._waiting[who][0]
            self._take(who, turn)
            if turn.cancelled():  # given up, and not yet taken away by who waited
                continue
            if who in self._waiting:
                self._waiting.move_to_end(who)
            self._free -= 1
            self._at_work[who] += 1
            turn.set_result(None)

    def _take(self, who: str, turn: asyncio.Future[None]) -> None:
        """It waits no longer. May be repeated."""
        queue = self._waiting.get(who, ())
        if queue and turn in queue:
            queue.remove(turn)
            if not queue:
                del self._waiting[who]
