"""Where the request comes from that is being answered: its address and what it calls itself, for the audit.

Kept beside the request and not handed through every service. Nothing is worked out before something is recorded.
"""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from allauth.account.adapter import get_adapter
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase

from apps.audit.acting import task_now

LONGEST_AGENT = 200

_request: ContextVar[HttpRequest | None] = ContextVar("audited_request", default=None)


class NoteWhence:
    """Middleware: what is recorded below it carries the request's address and agent."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with answering(request):
            return self.get_response(request)


@contextmanager
def answering(request: HttpRequest) -> Iterator[None]:
    """What is recorded within is recorded as of this request."""
    before = _request.set(request)
    try:
        yield
    finally:
        _request.reset(before)


def address_and_agent() -> tuple[str | None, str]:
    """Of the request that is being answered; of none where no request is."""
    request = _request.get()
    return (None, "") if request is None else (address_of(request), agent_of(request)[:LONGEST_AGENT])


def what_acts() -> str:
    """Where no user does it and no request is answered: the task of a worker, or the command of an operator. Else
    empty."""
    if _request.get() is not None:
        return ""
    if task := task_now():
        return f"task {task}"
    is_command = Path(sys.argv[0]).name == "manage.py" and len(sys.argv) > 1
    return f"command {sys.argv[1][:LONGEST_AGENT]}" if is_command else ""


def address_of(request: HttpRequest) -> str | None:
    """Where the request comes from, as far as it is known: over a unix socket it is not. What a proxy says counts only
    where one is trusted."""
    try:
        return str(ipaddress.ip_address(get_adapter().get_client_ip(request)))
    except (PermissionDenied, ValueError):
        return None


def agent_of(request: HttpRequest) -> str:
    """What the client calls itself, without control characters."""
    return "".join(one for one in request.headers.get("User-Agent", "") if one.isprintable())
