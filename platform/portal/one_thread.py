"""Django behind ASGI with each request in one thread, from the first middleware to the end of the view.

No view and no middleware here is async. Where one middleware could be, Django mixes both kinds and hands each request
to and fro between the event loop and its thread half a dozen times, waiting for a processor each time. And the threads
stay: Django would begin one for each request, and with it a new connection to the database.

Few work at a time, in the order in which the requests came. Python runs one thread at a time anyway: were all of them
at work, each would advance a few milliseconds in turn, the short answers would take as long as the long ones, and some
much longer than others.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import Any

import django
from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.handlers.asgi import ASGIHandler
from django.db import close_old_connections

Chain = Callable[[Any], Any]

AT_WORK = 2
"""Requests that advance at a time: one computes while another waits for the database."""
SHORT = 0.1
"""Seconds after which a request no longer counts as one of these. It mostly waits then, and nobody waits for it."""


class OneThread(ASGIHandler):
    """The event loop hands a request over once; reading it and sending the answer stay the loop's."""

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)
        chain = with_a_live_connection(self._middleware_chain)  # type: ignore[has-type]  # set above, in Django
        threads = ThreadPoolExecutor(settings.YARDMASTER_WEB_THREADS, thread_name_prefix="request")
        in_a_thread = sync_to_async(chain, thread_sensitive=False, executor=threads)
        turns = Turns(AT_WORK, SHORT)

        async def answered(request: Any) -> Any:
            async with turns.one():
                return await in_a_thread(request)

        self._middleware_chain = answered


class Turns:
    """`most` at a time, first come, first served; who takes longer than `short` seconds lets the next one begin."""

    def __init__(self, most: int, short: float) -> None:
        self._free = asyncio.Semaphore(most)
        self._short = short

    @contextlib.asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """Wait for a turn, and have it."""
        await self._free.acquire()
        has_ended = False

        def end() -> None:
            nonlocal has_ended
            if not has_ended:
                has_ended = True
                self._free.release()

        timer = asyncio.get_running_loop().call_later(self._short, end)
        try:
            yield
        finally:
            timer.cancel()
            end()


def with_a_live_connection(chain: Chain) -> Chain:
    """What Django does when a request begins and ends, in the thread that has the connection: drop one that is broken
    or too old."""

    @wraps(chain)
    def answered(request: Any) -> Any:
        close_old_connections()
        try:
            return chain(request)
        finally:
            close_old_connections()

    return answered


def django_in_one_thread() -> OneThread:
    """What `get_asgi_application` gives, but for the threads. Loads the apps."""
    django.setup(set_prefix=False)
    return OneThread()
