"""Who sends a request, found out cheaply before Django sees it: for limits, never for permissions.

A credential that was good is believed for some seconds without asking the database; one that was not is asked about
each time. Not here: what anybody may do (`apps.accounts.authentication`, `apps.jobs.state.task_auth`).
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.sessions.backends.db import SessionStore
from django.db import DataError
from django.http import HttpRequest
from django.utils import timezone

from apps.accounts.authentication import token_behind
from apps.accounts.models import User
from apps.api.addresses import network_of
from apps.api.problems import OUTAGES
from apps.jobs.state.task_auth import PREFIX, identity_of

BELIEVED = 30.0
MOST_REMEMBERED = 10_000
ASKED_AT_ONCE = 4
"""Credentials of one address that are looked up at a time."""
_LONGEST_CREDENTIAL = 500
_SESSION_KEY = re.compile("[a-z0-9]{8,64}")
_OF_TASKS = ("/api/v1/task/", "/ws/task/")
_WITH_TOKENS = ("/api/", "/ws/")
"""Addresses that take a token. All others take the session of the pages, and nothing else."""
_IN_SCOPE = "yardmaster.caller"

Credential = tuple[str, str]
"""(`bearer` or `session`, secret)."""


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
    address = address_of(scope)
    for credential in _credentials(scope):
        if (found := await _behind(credential, address)) is not None:
            return found
    return Caller("stranger", address)


async def _behind(credential: Credential, address: str) -> Caller | None:
    key = hashlib.sha256("\n".join(credential).encode()).digest()
    if (found := _REMEMBERED.get(key)) is None:
        async with _ASKING.setdefault(address, asyncio.Semaphore(ASKED_AT_ONCE)):
            # In any thread: in the one that Channels shares, a slow answer would make every other caller wait.
            found = await database_sync_to_async(_ask, thread_sensitive=False)(*credential)
        if found is not None:
            _REMEMBERED.put(key, found)
    return found


def brings_credential(scope: Mapping[str, Any]) -> bool:
    """Whether there is anything to ask about. What it is worth is `caller_of`'s to say."""
    return bool(_credentials(scope))


def address_of(scope: Mapping[str, Any]) -> str:
    """Where a request comes from; for IPv6 the network of 64 bits, since one host owns all of it."""
    text = str((scope.get("client") or ("",))[0])
    if settings.SECURE_PROXY_SSL_HEADER:
        text = _header(scope, b"x-forwarded-for").rpartition(",")[2].strip() or text
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


_ASKING: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
"""Of each address whose credentials are being looked up. One that was not good is counted after that only."""


def _header(scope: Mapping[str, Any], name: bytes, separator: bytes = b",") -> str:
    """All headers of this name as one, as Django joins them."""
    return separator.join(value for known, value in scope["headers"] if known == name).decode("latin-1")


def _credentials(scope: Mapping[str, Any]) -> list[Credential]:
    """What the address takes, in its order: a task's token, a person's, the session of the pages.

    Not what the request likes to be known by: who may add a header would else choose who is counted.
    """
    path = scope["path"]
    bearer = _bearer(_header(scope, b"authorization")) if path.startswith(_WITH_TOKENS) else ""
    is_of_task = bearer.startswith(f"{PREFIX}.")
    found: list[Credential] = []
    if bearer and is_of_task == path.startswith(_OF_TASKS):
        found.append(("bearer", bearer))
    if not path.startswith(_OF_TASKS) and (session := _session(_header(scope, b"cookie", b"; "))):
        found.append(("session", session))
    return found


def _bearer(header: str) -> str:
    """The token of the header `Authorization`, or nothing. Parted as the framework does it: not at every blank."""
    words = header.encode("latin-1").split()
    is_one = len(words) == 2 and words[0].lower() == b"bearer" and len(words[1]) < _LONGEST_CREDENTIAL
    return words[1].decode() if is_one and words[1].isascii() else ""


def _session(header: str) -> str:
    """The key of the session that Django finds in the header `Cookie`, or nothing. The last one counts."""
    value = ""
    for cookie in header.split(";"):
        name, _, text = cookie.partition("=")
        if name.strip() == settings.SESSION_COOKIE_NAME:
            value = text.strip()
    if len(value) > 1 and value[0] == value[-1] == '"':
        value = value[1:-1]
    return value if _SESSION_KEY.fullmatch(value) else ""


def _ask(kind: str, secret: str) -> Caller | None:
    try:
        if kind == "session":
            return _of_session(secret)
        return _of_task(secret) if secret.startswith(f"{PREFIX}.") else _of_token(secret)
    except (*OUTAGES, DataError, ValueError):
        return None


def _of_session(key: str) -> Caller | None:
    request = HttpRequest()
    request.session = SessionStore(key)
    user = get_user(request)
    return Caller("user", str(user.pk)) if isinstance(user, User) else None


def _of_token(secret: str) -> Caller | None:
    token = token_behind(secret.encode())
    return None if token is None else Caller("user", str(token.user_id))


def _of_task(secret: str) -> Caller | None:
    identity = identity_of(secret, timezone.now())
    return None if identity is None else Caller("task", str(identity.job_id))
