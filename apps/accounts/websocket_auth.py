"""Who opens a WebSocket: a program with a personal token, or a browser with the session of the pages.

`scope["user"]` is set, and `scope["auth"]` where a token was sent. Not here: what the user may see (the consumers).
"""

from __future__ import annotations

from typing import Any

from channels.auth import AuthMiddlewareStack
from channels.db import database_sync_to_async
from channels.security.websocket import AllowedHostsOriginValidator
from django.contrib.auth import get_user
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpRequest
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from apps.accounts.authentication import PersonalTokenAuthentication, live_tokens
from apps.accounts.models import PersonalToken, User


class TokenOrSession:
    """ASGI middleware. A browser sends its cookies with any page's WebSocket, so cookies count only from the portal's
    own pages (`Origin`); a token has to be sent on purpose, and programs have no origin."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._with_session = AllowedHostsOriginValidator(AuthMiddlewareStack(inner))

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        header = dict(scope["headers"]).get(b"authorization")
        if header is None:
            await self._with_session(scope, receive, send)
            return
        user, token = await database_sync_to_async(_user_of)(header)
        await self._inner({**scope, "user": user, "auth": token}, receive, send)


def reads(scope: dict[str, Any], needed: str) -> bool:
    """Whether the caller is signed in, with a token (if any) that may read what is under the scope `needed`."""
    if not scope["user"].is_authenticated:
        return False
    scopes = getattr(scope.get("auth"), "scopes", None)
    return not scopes or needed in scopes or "read" in scopes


def still_signed_in(scope: dict[str, Any]) -> User | None:
    """Who is behind an open socket now. None once the token has ended, the session is over or the user locked out,
    whatever they were when the socket was opened. Asks the database."""
    token, session = scope.get("auth"), scope.get("session")
    if token is not None:
        found = live_tokens().filter(pk=token.pk).first()
        return None if found is None else found.user
    if session is None:
        return User.objects.filter(pk=scope["user"].pk, is_active=True).first()
    request = HttpRequest()
    request.session = SessionStore(session.session_key)  # the one in the scope remembers what it once read
    user = get_user(request)
    return user if isinstance(user, User) else None


def _user_of(header: bytes) -> tuple[User | AnonymousUser, PersonalToken | None]:
    request = HttpRequest()
    request.META["HTTP_AUTHORIZATION"] = header.decode("latin-1")
    try:
        found = PersonalTokenAuthentication().authenticate(Request(request))
    except AuthenticationFailed:
        found = None
    return found or (AnonymousUser(), None)
