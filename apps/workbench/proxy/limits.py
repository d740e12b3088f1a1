"""How many requests and WebSockets are under way, of a user and to a session: one must not take all that there are."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

from apps.workbench.proxy.contract import Refusal

OF_SESSION = 300
OF_SESSION_SHARED = 240
"""Of these, those that are not the first few of their user."""
FIRST_OPEN = 10
REQUESTS = 24
"""Requests of one user that one session works on at a time: it may have no more than a few dozen threads for all."""
SHARED = 32
"""Requests of all users that one session works on at a time, beyond the first few of each."""
FIRST = 4
"""So many of each user need not wait for those of others."""
IN_ALL = 56
"""With the first few: fewer than a TensorBoard has threads."""
WAIT = 20.0
"""Seconds that a request waits for another one to end: over HTTP/2 a page asks for all its files at once."""


class _Work:
    """The requests that one session works on, and those that wait for it, the oldest first."""

    def __init__(self) -> None:
        self.of_user: Counter[uuid.UUID] = Counter()
        self.in_all = 0
        self.waiting: dict[asyncio.Future[None], uuid.UUID] = {}

    def begin(self, user_id: uuid.UUID) -> bool:
        """Count one more request of this user. False: it has to wait."""
        own = self.of_user[user_id]
        if own >= REQUESTS or self.in_all >= (IN_ALL if own < FIRST else SHARED):
            return False
        self.of_user[user_id] += 1
        self.in_all += 1
        return True

    def end(self, user_id: uuid.UUID) -> None:
        """One has ended; those that no longer have to wait begin."""
        _less(self.of_user, user_id)
        self.in_all -= 1
        for turn, waits in tuple(self.waiting.items()):
            if self.in_all >= IN_ALL:
                break
            if not turn.done() and self.begin(waits):
                turn.set_result(None)

    async def wait(self, user_id: uuid.UUID, seconds: float) -> None:
        """Until one of this user was counted. Raises TimeoutError: none was."""
        turn = asyncio.get_running_loop().create_future()
        self.waiting[turn] = user_id
        try:
            async with asyncio.timeout(seconds):
                await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                self.end(user_id)  # it was counted in the same moment
            raise
        finally:
            del self.waiting[turn]


class Limits:
    """Those of one process."""

    def __init__(self, of_user: int, of_session: int = OF_SESSION, wait: float = WAIT) -> None:
        self._of_user, self._of_session, self._wait = of_user, of_session, wait
        self._work: dict[uuid.UUID, _Work] = {}
        self._open: Counter[uuid.UUID | tuple[uuid.UUID, uuid.UUID]] = Counter()
        """Of a user, of a session, and of a user in a session."""

    @contextlib.contextmanager
    def hold(self, user_id: uuid.UUID, session_id: uuid.UUID) -> Iterator[None]:
        """Count one more while the block runs.

        Raises:
            Refusal: 429.
        """
        if self._open[user_id] >= self._of_user:
            raise _too_many(f"You have {self._of_user} requests and connections to sessions open, the most at a time.")
        own = (user_id, session_id)
        most = self._of_session if self._open[own] < FIRST_OPEN else min(self._of_session, OF_SESSION_SHARED)
        if self._open[session_id] >= most:
            raise _too_many(f"The session has {most} requests and connections open, the most at a time.")
        for one in (user_id, session_id, own):
            self._open[one] += 1
        try:
            yield
        finally:
            for one in (user_id, session_id, own):
                _less(self._open, one)

    @contextlib.asynccontextmanager
    async def turn(self, user_id: uuid.UUID, session_id: uuid.UUID) -> AsyncIterator[None]:
        """Be one of the requests (not WebSockets) that the session works on for the user, once there is room. What one
        user asks leaves room to the first few requests of others.

        Raises:
            Refusal: 429, there was none for long.
        """
        work = self._work.get(session_id)
        if work is None:
            work = self._work[session_id] = _Work()
        try:
            if not work.begin(user_id):
                await self._wait_for(work, user_id)
            try:
                yield
            finally:
                work.end(user_id)
        finally:
            if not work.in_all and not work.waiting:
                self._work.pop(session_id, None)

    async def _wait_for(self, work: _Work, user_id: uuid.UUID) -> None:
        try:
            await work.wait(user_id, self._wait)
        except TimeoutError as error:
            message = f"The session works on {work.of_user[user_id]} requests of yours and {work.in_all} in all."
            raise _too_many(message) from error


def _less(counts: Counter[Any], one: object) -> None:
    counts[one] -= 1
    if not counts[one]:
        del counts[one]


def _too_many(message: str) -> Refusal:
    remedy = "Close pages of sessions that you do not need, and try again."
    return Refusal(429, "too_many_at_once", "Too many connections", message, remedy)
