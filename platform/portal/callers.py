"""Who sends a request, found out cheaply before Django sees it: for limits, never for permissions.

A credential that was good, or unknown, is taken to be so for some seconds without asking the database
(`credential_memory`), and one that has not the form of any is never asked about. Not here: what anybody may do
(`apps.accounts.authentication`, `apps.jobs.state.task_auth`).
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Collection, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any
from weakref import WeakValueDictionary

from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.sessions.backends.db import SessionStore
from django.db import DataError
from django.http import HttpRequest
from django.utils import timezone

from apps.accounts.authentication import LONGEST_TOKEN, has_form_of_token, users_behind
from apps.accounts.models import User
from apps.api.addresses import network_of
from apps.api.problems import OUTAGES
from apps.jobs.state.task_auth import PREFIX, identity_of
from portal.batches import Batches
from portal.credential_memory import (
    BELIEVED,
    LOCKED_FOR,
    ONCE_GOOD_FOR,
    UNKNOWN_FOR,
    Memory,
    has_sent_too_many,
    note_unknown,
)

ASKED_AT_ONCE = 4
"""Credentials of one address that are looked up at a time, of those that are asked about one by one."""
_SESSION_KEY = re.compile("[a-z0-9]{8,64}")
_OF_TASKS = ("/api/v1/task/", "/ws/task/")
_WITH_TOKENS = ("/api/", "/ws/")
"""Addresses that take a token. All others take the session of the pages, and nothing else."""
_IN_SCOPE = "yardmaster.caller"
"""Who calls; None where memory did not know it."""

Credential = tuple[str, str]
"""(`bearer` or `session`, secret)."""


class Doubt(Enum):
    """Why a caller is a stranger."""

    NOTHING = "no credential"
    MALFORMED = "a header that holds no token"
    UNKNOWN = "a token that no one has"
    LOCKED = "a token of someone who is locked: for `_remember` alone, others are told that it is unknown"
    UNASKED = "the database did not answer, or a session is not known"
    TOO_MANY = "its address has sent too many unknown ones to ask about another"


@dataclass(frozen=True)
class Caller:
    """`kind` is `user`, `task` or `stranger`; `name` is the user's id, the job's, or the stranger's address. `doubt` is
    None for those who are known."""

    kind: str
    name: str
    doubt: Doubt | None = None

    @property
    def is_known(self) -> bool:
        return self.kind != "stranger"


async def caller_of(scope: MutableMapping[str, Any]) -> Caller:
    """Who sends this request. A stranger where the credential is none, or the database does not answer."""
    asked: dict[Credential, Caller | Doubt] = {}
    found: Caller | Credential = scope.get(_IN_SCOPE) or _decide(scope, asked)
    while not isinstance(found, Caller):
        asked[found] = await _ask(found, address_of(scope))
        found = _decide(scope, asked)
    scope[_IN_SCOPE] = found
    return found


def caller_at_once(scope: MutableMapping[str, Any]) -> Caller | None:
    """The same from memory alone; None where the database must be asked."""
    found = _decide(scope, {})
    scope[_IN_SCOPE] = known = found if isinstance(found, Caller) else None
    return known


def _decide(scope: Mapping[str, Any], asked: Mapping[Credential, Caller | Doubt]) -> Caller | Credential:
    """Who sends it, or the credential that must be asked about first."""
    address, credentials = address_of(scope), _credentials(scope)
    if not credentials:
        return Caller("stranger", address, Doubt.MALFORMED if _is_bearer(scope) else Doubt.NOTHING)
    doubts = []
    for credential in credentials:
        found = asked.get(credential) or _remembered(credential, _key_of(credential), address)
        if found is None:
            return credential
        if isinstance(found, Caller):
            return found
        doubts.append((credential, found))
    return _stranger(address, doubts)


def _stranger(address: str, doubts: Sequence[tuple[Credential, Doubt]]) -> Caller:
    """The last credential decides: a session that is not known is left to Django."""
    (kind, _), doubt = doubts[-1]
    return Caller("stranger", address, doubt if kind == "bearer" or doubt is Doubt.TOO_MANY else Doubt.UNASKED)


async def _ask(credential: Credential, address: str) -> Caller | Doubt:
    key = _key_of(credential)
    asked: Caller | Doubt
    if _is_personal(credential):
        asked = await _TOKENS.ask(credential[1])
    else:
        async with _ASKING.setdefault(address, asyncio.Semaphore(ASKED_AT_ONCE)):
            if (known := _GOOD.get(key) or _UNKNOWN.get(key)) is not None:
                return known  # others have found out while this one waited
            asked = await _ask_alone(credential)
    _remember(key, asked, address if _is_personal(credential) else "")
    return Doubt.UNKNOWN if asked is Doubt.LOCKED else asked


def _remembered(credential: Credential, key: bytes, address: str) -> Caller | Doubt | None:
    """What is known without asking."""
    if (found := _GOOD.get(key) or _UNKNOWN.get(key)) is not None:
        return found
    if not _may_be_good(credential):
        return Doubt.UNKNOWN
    if _is_personal(credential) and _ONCE_GOOD.get(key) is None and has_sent_too_many(address):
        return Doubt.TOO_MANY
    return None


def _key_of(credential: Credential) -> bytes:
    return hashlib.sha256("\n".join(credential).encode()).digest()


def _may_be_good(credential: Credential) -> bool:
    """Whether it has the form of one. What has not is known to be none without asking."""
    kind, secret = credential
    return kind == "session" or secret.startswith(f"{PREFIX}.") or has_form_of_token(secret)


def _is_personal(credential: Credential) -> bool:
    """Whether it is a personal token. Others behind the same address, who have just signed in or been launched, are not
    held to what such a one sends: a forged token of a task costs no question, and that of a session is counted as any
    request of a stranger is."""
    kind, secret = credential
    return kind == "bearer" and not secret.startswith(f"{PREFIX}.")


def _remember(key: bytes, found: Caller | Doubt, address: str) -> None:
    """`address`: whose unknown personal tokens are counted; empty: it is not one."""
    if isinstance(found, Caller):
        _GOOD.put(key, found)
        _ONCE_GOOD.put(key, True)
    elif found in (Doubt.UNKNOWN, Doubt.LOCKED):
        is_for_good = found is Doubt.UNKNOWN and bool(address)  # a task may begin whose token was sent too early
        _UNKNOWN.put(key, Doubt.UNKNOWN, None if is_for_good else LOCKED_FOR)
        _ONCE_GOOD.forget(key)
        if address:
            note_unknown(address)


def brings_credential(scope: Mapping[str, Any]) -> bool:
    """Whether there is anything to ask about. What it is worth is `caller_of`'s to say."""
    return bool(_credentials(scope))


def address_of(scope: Mapping[str, Any]) -> str:
    """Where a request comes from; for IPv6 the network of 64 bits, since one host owns all of it."""
    text = str((scope.get("client") or ("",))[0])
    if settings.SECURE_PROXY_SSL_HEADER:
        text = _header(scope, b"x-forwarded-for").rpartition(",")[2].strip() or text
    return network_of(text)


_GOOD: Memory[Caller] = Memory(BELIEVED)
_UNKNOWN: Memory[Doubt] = Memory(UNKNOWN_FOR)
_ONCE_GOOD: Memory[bool] = Memory(ONCE_GOOD_FOR)
_ASKING: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
"""Of each address whose sessions and tokens of tasks are being looked up."""


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


def _is_bearer(scope: Mapping[str, Any]) -> bool:
    """Whether a header says that there is a token, whatever it holds."""
    words = _header(scope, b"authorization").encode("latin-1").split()
    return bool(words) and words[0].lower() == b"bearer"


def _bearer(header: str) -> str:
    """The token of the header `Authorization`, or nothing. Parted as the framework does it: not at every blank."""
    words = header.encode("latin-1").split()
    is_one = len(words) == 2 and words[0].lower() == b"bearer" and len(words[1]) <= LONGEST_TOKEN
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


async def _ask_alone(credential: Credential) -> Caller | Doubt:
    # In any thread: in the one that Channels shares, a slow answer would make every other caller wait.
    found: Caller | Doubt = await database_sync_to_async(_answer, thread_sensitive=False)(*credential)
    return found


def _answer(kind: str, secret: str) -> Caller | Doubt:
    try:
        if kind == "session":
            return _of_session(secret) or Doubt.UNASKED
        return _of_task(secret) or Doubt.UNKNOWN
    except OUTAGES:
        return Doubt.UNASKED
    except (DataError, ValueError):
        return Doubt.UNKNOWN


async def _ask_all(secrets: Collection[str]) -> Mapping[str, Caller | Doubt]:
    found: Mapping[str, Caller | Doubt] = await database_sync_to_async(_of_tokens, thread_sensitive=False)(secrets)
    return found


def _of_tokens(secrets: Collection[str]) -> Mapping[str, Caller | Doubt]:
    try:
        users = users_behind(secrets)
    except OUTAGES:
        return dict.fromkeys(secrets, Doubt.UNASKED)
    known = {one: Caller("user", str(user)) if user else Doubt.LOCKED for one, user in users.items()}
    return {one: known.get(one, Doubt.UNKNOWN) for one in secrets}


def _of_session(key: str) -> Caller | None:
    request = HttpRequest()
    request.session = SessionStore(key)
    user = get_user(request)
    return Caller("user", str(user.pk)) if isinstance(user, User) else None


def _of_task(secret: str) -> Caller | None:
    identity = identity_of(secret, timezone.now())
    return None if identity is None else Caller("task", str(identity.job_id))


_TOKENS: Batches[Caller | Doubt] = Batches(_ask_all)
"""Personal tokens are asked about together: a flood of unknown ones then costs few queries."""
