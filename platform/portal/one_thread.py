"""Django behind ASGI with each request in one thread, from the first middleware to the end of the view.

No view and no middleware here is async. Where one middleware could be, Django mixes both kinds and hands each request
to and fro between the event loop and its thread half a dozen times, waiting for a processor each time. And the threads
stay: Django would begin one for each request, and with it a new connection to the database.

Few work at a time, and callers take turns. Python runs one thread at a time anyway: were all of them
at work, each would advance a few milliseconds in turn, the short answers would take as long as the long ones, and some
much longer than others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import Any

import django
from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.handlers.asgi import ASGIHandler
from django.db import close_old_connections

from apps.api.slots import Slots
from apps.errors import TooMany
from portal.refusals import refusal
from portal.turns import WORK, Turns, Work

Chain = Callable[[Any], Any]

HEALTH = "/healthz"
AT_WORK = 2
"""Requests that advance at a time: one computes while another waits for the database."""
SHORT = 0.05
"""Seconds after which a request no longer counts as one of these. It mostly waits then, and holds up no other."""


class OneThread(ASGIHandler):
    """The event loop hands a request over once; reading it and sending the answer stay the loop's. Answers 429 where
    there is no slot for the work that `turns.WORK` of the scope names."""

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)
        chain = with_a_live_connection(self._middleware_chain)  # type: ignore[has-type]  # set above, in Django
        number: int = settings.YARDMASTER_WEB_THREADS
        in_a_thread = sync_to_async(
            chain, thread_sensitive=False, executor=ThreadPoolExecutor(number, thread_name_prefix="request")
        )
        # Of one: whether the process answers at all must not depend on how much it has to do.
        sign_of_life = sync_to_async(
            chain, thread_sensitive=False, executor=ThreadPoolExecutor(1, thread_name_prefix="health")
        )
        slots, turns = Slots(), Turns(AT_WORK, SHORT, share=max(1, number // 2))

        async def answered(request: Any) -> Any:
            if request.path == HEALTH:
                return await sign_of_life(request)
            work: Work = request.scope.get(WORK, Work())
            try:
                async with slots.hold(work.slots), turns.one(work.who):
                    return await to_the_end(in_a_thread(request))
            except TooMany as problem:
                return refusal(request.scope, problem)

        self._middleware_chain = answered


async def to_the_end(work: Coroutine[Any, Any, Any]) -> Any:
    """Its result. A client that goes away ends no thread: what the request holds, it holds until the work is done."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


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
