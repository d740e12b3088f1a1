"""ASGI middleware: no body is larger, slower or less authenticated than its address allows.

Django writes every body to memory or to a temporary file before any view sees the request, however long it is and
whatever client sends it. So the limits are here: bytes per address (`LIMITS`), a small number of bytes until the caller
is known, a time, and a sum over all bodies that are held at once. One caller has a share of it, and an eighth is for
small bodies, such as forms.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from django.conf import settings

from apps.api.problems import ApiProblem, answer_to, unavailable
from apps.errors import TooLarge
from apps.hosting.dialing import MOST_BODY
from apps.stores import storage
from portal.callers import address_of, brings_credential, caller_of
from portal.refusals import Application, Message, Receive, Send, refuse
from yardmaster.storage.base import AddressRefused

PARTS = "/storage/parts/"
"""Where parts of files go: the largest bodies there are."""
FOR_ANYBODY = ("/accounts/", "/sign-in/", "/storage/", "/api/v1/auth/")
"""Addresses that read a body, or refuse it, without knowing who sends it."""
FORM = 64 << 10
"""What a request may carry while it is not known who sends it."""
LIMITS = {
    "/api/v1/model-versions/ID/predict/": MOST_BODY,
    "/api/v1/model-versions/ID/classify/": MOST_BODY,
    "/api/v1/model-versions/ID/regress/": MOST_BODY,
    "/model-versions/ID/try/predict/": MOST_BODY,
    "/api/v1/uploads/": 16 << 20,
    "/api/v1/uploads/ID/files/": 16 << 20,
    "/api/v1/task/checkpoints/": 16 << 20,
    "/api/v1/task/model/": 16 << 20,
    "/api/v1/task/published/": 16 << 20,
    "/api/v1/task/report/": 1 << 20,
    "/api/v1/task/log/": (1 << 20) + 1,
    "/api/v1/jobs/": 1 << 20,
    "/api/v1/jobs/check/": 1 << 20,
    "/api/v1/jobs/manifests/": 1 << 20,
    "/api/v1/jobs/ID/retry/": 1 << 20,
    "/jobs/launch/": 1 << 20,
    "/jobs/launch/preview/": 1 << 20,
    "/jobs/launch/manifests/": 1 << 20,
}
"""Addresses that need more than `YARDMASTER_BODY_LIMIT`: manifests of 20,000 files with their checksums, a thousand
points of curves, a piece of a log, a specification, so that one that is too large is told its largest field, and a form
with a job file in it, which is longer as a form than as a file. `ID` stands for any id."""
_ID = re.compile(r"(?<=/)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?=/)")
SERVED = re.compile(
    r"/api/v1/(?:services/[0-9a-f-]{36}|models/[0-9a-f-]{36}/stages/[a-z]{1,20})/v1/models/[^/]{1,300}"
    r"(?:/versions/[0-9]{1,10}|/labels/[a-z]{1,20})?:(?:predict|classify|regress)"
)
"""TensorFlow Serving's own addresses of a service, and of what has a stage."""
_SLOWEST = 4 << 10
"""Bytes per second, beside the patience, that any client can send."""
_IN_MEMORY = 2_621_440
"""Bytes of a body that Django holds in memory; the rest is on disk (its FILE_UPLOAD_MAX_MEMORY_SIZE)."""


_RESERVED = 8
"""One part in so many of what may be held is for small bodies."""


@dataclass
class Held:
    """Bytes of bodies in this process's memory, in all and by caller. A body is small up to `FORM` bytes."""

    is_small: bool
    total: int = 0
    by_caller: Counter[str] = field(default_factory=Counter)

    def require_space(self, who: str, more: int) -> None:
        """Raises `ApiProblem` where so many bytes more would be too many, of this caller or of all."""
        everything: int = settings.YARDMASTER_BODIES_TOTAL
        reserved = everything // _RESERVED
        most, share = (
            (reserved, max(FORM, reserved // 4)) if self.is_small else (everything - reserved, everything // 2)
        )
        if self.by_caller[who] + more > share:
            raise unavailable("The portal is receiving too much from you at once.")
        if self.total + more > most:
            raise unavailable("The portal is receiving too much at once.")

    def add(self, who: str, size: int) -> None:
        self.total += size
        self.by_caller[who] += size
        if not self.by_caller[who]:
            del self.by_caller[who]


SMALL, LARGE = Held(is_small=True), Held(is_small=False)


class BodyLimit:
    """Around the rest of the application. Answers with a problem: 401, 408, 413 or 503."""

    def __init__(self, inner: Application) -> None:
        self._inner = inner

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _has_body(scope):
            await self._inner(scope, receive, send)
            return
        body = _Body(scope, receive, send)
        try:
            await body.expect(_declared(scope))
        except ApiProblem as problem:
            await refuse(scope, send, problem)
            return
        try:
            await self._inner(scope, body.receive, body.send)
        finally:
            body.release()
        if body.problem is not None and not body.answered:
            await refuse(scope, send, body.problem)


class _Body:
    """One body on its way in: cut off, as if the client had gone, once there is a problem with it."""

    def __init__(self, scope: Any, receive: Receive, send: Send) -> None:
        path = scope["path"]
        self._scope = scope
        self._limit = limit_of(path, scope.get("query_string", b""))
        self._is_for_anybody = path.startswith(FOR_ANYBODY)
        self._is_api = path.startswith("/api/")
        self._receive = receive
        self._send = send
        self._begun = time.monotonic()
        self._received = self._mine = 0
        self._held, self._who = SMALL, address_of(scope)
        self._is_whole = self._is_known = False
        self.problem: ApiProblem | None = None
        self.answered = False

    async def expect(self, size: int) -> None:
        """Refuse a body of this size, or let it come. Raises `ApiProblem`."""
        if size > FORM and not self._is_for_anybody and not self._is_known:
            self._is_known = brings_credential(self._scope) and (await caller_of(self._scope)).is_known
            if not self._is_known:
                raise _not_known(self._is_api)
        if size > self._limit:
            message = f"A request may carry {self._limit} bytes here."
            raise answer_to(TooLarge(message, remedy="Send less at once; files go up in parts."))
        if size > FORM and self._held is SMALL:
            await self._become_large()
        self._held.require_space(self._who, min(size, _IN_MEMORY) - self._mine)

    async def _become_large(self) -> None:
        mine = self._mine
        self.release()
        if self._is_known:
            caller = await caller_of(self._scope)
            self._who = f"{caller.kind} {caller.name}"
        self._held = LARGE
        self._hold(mine)

    def _hold(self, more: int) -> None:
        self._mine += more
        self._held.add(self._who, more)

    async def receive(self) -> Message:
        if self.problem is not None:
            return {"type": "http.disconnect"}
        if self._is_whole:
            return await self._receive()
        try:
            async with asyncio.timeout(self._patience()):
                message = await self._receive()
            await self._take(message)
        except TimeoutError:
            remedy = "Send less at once, or over a faster connection."
            self.problem = ApiProblem(408, "too_slow", "The request's body did not arrive in time.", remedy=remedy)
        except ApiProblem as problem:
            self.problem = problem
        else:
            return message
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.answered = True
        await self._send(message)

    def release(self) -> None:
        """The request is over."""
        self._hold(-self._mine)

    async def _take(self, message: Message) -> None:
        size = len(message.get("body", b""))
        self._is_whole = not message.get("more_body", False)
        self._received += size
        await self.expect(self._received)
        self._hold(min(self._received, _IN_MEMORY) - self._mine)

    def _patience(self) -> float:
        """Seconds until the next piece must be there."""
        patience: float = settings.YARDMASTER_BODY_PATIENCE
        left = self._begun + patience + self._received / _SLOWEST - time.monotonic()
        return max(0.0, min(left, patience))


def limit_of(path: str, query: bytes = b"") -> int:
    """The most bytes that a request to this address may carry."""
    if path.startswith(PARTS):
        return _size_of_part(path, query)
    largest: int = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    if path.startswith(FOR_ANYBODY):
        return min(FORM, largest)
    if SERVED.fullmatch(path):
        return min(MOST_BODY, largest)
    return min(LIMITS.get(_ID.sub("ID", path), settings.YARDMASTER_BODY_LIMIT), largest)


def _size_of_part(path: str, query: bytes) -> int:
    """As many bytes as were signed. Without a signature next to nothing may be sent."""
    upload_id, _, part = path.removeprefix(PARTS).partition("/")
    store = storage().served()
    if store is None or not (part.isascii() and part.isdigit() and len(part) < 9):
        return FORM
    try:
        return max(
            FORM, store.addresses.part_grant(upload_id, int(part), dict(parse_qsl(query.decode("latin-1")))).size
        )
    except AddressRefused:
        return FORM


def _has_body(scope: Any) -> bool:
    return any(name in (b"content-length", b"transfer-encoding") and value != b"0" for name, value in scope["headers"])


def _declared(scope: Any) -> int:
    """What Content-Length says; 0 where it says nothing that is a number."""
    value = dict(scope["headers"]).get(b"content-length", b"")
    return int(value) if value.isdigit() and len(value) < 20 else 0


def _not_known(is_api: bool) -> ApiProblem:
    if not is_api:
        return answer_to(TooLarge(f"Without signing in, a request may carry {FORM} bytes.", remedy="Sign in first."))
    return ApiProblem(
        401, "not_authenticated", "The request carries no credential that is good.",
        remedy="Sign in, or send `Authorization: Bearer <personal token>`.", headers={"WWW-Authenticate": "Bearer"},
    )  # fmt: skip
