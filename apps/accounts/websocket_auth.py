"""Who opens a WebSocket: a program with a personal token, or a browser with the session of the pages.

`scope["user"]` is set, and `scope["auth"]` where a token was sent. Not here: what the user may see (the consumers).
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from channels.auth import AuthMiddlewareStack
from channels.db import database_sync_to_async
from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpRequest
from django.http.request import split_domain_port, validate_host
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from apps.accounts.authentication import PersonalTokenAuthentication, live_tokens
from apps.accounts.models import PersonalToken, User
from apps.accounts.open_sockets import OpenSocket, open_sockets
from apps.accounts.second_factor import lacks_second_factor
from apps.audit.whence import answering

_PORTS = {"http": 80, "https": 443}

Origin = tuple[str, str, int]
"""Scheme, host, port: two addresses are of one origin where all three are the same."""


class TokenOrSession:
    """ASGI middleware. A browser sends its cookies with any page's WebSocket, also with that of another port of this
    host, so cookies count only from the portal's own pages (`Origin`), and without that header not at all; a token has
    to be sent on purpose, and programs have no origin."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._with_session = AuthMiddlewareStack(self._until_signed_out)

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        header = dict(scope["headers"]).get(b"authorization")
        if header is None:
            await (self._with_session if _comes_from_here(scope) else WebsocketDenier())(scope, receive, send)
            return
        user, token = await database_sync_to_async(_user_of)(header)
        await self._until_signed_out({**scope, "user": user, "auth": token}, receive, send)

    async def _until_signed_out(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if not scope["user"].is_authenticated:
            await self._inner(scope, receive, send)
            return
        if "auth" not in scope and await database_sync_to_async(lacks_second_factor)(scope["user"]):
            await WebsocketDenier()(scope, receive, send)
            return
        with answering(_as_request(scope)):
            await open_sockets().hold(self._inner, OpenSocket(scope, receive, send), still_signed_in)


def _as_request(scope: dict[str, Any]) -> HttpRequest:
    """What the audit asks of a request: where it comes from, and with what."""
    request = HttpRequest()
    request.META["REMOTE_ADDR"] = (scope.get("client") or ("",))[0]
    for name, value in scope["headers"]:
        if name in (b"user-agent", b"x-forwarded-for"):
            request.META[f"HTTP_{name.decode().replace('-', '_').upper()}"] = value.decode("latin-1")
    return request


def _comes_from_here(scope: dict[str, Any]) -> bool:
    """Whether the page that opens the socket is of the origin under which the request came in, or of the public URL."""
    headers = dict(scope["headers"])
    named = origin_of(headers.get(b"origin", b"").decode("latin-1"))
    return named is not None and named in {origin_of(settings.PUBLIC_URL), _asked_for(scope, headers)}


def _asked_for(scope: dict[str, Any], headers: dict[bytes, bytes]) -> Origin | None:
    """The origin that the request was sent to, where its host is one that is answered."""
    host = headers.get(b"host", b"").decode("latin-1")
    if not validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS):
        return None
    is_secure = scope.get("scheme") == "wss"
    if settings.SECURE_PROXY_SSL_HEADER:
        name, secure = settings.SECURE_PROXY_SSL_HEADER
        said = headers.get(name.removeprefix("HTTP_").replace("_", "-").lower().encode(), b"").decode("latin-1")
        is_secure = said.split(",")[0].strip() == secure if said else is_secure
    return origin_of(f"{'https' if is_secure else 'http'}://{host}")


def origin_of(address: str) -> Origin | None:
    """The origin of an absolute address; None for anything else, such as the `null` of a page in a sandbox."""
    try:
        url = urlsplit(address.lower())
        port = url.port or _PORTS.get(url.scheme)
    except ValueError:
        return None
    return (url.scheme, url.hostname, port) if url.hostname and port and url.scheme in _PORTS else None


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
