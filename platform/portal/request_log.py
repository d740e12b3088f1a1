"""What the log says of each request: its method and path. The query is left out: it may be what signs an address; so is
what of a path lets one in."""

from __future__ import annotations

from django.http import HttpRequest
from django_structlog.middlewares import RequestMiddleware

from portal.own_log import without_secrets


class RequestLog(RequestMiddleware):
    @staticmethod
    def format_request(request: HttpRequest) -> str:
        return f"{request.method} {without_secrets(request.path)}"
