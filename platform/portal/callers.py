"""Who sends a request, found out cheaply before Django sees it: for limits, never for permissions.

A credential that was good is believed for some seconds without asking the database; one that was not is asked about
each time. Not here: what anybody may do (`apps.accounts.authentication`, `apps.jobs.task_auth`).
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpRequest
from django.utils import timezone

from apps.accounts.authentication import token_behind
from apps.accounts.models import User
from apps.api.addresses import network_of
from apps.api.problems import OUTAGES
from apps.jobs.task_auth import PREFIX, identity_of

BELIEVED = 30.0
MOST_REMEMBERED = 10_000
_LONGEST_CREDENTIAL = 500
_IN_SCOPE = "yardmaster.caller"


@dataclass(frozen=True)
class Caller:
    """`kind` is `user`, `task` or `stranger`; `name` is the user's id, the job's, or the stranger's address."""

    kind: str
    name: str

    @property
    def is_known(self) -> bool:
        return self.kind != "stranger"


async def caller_of(scope: MutableMapping[str, Any]) -> Caller:
    """Who sends this request. A stranger where the credential is none, or the database does not answer."""
    if (known := scope.get(_IN_SCOPE)) is not None:
        return known  # type: ignore[no-any-return]
    scope[_IN_SCOPE] = caller = await _find(scope)
    return caller


async def _find(scope: Mapping[str, Any]) -> Caller:
    credential = _credential(scope)
    if credential:
        key = hashlib.sha256("\n".join(credential).encode(errors="surrogateescape")).digest()
        found = _REMEMBERED.get(key)
        if found is None:
            # In any thread: in the one that Channels shares, a slow answer would make every other caller wait.
            found = await database_sync_to_async(_ask, thread_sensitive=False)(*credential)
            if found is not None:
                _REMEMBERED.put(key, found)
        if found is not None:
            return found
    return Caller("stranger", address_of(scope))


def brings_credential(scope: Mapping[str, Any]) -> bool:
    """Whether there is anything to ask about. What it is worth is `caller_of`'s to say."""
    return _credential(scope) is not None


def address_of(scope: Mapping[str, Any]) -> str:
    """Where a request comes from; for IPv6 the network of 64 bits, since one host owns all of it."""
    text = str((scope.get("client") or ("",))[0])
    if settings.SECURE_PROXY_SSL_HEADER:
        text = _headers(scope).get(b"x-forwarded-for", b"").decode("latin-1").rpartition(",")[2].strip() or text
    return network_of(text)


class _Remembered:
    """Credentials that were good a moment ago, by their hashes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callers: OrderedDict[bytes, tuple[float, Caller]] = OrderedDict()

    def get(self, key: bytes) -> Caller | None:
        until, caller = self._callers.get(key, (0.0, None))
        return caller if until > time.monotonic() else None

    def put(self, key: bytes, caller: Caller) -> None:
        with self._lock:
            self._callers[key] = (time.monotonic() + BELIEVED, caller)
            self._callers.move_to_end(key)
            while len(self._callers) > MOST_REMEMBERED:
                self._callers.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._callers.clear()


_REMEMBERED = _Remembered()


def _headers(scope: Mapping[str, Any]) -> dict[bytes, bytes]:
    return dict(scope["headers"])


def _credential(scope: Mapping[str, Any]) -> tuple[str, str] | None:
    """(`bearer` or `session`, secret)."""
    headers = _headers(scope)
    if header := headers.get(b"authorization"):
        kind, _, secret = header.decode("latin-1").partition(" ")
        return ("bearer", secret.strip()) if kind.lower() == "bearer" and len(secret) < _LONGEST_CREDENTIAL else None
    name = settings.SESSION_COOKIE_NAME
    text = headers.get(b"cookie", b"").decode("latin-1")
    if name not in text:
        return None
    try:
        cookie = SimpleCookie(text).get(name)
    except CookieError:
        return None
    return ("session", cookie.value) if cookie is not None and len(cookie.value) < _LONGEST_CREDENTIAL else None


def _ask(kind: str, secret: str) -> Caller | None:
    try:
        if kind == "session":
            return _of_session(secret)
        return _of_task(secret) if secret.startswith(f"{PREFIX}.") else _of_token(secret)
    except OUTAGES:
        return None


def _of_session(key: str) -> Caller | None:
    request = HttpRequest()
    request.session = SessionStore(key)
    user = get_user(request)
    return Caller("user", str(user.pk)) if isinstance(user, User) else None


def _of_token(secret: str) -> Caller | None:
    token = token_behind(secret.encode()) if secret.isascii() else None
    return None if token is None else Caller("user", str(token.user_id))


def _of_task(secret: str) -> Caller | None:
    identity = identity_of(secret, timezone.now())
    return None if identity is None else Caller("task", str(identity.job_id))
