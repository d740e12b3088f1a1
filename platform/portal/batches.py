"""Questions to the database that come in numbers, asked together: the first at once, and those that come within a
moment after it in one query. So a flood costs a bounded number of queries per second, whatever its rate.

Not here: what is asked (`callers`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping
from functools import partial
from typing import Any, Generic, TypeVar

V = TypeVar("V")
PAUSE = 0.05
"""Seconds from the end of one query to the next: what a question waits at most when others have just been asked."""
MOST = 200
"""Questions of one query."""
PATIENCE = 0.5
"""Seconds after which one that is slow holds up no other."""

Ask = Callable[[Collection[str]], Coroutine[Any, Any, Mapping[str, V]]]


class Batches(Generic[V]):
    """For one event loop at a time. `ask_all` answers every question that it is given, or raises for all of them."""

    def __init__(self, ask_all: Ask[V], pause: float = PAUSE, most: int = MOST, patience: float = PATIENCE) -> None:
        self._ask_all = ask_all
        self._pause = pause
        self._patience = patience
        self._most = most
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: dict[str, asyncio.Future[V]] = {}
        self._asking: asyncio.Task[None] | None = None

    async def ask(self, question: str) -> V:
        """The answer. The same question, asked twice before it is answered, is asked once."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._waiting, self._asking = loop, {}, None
        answer = self._waiting.setdefault(question, loop.create_future())
        if self._asking is None:
            self._asking = loop.create_task(self._ask_while_any_wait())
        return await asyncio.shield(answer)  # others may wait for it as well

    async def _ask_while_any_wait(self) -> None:
        try:
            while self._waiting:
                asked = {one: self._waiting.pop(one) for one in list(self._waiting)[: self._most]}
                asking = asyncio.ensure_future(self._ask_all(asked.keys()))
                asking.add_done_callback(partial(_pass_on, asked))
                await asyncio.wait([asking], timeout=self._patience)
                await asyncio.sleep(self._pause)
        finally:
            self._asking = None


def _pass_on(asked: Mapping[str, asyncio.Future[V]], asking: asyncio.Future[Mapping[str, V]]) -> None:
    error = asyncio.CancelledError() if asking.cancelled() else asking.exception()
    for question, answer in asked.items():
        if error is None and question in (found := asking.result()):
            answer.set_result(found[question])
        else:
            answer.set_exception(error or KeyError(question))
            answer.exception()  # seen, also where the one who asked has gone
