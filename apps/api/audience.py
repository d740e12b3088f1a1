"""Who uses the addresses of objects that an answer has: people, or a task. What runs in a task says so in a header: a
notebook in a pod may not reach the store by the name that browsers know.

Kept beside the request and not handed through every service. Each who may ask may have either kind of address.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

from django.http import HttpRequest, HttpResponseBase

from yardmaster.storage.base import Audience

HEADER = "Yardmaster-Audience"

_audience: ContextVar[Audience] = ContextVar("audience", default=Audience.PEOPLE)


class NoteAudience:
    """Middleware: addresses that are made below it are for the audience that the request names."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        is_task = request.headers.get(HEADER) == Audience.TASKS.value
        before = _audience.set(Audience.TASKS if is_task else Audience.PEOPLE)
        try:
            return self.get_response(request)
        finally:
            _audience.reset(before)


def audience() -> Audience:
    """Of the answer that is being made."""
    return _audience.get()
