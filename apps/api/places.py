"""How many of a kind are under way at once in this process, such as the requests of one caller; some more wait.

Not here: how often something may be done (`allowances`), and whose request advances next (`portal.turns`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from apps.errors import TooMany


@dataclass(frozen=True)
class Place:
    """One of `most` places of this name; a request waits so many seconds for one."""

    name: str
    most: int
    wait: float


class Places:
    """How many of a kind are under way at once. Nothing is remembered of a kind of which none is."""

    def __init__(self) -> None:
        self._kinds: dict[str, _Kind] = {}

    @contextlib.asynccontextmanager
    async def hold(self, places: Sequence[Place]) -> AsyncIterator[None]:
        """Have one of each. Raises `TooMany`, and holds none then."""
        async with contextlib.AsyncExitStack() as held:
            for place in places:
                await held.enter_async_context(self._hold(place))
            yield

    @contextlib.asynccontextmanager
    async def _hold(self, place: Place) -> AsyncIterator[None]:
        kind = self._kinds.setdefault(place.name, _Kind(asyncio.Semaphore(place.most)))
        kind.users += 1
        try:
            await _acquire(kind.free, place.wait)
            try:
                yield
            finally:
                kind.free.release()
        finally:
            kind.users -= 1
            if not kind.users:
                self._kinds.pop(place.name, None)


@dataclass
class _Kind:
    free: asyncio.Semaphore
    users: int = field(default=0)


async def _acquire(free: asyncio.Semaphore, wait: float) -> None:
    if free.locked() and not wait:
        raise _at_once()
    try:
        async with asyncio.timeout(wait or None):
            await free.acquire()
    except TimeoutError as error:
        raise _at_once() from error


def _at_once() -> TooMany:
    return TooMany("You have too many requests in progress.", "too_many_at_once", wait=1)
