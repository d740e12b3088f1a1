"""ASGI middleware: how much one caller may ask for, over time and at a time, so that one leaves room for others.

A caller is a user, whatever tokens and browsers they use, the job behind a task's token, or the address of a stranger.
Counts over time are shared by all web processes, in one round trip per request; those of tasks and of stored objects,
which come by the hundred per second, and what is under way at once are each process's own. Not here: attempts to sign
in (`apps.accounts.attempts`), sizes of bodies (`body_limit`).
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from apps.api.allowances import take_async, take_here
from apps.api.problems import TooMany
from portal.callers import Caller, address_of, caller_of
from portal.refusals import Application, Headers, Message, Receive, Send, encoded, refuse
from yardmaster.allowances import Allowance, Outcome, Taking, seconds_until_more

MINUTE = 60
PATIENCE = 5.0
"""Seconds that a request waits for others of the same caller to end."""
_FREE = ("/static/", "/healthz", "/readyz")
_OBJECTS = "/storage/"
_ID = r"[0-9a-fA-F-]{32,36}"
_EXPENSIVE = re.compile(
    rf"/api/v1/jobs/{_ID}/logs/search/|/api/v1/dataset-versions/{_ID}/preview/|/api/v1/jobs/check/|/find/"
    rf"|/(?:code|datasets)/{_ID}/(?:compare/|changes/)?|/jobs/compare/|/jobs/launch/(?:preview|manifests)/"
)
"""Searches, comparisons, previews, and what is parsed for them."""
_LAUNCHES = re.compile(rf"/api/v1/jobs/|/api/v1/jobs/{_ID}/retry/|/jobs/launch/|/jobs/{_ID}/retry/")
_UPLOADS = re.compile(r"/api/v1/uploads/")


@dataclass(frozen=True)
class Demand:
    """What one request takes, and the places it needs while it is under way: (name, how many there are, wait)."""

    takings: Sequence[Taking]
    places: Sequence[tuple[str, int, float]]
    is_counted_here: bool = False


def demand_of(kind: str, method: str, path: str, caller: Caller, address: str) -> Demand:
    """Of a request, or of a WebSocket (`kind` as in ASGI)."""
    limits: dict[str, int] = settings.YARDMASTER_RATES
    if path.startswith(_OBJECTS):
        return Demand([_taking("objects", "JOB", Caller("stranger", address))], [], is_counted_here=True)
    if caller.kind == "task":
        return Demand([_taking("task", "JOB", caller)], [], is_counted_here=True)
    who = f"{caller.kind} {caller.name}"
    takings = [_taking(caller.kind, "USER" if caller.is_known else "STRANGER", caller)]
    if kind == "websocket":
        sockets = [(f"sockets {who}", limits["SOCKETS"], 0.0), (f"sockets at {address}", 2 * limits["SOCKETS"], 0.0)]
        return Demand(takings, sockets)
    places = [(who, limits["AT_ONCE"], PATIENCE)]
    if _EXPENSIVE.fullmatch(path):
        takings.append(_taking("expensive", "EXPENSIVE", caller))
        places.append((f"expensive {who}", limits["EXPENSIVE_AT_ONCE"], PATIENCE))
        places.append(("expensive", limits["EXPENSIVE_IN_ALL"], PATIENCE))
    elif method == "POST" and _LAUNCHES.fullmatch(path):
        takings.append(_taking("launches", "LAUNCHES", caller))
    elif method == "POST" and _UPLOADS.fullmatch(path):
        takings.append(_taking("uploads", "UPLOADS", caller))
    return Demand(takings, places)


class RateLimit:
    """Around the rest of the application. Answers 429 with a problem, `RateLimit-…` headers and `Retry-After`."""

    def __init__(self, inner: Application) -> None:
        self._inner = inner
        self._places = Places()

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or scope["path"].startswith(_FREE):
            await self._inner(scope, receive, send)
            return
        caller = await caller_of(scope)
        demand = demand_of(scope["type"], scope.get("method", "GET"), scope["path"], caller, address_of(scope))
        outcome = take_here(demand.takings) if demand.is_counted_here else await take_async(demand.takings)
        told = headers_of(demand.takings, outcome)
        try:
            if outcome.over is not None:
                raise _too_often(outcome.over.allowance, told)
            async with contextlib.AsyncExitStack() as held:
                for name, most, wait in demand.places:
                    await held.enter_async_context(self._places.hold(name, most, wait))
                await self._inner(scope, receive, _telling(scope, send, told))
        except TooMany as problem:
            await refuse(scope, send, problem)


class Places:
    """How many of a kind are under way at once. Nothing is remembered of a kind of which none is."""

    def __init__(self) -> None:
        self._kinds: dict[str, _Kind] = {}

    @contextlib.asynccontextmanager
    async def hold(self, name: str, most: int, wait: float) -> AsyncIterator[None]:
        """Have one of `most` places, and wait so long for it. Raises `TooMany`."""
        kind = self._kinds.setdefault(name, _Kind(asyncio.Semaphore(most)))
        kind.users += 1
        try:
            await _acquire(kind.free, wait)
            try:
                yield
            finally:
                kind.free.release()
        finally:
            kind.users -= 1
            if not kind.users:
                self._kinds.pop(name, None)


@dataclass
class _Kind:
    free: asyncio.Semaphore
    users: int = field(default=0)


async def _acquire(free: asyncio.Semaphore, wait: float) -> None:
    if free.locked() and not wait:
        raise _at_once()
    try:
        async with asyncio.timeout(wait or None):
            await free.acquire()
    except TimeoutError as error:
        raise _at_once() from error


def headers_of(takings: Sequence[Taking], outcome: Outcome) -> dict[str, str]:
    """What is left of the allowance that is nearest to its end, in the words of today and of the coming standard."""
    now = time.time()
    shares = [(outcome.left(number, one) / max(1, one.allowance.amount), number) for number, one in enumerate(takings)]
    number = next((n for n, one in enumerate(takings) if one is outcome.over), min(shares)[1])
    allowance, left = takings[number].allowance, outcome.left(number, takings[number])
    left, reset = 0 if outcome.over else left, seconds_until_more(allowance, now)
    return {
        "RateLimit-Limit": str(allowance.amount),
        "RateLimit-Remaining": str(left),
        "RateLimit-Reset": str(reset),
        "RateLimit-Policy": f'"{allowance.name}";q={allowance.amount};w={allowance.seconds}',
        "RateLimit": f'"{allowance.name}";r={left};t={reset}',
    }


def _telling(scope: Any, send: Send, told: dict[str, str]) -> Send:
    """`send` that adds the headers to answers of the API."""
    if scope["type"] != "http" or not scope["path"].startswith("/api/"):
        return send
    headers: Headers = encoded(told)

    async def with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), *headers]}
        await send(message)

    return with_headers


def _taking(name: str, setting: str, caller: Caller) -> Taking:
    amount: int = settings.YARDMASTER_RATES[setting]
    return Taking(Allowance(name, amount, MINUTE), f"{caller.kind} {caller.name}")


def _too_often(allowance: Allowance, told: dict[str, str]) -> TooMany:
    wait = seconds_until_more(allowance, time.time())
    detail = f"These are too many requests: {allowance.amount} a minute are allowed here."
    return TooMany(detail, "rate_limited", wait=wait, headers=told)


def _at_once() -> TooMany:
    return TooMany("Too many of your requests are under way at once.", "too_many_at_once", wait=1)
