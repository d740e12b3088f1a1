"""The notice to all, for clients: in a header of an answer that they asked for anyway, so that it costs no request."""

from __future__ import annotations

import logging
from collections.abc import Callable
from urllib.parse import quote

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone

from apps.accounts.models import User
from apps.notifications.broadcasts import broadcast_for
from yardmaster_client.version import HEADER, NOTICE

log = logging.getLogger(__name__)


class TellClients:
    """Middleware, for the API alone, and for clients that say what they are. Only who has proven to be a user is told:
    the API notes on the request whose token it was."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if HEADER in request.headers and request.path.startswith("/api/"):
            user = getattr(request, "user", None)
            if isinstance(user, User):
                _tell(response, user)
        return response


def _tell(response: HttpResponseBase, user: User) -> None:
    try:
        found = broadcast_for(user, timezone.now())
    except DatabaseError:
        log.exception("The notice to all could not be read")
        return
    if found is not None:
        response.headers[NOTICE] = f"{found.kind}; {quote(found.text)}"
