"""What the log says of each request: its method and path. The query is left out: it may be what signs an address; so is
what of a path lets one in."""

from __future__ import annotations

import re

from django.http import HttpRequest
from django_structlog.middlewares import RequestMiddleware

_SECRET = re.compile(r"^(/(?:invitation|unsubscribe|sign-in|accounts/address)/)[^/]+")
_LEFT_OUT = r"\1…"
"""Links whose path is what lets one in."""


class RequestLog(RequestMiddleware):
    @staticmethod
    def format_request(request: HttpRequest) -> str:
        return f"{request.method} {_SECRET.sub(_LEFT_OUT, request.path)}"
