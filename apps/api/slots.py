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
class Slot:
    """One of `most` slots of this name; a request waits so many seconds for one."""

    name: str
    most: int
    wait: float


class Slots:
    """How many of a kind are under way at once. Nothing is remembered of a kind of which none is."""

    def __init__(self) -> None:
        self._kinds: dict[str, _Kind] = {}

    @contextlib.asynccontextmanager
    async def hold(self, slots: Sequence[Slot]) -> AsyncIterator[None]:
        """Have one of each. Raises `TooMany`, and holds none then."""
        async with contextlib.AsyncExitStack() as held:
            for slot in slots:
                await held.enter_async_context(self._hold(slot))
            yield

    @contextlib.asynccontextmanager
    async def _hold(self, slot: Slot) -> AsyncIterator[None]:
        kind = self._kinds.setdefault(slot.name, _Kind(asyncio.Semaphore(slot.most)))
        kind.users += 1
        try:
            await _acquire(kind.free, slot.wait)
            try:
                yield
            finally:
                kind.free.release()
        finally:
            kind.users -= 1
            if not kind.users:
                self._kinds.pop(slot.name, None)


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
