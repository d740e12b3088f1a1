"""Django behind ASGI with each request in one thread, from the first middleware to the end of the view.

No view and no middleware here is async. Where one middleware could be, Django mixes both kinds and hands each request
to and fro between the event loop and its thread half a dozen times, waiting for a processor each time. And the threads
stay: Django would begin one for each request, and with it a new connection to the database.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import Any

import django
from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.handlers.asgi import ASGIHandler
from django.db import close_old_connections

Chain = Callable[[Any], Any]


class OneThread(ASGIHandler):
    """The event loop hands a request over once; reading it and sending the answer stay the loop's."""

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)
        chain = with_a_live_connection(self._middleware_chain)  # type: ignore[has-type]  # set above, in Django
        threads = ThreadPoolExecutor(settings.YARDMASTER_WEB_THREADS, thread_name_prefix="request")
        self._middleware_chain = sync_to_async(chain, thread_sensitive=False, executor=threads)


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
