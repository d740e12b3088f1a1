"""Passing one HTTP request to the program of a session, and its answer back, as they come: nothing is kept.

Each side waits for the other: a program that does not read stops the browser's upload, and a browser that does not
read stops the program. Not here: whether the request may pass (`application`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import h11

from apps.workbench.proxy import headers
from apps.workbench.proxy.admission import Admitted, Refusal, Unknown
from apps.workbench.proxy.gate_connection import Unreachable
from apps.workbench.proxy.origins import Origins, prefix_of
from apps.workbench.proxy.upstream import IdleConnections, Upstream

log = logging.getLogger(__name__)

PATIENCE = 120.0
"""Seconds in which nothing has moved, neither of the request nor of the answer, after which a request ends."""

AGAIN = 10.0
"""Seconds after which a caller whose request or WebSocket is under way is asked about again."""

CUT_OFF = "yardmaster.cut_off"
"""The extension of ASGI that closes a connection in the middle of an answer (`portal.bounded_head`)."""

Message = dict[str, Any]
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
_WITHOUT_BODY = (204, 304)
UNREACHABLE = "session_unreachable"
"""The code of the refusal where the session runs, as far as the portal knows, and its gate does not answer."""


@dataclass(frozen=True)
class HttpPassing:
    """All requests of one process."""

    origins: Origins
    idle: IdleConnections
    patience: float
    again: float

    async def __call__(
        self, admitted: Admitted, scope: Scope, receive: Receive, send: Send, still: Callable[[], Awaitable[object]]
    ) -> None:
        """Passes the answer; one that is interrupted ends with the connection. `still` asks again whether the caller
        may pass, and raises a `Refusal` once not.

        Raises:
            Refusal: nothing was answered yet.
        """
        request, has_body = _request(scope, self.origins, admitted)
        upstream = self.idle.take(admitted) or await _opened(admitted)
        passage = _Passage(admitted, scope, receive, send, self.patience)
        watching = asyncio.create_task(passage.watch(still, self.again))
        try:
            await self._along(upstream, passage, request, has_body)
        except _Stale:
            await self._along(await _opened(admitted), passage, request, has_body)
        finally:
            watching.cancel()

    async def _along(self, upstream: Upstream, passage: _Passage, request: h11.Request, has_body: bool) -> None:
        is_whole = False
        try:
            is_whole = await passage.run(upstream, request, has_body)
        finally:
            if is_whole and upstream.is_reusable():
                self.idle.keep(passage.admitted, upstream)
            else:
                upstream.abort()
        if not is_whole:
            await passage.cut_off()


class _Stale(Exception):
    """The connection had ended while it waited, and nothing was answered on it."""


class _Passage:
    """One request under way."""

    def __init__(self, admitted: Admitted, scope: Scope, receive: Receive, send: Send, patience: float) -> None:
        self.admitted = admitted
        self._scope = scope
        self._receive, self._send = receive, send
        self._patience = patience
        self._has_begun = self._is_gone = False
        self._refused: Refusal | None = None
        self._limit: asyncio.Timeout | None = None

    async def watch(self, still: Callable[[], Awaitable[object]], again: float) -> None:
        """End it once the caller may no longer pass."""
        while self._refused is None:
            await asyncio.sleep(again)
            try:
                await still()
            except Unknown as error:
                log.info("Whether a caller may still pass is not known now: %s", error)
            except Refusal as refusal:
                self._refused = refusal
            except Exception as error:  # noqa: BLE001 - the database may be away; it must be asked again
                log.warning("Whether a caller may still pass is not known now: %s", error)
        self._move(0.0)

    async def run(self, upstream: Upstream, request: h11.Request, has_body: bool) -> bool:
        """Whether the answer was passed whole."""
        feeding: asyncio.Task[None] | None = None
        try:
            async with asyncio.timeout(0.0 if self._refused else self._patience) as self._limit:
                upstream.begin(request, has_body)
                feeding = asyncio.create_task(self._feed(upstream, has_body))
                await self._answer(upstream)
                return not self._is_gone
        except (OSError, h11.ProtocolError) as error:  # a timeout is an OSError
            if self._has_begun or self._is_gone:
                return False
            if self._refused is not None:
                raise self._refused from error
            may_repeat = not has_body and request.method.decode() in headers.SAFE_METHODS
            if upstream.was_used and may_repeat and isinstance(error, ConnectionError):
                raise _Stale from error
            raise _refusal(error) from error
        finally:
            if feeding is not None:
                feeding.cancel()

    async def cut_off(self) -> None:
        """Close the client's connection, unless it has gone itself."""
        end = self._scope.get("extensions", {}).get(CUT_OFF)
        if end is not None:
            end["now"]()
            while (await self._receive())["type"] != "http.disconnect":
                pass

    async def _feed(self, upstream: Upstream, has_body: bool) -> None:
        """Pass the request's body on; then wait until the client is gone."""
        try:
            while (message := await self._receive())["type"] != "http.disconnect":
                if not has_body:
                    continue
                has_body = message.get("more_body", False)
                await upstream.send(message.get("body", b""), not has_body)
                self._moved()
        except (OSError, h11.ProtocolError):
            return  # the program reads no more; what it answers counts
        self._is_gone = True
        upstream.abort()

    async def _answer(self, upstream: Upstream) -> None:
        answer = await upstream.answer()
        self._moved()
        self._has_begun = True
        passed = headers.to_browser(_with_length(answer), prefix_of(self.admitted.session_id))
        await self._send({"type": "http.response.start", "status": answer.status_code, "headers": passed})
        more = True
        while more:
            piece, more = await upstream.piece()
            await self._send({"type": "http.response.body", "body": piece, "more_body": more})
            self._moved()

    def _moved(self) -> None:
        if self._refused is None:
            self._move(self._patience)

    def _move(self, patience: float) -> None:
        if self._limit is not None:
            with contextlib.suppress(RuntimeError):  # the time for all is over
                self._limit.reschedule(asyncio.get_running_loop().time() + patience)


async def _opened(admitted: Admitted) -> Upstream:
    try:
        return await Upstream.opened(admitted)
    except Unreachable as error:
        log.info("Session %s cannot be reached: %s", admitted.session_id, error)
        raise unreachable() from error


def _request(scope: Scope, origins: Origins, admitted: Admitted) -> tuple[h11.Request, bool]:
    host = origins.host_of(admitted.session_id)
    framing = headers.framing(scope["headers"])
    target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
    passed = [*headers.to_program(scope["headers"], origins.scheme, host), *framing]
    try:
        request = h11.Request(method=scope["method"], target=target, headers=passed)
    except h11.LocalProtocolError as error:
        raise Refusal(400, "request_not_valid", "Bad request", f"The request cannot be passed on: {error}.") from error
    return request, bool(framing) and framing[0][1] != b"0"


def _with_length(answer: h11.Response) -> headers.Headers:
    """The answer's headers, with a length only where the server is to count by it."""
    names = {name for name, _ in answer.headers}
    if answer.status_code in _WITHOUT_BODY or b"transfer-encoding" in names:
        return [(name, value) for name, value in answer.headers if name != b"content-length"]
    return list(answer.headers)


def unreachable() -> Refusal:
    """The session runs, as far as the portal knows, and its gate does not answer."""
    return Refusal(
        502, UNREACHABLE, "The session does not answer", "The program of this session cannot be reached now.",
        "Wait a few seconds and load the page again.",
    )  # fmt: skip


def not_answered() -> Refusal:
    """The gate let the request through, and the program closed its connection: that says nothing about others."""
    return Refusal(
        502, "answer_missing", "The session did not answer",
        "The program of this session has closed the connection without an answer.",
        "Load the page again; if that does not help, restart the session.",
    )  # fmt: skip


def _refusal(error: Exception) -> Refusal:
    if isinstance(error, TimeoutError):
        message = "The program of this session did not answer in time."
        remedy = "Load the page again; if that does not help, restart the session."
        return Refusal(504, "session_too_slow", "The session does not answer", message, remedy)
    if isinstance(error, h11.ProtocolError):
        message = f"The program of this session answered with no valid HTTP: {error}."
        return Refusal(502, "answer_not_valid", "The session's answer cannot be read", message)
    return not_answered()
