"""Django behind ASGI with each request in one thread, from the first middleware to the end of the view.

No view and no middleware here is async. Where one middleware could be, Django mixes both kinds and hands each request
to and fro between the event loop and its thread half a dozen times, waiting for a processor each time.
"""

from __future__ import annotations

import django
from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIHandler


class OneThread(ASGIHandler):
    """The event loop hands a request over once; reading it and sending the answer stay the loop's."""

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)
        chain = self._middleware_chain  # type: ignore[has-type]  # set by the line above, in Django
        self._middleware_chain = sync_to_async(chain, thread_sensitive=True)


def django_in_one_thread() -> OneThread:
    """What `get_asgi_application` gives, but for the threads. Loads the apps."""
    django.setup(set_prefix=False)
    return OneThread()
