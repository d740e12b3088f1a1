"""ASGI middleware: how much one caller may ask for, over time and at a time, so that one leaves room for others.

A caller is a user, whatever tokens and browsers they use, the job behind a task's token, or the address of a stranger.
Counts over time are shared by all web processes, in one round trip per request; those of tasks and of stored objects,
which come by the hundred per second, and what is under way at once are each process's own. Not here: attempts to sign
in (`apps.accounts.attempts`), sizes of bodies (`body_limit`).
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from apps.api.allowances import take_async, take_here
from apps.api.problems import ApiProblem, answer_to
from apps.api.slots import Slot, Slots
from apps.errors import TooMany
from portal.callers import Caller, Doubt, address_of, caller_of
from portal.early_refusals import refusal_of
from portal.one_thread import HEALTH
from portal.refusals import Application, Headers, Message, Receive, Send, encoded, refuse
from portal.turns import WORK, Work
from yardmaster.allowances import Allowance, Outcome, Taking, seconds_until_more

MINUTE = 60
PATIENCE = 5.0
"""Seconds that a request waits for others of the same caller to end."""
_UNCOUNTED = 50
"""Requests at once for `/healthz`, which the keeper of the processes asks for: more are told to come later."""
READY = "/readyz"
_OBJECTS = "/storage/"
_READS = ("GET", "HEAD")
_ID = r"[0-9a-fA-F-]{32,36}"
_EXPENSIVE = re.compile(
    rf"/api/v1/jobs/{_ID}/logs/search/|/api/v1/dataset-versions/{_ID}/preview/|/api/v1/jobs/(?:check|import|export|{_ID}/export)/|/find/"
    rf"|/api/v1/(?:code|dataset|model)-versions/{_ID}/(?:entries|files)/"
    rf"|/api/v1/dataset-versions/{_ID}/check/|/datasets/versions/{_ID}/check/"
    rf"|/(?:code|datasets)/{_ID}/(?:compare/|changes/)?|/jobs/compare/|/jobs/launch/(?:preview|manifests)/"
    rf"|/api/v1/job-templates/{_ID}/revisions/(?:\d+/)?|/jobs/templates/{_ID}/(?:revisions/(?:\d+/)?)?"
)
"""Searches, comparisons (also of revisions), previews, imports and exports of jobs, lists of files (a thousand at a
time), what is parsed for them, and what reads all files of a version."""
_ARCHIVES = re.compile(
    rf"/api/v1/(?:code|dataset|model)-versions/{_ID}/archive/|/model-versions/{_ID}/archive/"
    rf"|(?:/api/v1)?/jobs/{_ID}/outputs/archive/"
)
"""What is made while it is sent: each holds a list of its files, of up to 70 MB, in a temporary file until the client
has read it."""
_ARCHIVES_AT_ONCE = 3
_READ_WITHIN = 60.0
"""Seconds in which the client has to read a piece of one, of 64 KiB."""
_PREDICTIONS = re.compile(
    rf"/api/v1/model-versions/{_ID}/(?:predict|classify|regress)/|/model-versions/{_ID}/try/predict/"
    rf"|/api/v1/services/{_ID}/v1/.+|/api/v1/models/{_ID}/stages/[^/]+/v1/.+"
)
_SERVED = re.compile(
    rf"/api/v1/model-versions/{_ID}/(?:predict|classify|regress)/|/model-versions/{_ID}/try/(?:[a-z]+/)?"
    rf"|/api/v1/services/{_ID}/.*|/api/v1/models/{_ID}/stages/[^/]+/.+"
)
"""What waits for a server that runs a user's model: in places of their own, so that a slow one keeps no one from pages
of data and code."""
_LAUNCHES = re.compile(
    rf"/api/v1/jobs/|/api/v1/jobs/{_ID}/retry/|/jobs/launch/|/jobs/{_ID}/retry/"
    rf"|/api/v1/dataset-versions/{_ID}/prepare/|/datasets/versions/{_ID}/prepare/"
    rf"|/api/v1/model-versions/{_ID}/batch/|/model-versions/{_ID}/batch/"
    rf"|/api/v1/services/|/model-versions/{_ID}/try/start/"
    rf"|/api/v1/dataset-versions/{_ID}/volume/|/datasets/versions/{_ID}/volume/"
    rf"|(?:/api/v1)?/namespaces/{_ID}/volumes/{_ID}/(?:clean/|versions/{_ID}/(?:remove/)?)"
    rf"|/api/v1/job-templates/(?:{_ID}/launch/)?|/jobs/templates/(?:new/|{_ID}/(?:edit/|revisions/\d+/)?)"
    rf"|/api/v1/schedules/{_ID}/run/|/jobs/schedules/{_ID}/run/|/api/v1/sweeps/|/sweeps/new/"
)
"""What launches, or reads code as a launch does."""
_EDITS = re.compile(rf"/api/v1/job-templates/{_ID}/")
"""Changes that are checked as a launch is."""
_LAUNCHING = ("POST", "PUT", "DELETE")
_UPLOADS = re.compile(r"/api/v1/uploads/|/api/v1/code-imports/|/jobs/launch/git/")
"""What brings files here: sent by the user, or fetched from Git by a worker."""
_SENT = re.compile(rf"/api/v1/uploads/{_ID}/(?:files/|complete/)?")
"""What asks the object store once for each of many files, or reads what was sent."""


@dataclass(frozen=True)
class Demand:
    """What one request takes, the slots that it needs while it is under way, and its work."""

    takings: Sequence[Taking]
    slots: Sequence[Slot] = ()
    work: Work = field(default_factory=Work)
    is_counted_here: bool = False
    refusal: ApiProblem | None = None
    """What it is answered with instead of being worked on."""
    read_within: float | None = None
    """Seconds that the client may leave each piece of the answer unread."""


def open_demand_of(path: str, address: str) -> Demand | None:
    """Of a request that anybody may send as a part of every page, or to see whether the portal is well; else None."""
    if path == HEALTH:
        return Demand([], [Slot("health", _UNCOUNTED, PATIENCE)])
    if path != READY and not path.startswith("/static/"):
        return None
    limits: dict[str, int] = settings.YARDMASTER_RATES
    who = f"open {address}"
    taking = _taking("open", "USER", Caller("stranger", address))
    return Demand([taking], [Slot(who, limits["AT_ONCE"], PATIENCE)], Work(who), is_counted_here=True)


def demand_of(kind: str, method: str, path: str, caller: Caller, address: str) -> Demand:
    """Of any other request, or of a WebSocket (`kind` as in ASGI)."""
    limits: dict[str, int] = settings.YARDMASTER_RATES
    who = f"{caller.kind} {caller.name}"
    if path.startswith(_OBJECTS):
        taking = _taking("objects", "JOB", Caller("stranger", address))
        sent = () if method in _READS else [Slot(f"sent from {address}", limits["AT_ONCE"], PATIENCE)]
        return Demand([taking], sent, Work(f"objects {address}"), is_counted_here=True)
    if caller.kind == "task":
        return Demand([_taking("task", "JOB", caller)], work=Work(who), is_counted_here=True)
    takings = [_taking(caller.kind, "USER" if caller.is_known else "STRANGER", caller)]
    if kind == "websocket":
        sockets = [
            Slot(f"sockets {who}", limits["SOCKETS"], 0.0),
            Slot(f"sockets at {address}", 2 * limits["SOCKETS"], 0.0),
        ]
        return Demand(takings, sockets)
    work = Work(who)
    slots, read_within = [Slot(who, limits["AT_ONCE"], PATIENCE)], None
    if _ARCHIVES.fullmatch(path) and caller.is_known:
        slots.append(Slot(f"archives {who}", _ARCHIVES_AT_ONCE, PATIENCE))
        read_within = _READ_WITHIN
    if (method in _LAUNCHING and _LAUNCHES.fullmatch(path)) or (method == "PATCH" and _EDITS.fullmatch(path)):
        takings.append(_taking("launches", "LAUNCHES", caller))  # also where the same address is expensive to read
    elif _EXPENSIVE.fullmatch(path) or read_within:
        takings.append(_taking("expensive", "EXPENSIVE", caller))
        work = Work(who, _places("expensive", who) if caller.is_known else ())  # a stranger is sent to sign in
    elif _PREDICTIONS.fullmatch(path):
        takings.append(_taking("predictions", "PREDICTIONS", caller))
    elif method == "POST" and _UPLOADS.fullmatch(path):
        takings.append(_taking("uploads", "UPLOADS", caller))
    if _SENT.fullmatch(path) and caller.is_known:
        work = Work(who, _places("sent", who, share=2))
    if _SERVED.fullmatch(path) and caller.is_known:
        work = Work(who, _places("served", who))
    return Demand(takings, slots, work, read_within=read_within)


def _places(kind: str, who: str, share: int = 1) -> Sequence[Slot]:
    """Held only while the portal works on the request: a slow client holds none of what all share. One `share`th of
    them, so that all kinds together leave threads for what is short."""
    limits: dict[str, int] = settings.YARDMASTER_RATES
    return (
        Slot(f"{kind} {who}", max(1, limits["EXPENSIVE_AT_ONCE"] // share), PATIENCE),
        Slot(kind, max(1, limits["EXPENSIVE_IN_ALL"] // share), PATIENCE),
    )


class RateLimit:
    """Around the rest of the application. Answers 429 with a problem, `RateLimit-…` headers and `Retry-After`."""

    def __init__(self, inner: Application) -> None:
        self._inner = inner
        self._slots = Slots()

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._inner(scope, receive, send)
            return
        demand = await _demand_of(scope)
        try:
            headers = await _counted(demand)
            if demand.refusal is not None:
                await refuse(scope, send, demand.refusal, headers=headers, keeps=has_no_body(scope))
                return
            scope[WORK] = demand.work
            async with self._slots.hold(demand.slots):
                await self._inner(scope, receive, _telling(scope, _patient(send, demand.read_within), headers))
        except _NotRead:
            return  # the server closes the connection, as the answer has no end
        except (ApiProblem, TooMany) as problem:
            await refuse(scope, send, problem)


async def _demand_of(scope: Any) -> Demand:
    path, address = scope["path"], address_of(scope)
    if (found := open_demand_of(path, address)) is not None:
        return found
    caller = await caller_of(scope)
    return refused_demand_of(scope["type"], path, caller) or demand_of(
        scope["type"], scope.get("method", "GET"), path, caller, address
    )


def refused_demand_of(kind: str, path: str, caller: Caller) -> Demand | None:
    """Of a request that is refused before it is worked on: it costs so little that each process counts its own."""
    if caller.doubt is Doubt.TOO_MANY:
        taking = _taking("stranger", "STRANGER", caller)
        return Demand([taking], is_counted_here=True, refusal=_too_often(taking.allowance, {}))
    if (refusal := refusal_of(kind, path, caller)) is None:
        return None
    return Demand([_taking("stranger", "STRANGER", caller)], is_counted_here=True, refusal=refusal)


def has_no_body(scope: Any) -> bool:
    """Whether the connection can be kept although nothing was read."""
    return not any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])


async def _counted(demand: Demand) -> dict[str, str]:
    """The headers that say what is left. Raises `ApiProblem`."""
    if not demand.takings:
        return {}
    if demand.is_counted_here:
        return counted_here(demand)
    return _left(demand, await take_async(demand.takings))


def counted_here(demand: Demand) -> dict[str, str]:
    """The same, of what each process counts for itself."""
    return _left(demand, take_here(demand.takings))


def _left(demand: Demand, outcome: Outcome) -> dict[str, str]:
    headers = headers_of(demand.takings, outcome)
    if outcome.over is not None:
        raise _too_often(outcome.over.allowance, headers)
    return headers


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


class _NotRead(Exception):
    """The client has not read a piece of the answer in time."""


def _patient(send: Send, seconds: float | None) -> Send:
    """`send` that gives up a client that does not read."""
    if seconds is None:
        return send

    async def within(message: Message) -> None:
        try:
            async with asyncio.timeout(seconds):
                await send(message)
        except TimeoutError as error:
            raise _NotRead from error

    return within


def _telling(scope: Any, send: Send, headers: dict[str, str]) -> Send:
    """`send` that adds the headers to answers of the API."""
    if scope["type"] != "http" or not scope["path"].startswith("/api/"):
        return send
    added: Headers = encoded(headers)

    async def with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), *added]}
        await send(message)

    return with_headers


def _taking(name: str, setting: str, caller: Caller) -> Taking:
    amount: int = settings.YARDMASTER_RATES[setting]
    return Taking(Allowance(name, amount, MINUTE), f"{caller.kind} {caller.name}")


def _too_often(allowance: Allowance, headers: dict[str, str]) -> ApiProblem:
    wait = seconds_until_more(allowance, time.time())
    detail = f"These are too many requests: {allowance.amount} a minute are allowed here."
    problem = answer_to(TooMany(detail, "rate_limited", wait=wait))
    problem.headers |= headers
    return problem
