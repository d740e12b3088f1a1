"""How the synchronous SDK is called from asyncio: short calls in a pool, long ones and iterations in threads of their
own, which keep no program from its end."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")
_AT_ONCE = 32
"""Short calls that are in progress together."""
_END: Any = object()


class Threads:
    """The threads of one portal."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="yardmaster")

    async def run(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)

    def close(self) -> None:
        """What runs is left to its end."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class OwnThread:
    """A thread that makes one call after the other. It ends after `end`, or with the program."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        threading.Thread(target=self._work, daemon=True, name="yardmaster").start()

    async def run(self, call: Callable[[], T]) -> T:
        future: Future[T] = Future()
        self._calls.put((future, call))
        return await asyncio.wrap_future(future)

    def end(self, last: Callable[[], object] | None = None) -> None:
        """After what runs now, make a `last` call and end. Does not wait."""
        if last is not None:
            self._calls.put((Future(), last))
        self._calls.put(None)

    def _work(self) -> None:
        while (one := self._calls.get()) is not None:
            future, call = one
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = call()
            except BaseException as error:  # noqa: BLE001  # raised where it is awaited
                _settle(future, error=error)
            else:
                _settle(future, result)


def _settle(future: Future[Any], result: object = None, error: BaseException | None = None) -> None:
    """A loop that has ended meanwhile takes no result."""
    with contextlib.suppress(RuntimeError):
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)


class Asynchronous:
    """A part of the SDK, over the synchronous one."""

    _sync: Any

    def __init__(self, sync: Any, threads: Threads) -> None:
        self._sync = sync
        self._threads = threads

    async def _run(self, call: Callable[[], T]) -> T:
        return await self._threads.run(call)

    async def _run_long(self, call: Callable[[], T]) -> T:
        thread = OwnThread()
        try:
            return await thread.run(call)
        finally:
            thread.end()

    async def _iterate(self, begin: Callable[[], Iterator[T]]) -> AsyncGenerator[T, None]:
        """What the iterator gives, each asked for in the same thread; it is closed there, too."""
        thread, found = OwnThread(), None
        try:
            found = await thread.run(begin)
            while (one := await thread.run(lambda: next(found, _END))) is not _END:
                yield one
        finally:
            thread.end(getattr(found, "close", None))
