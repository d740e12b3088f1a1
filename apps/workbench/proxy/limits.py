"""How many requests and WebSockets are under way, of a user and to a session: one must not take all that there are."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from weakref import WeakValueDictionary

from apps.workbench.proxy.admission import Refusal

OF_SESSION = 300
REQUESTS = 24
"""Requests of one user that one session works on at a time: it may have no more than a few dozen threads for all."""
WAIT = 20.0
"""Seconds that a request waits for another one to end: over HTTP/2 a page asks for all its files at once."""


class Limits:
    """Those of one process."""

    def __init__(self, of_user: int, of_session: int = OF_SESSION, wait: float = WAIT) -> None:
        self._of_user, self._of_session, self._wait = of_user, of_session, wait
        self._turns: WeakValueDictionary[tuple[uuid.UUID, uuid.UUID], asyncio.Semaphore] = WeakValueDictionary()
        self._open: Counter[uuid.UUID] = Counter()

    @contextlib.contextmanager
    def hold(self, user_id: uuid.UUID, session_id: uuid.UUID) -> Iterator[None]:
        """Count one more while the block runs.

        Raises:
            Refusal: 429.
        """
        if self._open[user_id] >= self._of_user:
            raise _too_many(f"You have {self._of_user} requests and connections to sessions open, the most at a time.")
        if self._open[session_id] >= self._of_session:
            raise _too_many(f"The session has {self._of_session} requests and connections open, the most at a time.")
        self._open.update((user_id, session_id))
        try:
            yield
        finally:
            for one in (user_id, session_id):
                self._open[one] -= 1
                if not self._open[one]:
                    del self._open[one]

    @contextlib.asynccontextmanager
    async def turn(self, user_id: uuid.UUID, session_id: uuid.UUID) -> AsyncIterator[None]:
        """Be one of the requests (not WebSockets) that the session works on for the user, once there is room.

        Raises:
            Refusal: 429, there was none for long.
        """
        turns = self._turns.setdefault((user_id, session_id), asyncio.Semaphore(REQUESTS))
        try:
            async with asyncio.timeout(self._wait):
                await turns.acquire()
        except TimeoutError as error:
            raise _too_many(f"{REQUESTS} requests of yours wait for the session, the most at a time.") from error
        try:
            yield
        finally:
            turns.release()


def _too_many(message: str) -> Refusal:
    remedy = "Close pages of sessions that you do not need, and try again."
    return Refusal(429, "too_many_at_once", "Too many connections", message, remedy)
