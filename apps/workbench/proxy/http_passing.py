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

from apps.workbench.proxy import headers, refusals
from apps.workbench.proxy.answer_parser import Answer, NotHttp
from apps.workbench.proxy.contract import Admitted, Refusal, Unknown
from apps.workbench.proxy.gate_connection import NoMoreConnections, Unreachable
from apps.workbench.proxy.origins import Origins, prefix_of
from apps.workbench.proxy.upstream import Asked, IdleConnections, Upstream

log = logging.getLogger(__name__)

PATIENCE = 120.0
"""Seconds in which nothing has moved, neither of the request nor of the answer, after which a request ends."""

AGAIN = 10.0
"""Seconds after which a caller whose request or WebSocket is under way is asked about again."""

SOON = 0.1
"""Seconds after which a request without a body is watched, and ends where its client has gone. Most are over by then,
and cost no tasks."""

CUT_OFF = "yardmaster.cut_off"
"""The extension of ASGI that closes a connection in the middle of an answer (`portal.bounded_head`)."""

Message = dict[str, Any]
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
_WITHOUT_BODY = (204, 304)


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
        asked = _asked(scope, self.origins, admitted)
        upstream = self.idle.take(admitted) or await _opened(admitted)
        passage = _Passage(admitted, scope, receive, send, _Watch(still, self.again, self.patience))
        try:
            await self._along(upstream, passage, asked)
        except _Stale:
            await self._along(await _opened(admitted), passage, asked)

    async def _along(self, upstream: Upstream, passage: _Passage, asked: Asked) -> None:
        is_whole = False
        try:
            is_whole = await passage.run(upstream, asked)
        finally:
            if is_whole and upstream.rest():
                self.idle.keep(passage.admitted, upstream)
            else:
                upstream.abort()
        if not is_whole:
            await passage.cut_off()


class _Stale(Exception):
    """The connection had ended while it waited, and nothing was answered on it."""


class _Watch:
    """Ends a request in which nothing moves, or whose caller may no longer pass."""

    def __init__(self, still: Callable[[], Awaitable[object]], again: float, patience: float) -> None:
        self._still, self._again, self._patience = still, again, patience
        self._loop = asyncio.get_running_loop()
        self._moved_at = self._loop.time()
        self._asks_at = self._moved_at + again
        self._limit: asyncio.Timeout | None = None
        self._is_over = False
        self.refused: Refusal | None = None

    def limit(self) -> asyncio.Timeout:
        """The block in which the request is passed."""
        self._limit = asyncio.timeout(0.0 if self._is_over else None)
        return self._limit

    def moved(self) -> None:
        """Something has come, or was taken."""
        self._moved_at = self._loop.time()

    async def watch(self) -> None:
        while self.refused is None and (now := self._loop.time()) < (late := self._moved_at + self._patience):
            if now < self._asks_at:
                await asyncio.sleep(min(late, self._asks_at) - now)
            else:
                await self._ask()
        self._is_over = True
        if self._limit is not None:
            with contextlib.suppress(RuntimeError):  # it is over by itself
                self._limit.reschedule(self._loop.time())

    async def _ask(self) -> None:
        try:
            await self._still()
        except Unknown as error:
            log.info("Whether a caller may still pass is not known now: %s", error)
        except Refusal as refusal:
            self.refused = refusal
        except Exception as error:  # noqa: BLE001 - the database may be away; it must be asked again
            log.warning("Whether a caller may still pass is not known now: %s", error)
        self._asks_at = self._loop.time() + self._again


class _Passage:
    """One request under way."""

    def __init__(self, admitted: Admitted, scope: Scope, receive: Receive, send: Send, watch: _Watch) -> None:
        self.admitted = admitted
        self.watch = watch
        self._scope = scope
        self._receive, self._send = receive, send
        self._has_begun = self._is_gone = False

    async def run(self, upstream: Upstream, asked: Asked) -> bool:
        """Whether the answer was passed whole."""
        tasks: list[asyncio.Task[None]] = []

        def begin_tasks() -> None:
            tasks.extend(map(asyncio.create_task, (self._feed(upstream, asked.has_body), self.watch.watch())))

        later = asyncio.get_running_loop().call_later(0.0 if asked.has_body else SOON, begin_tasks)
        try:
            async with self.watch.limit():
                upstream.begin(asked)
                await self._answer(upstream)
                return not self._is_gone
        except (OSError, NotHttp) as error:  # a timeout is an OSError
            if self._has_begun or self._is_gone:
                return False
            if self.watch.refused is not None:
                raise self.watch.refused from error
            may_repeat = not asked.has_body and asked.method in headers.SAFE_METHODS
            if upstream.was_used and may_repeat and isinstance(error, ConnectionError):
                raise _Stale from error
            raise _refusal(error) from error
        finally:
            later.cancel()
            for task in tasks:
                task.cancel()

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
                self.watch.moved()
        except (OSError, NotHttp):
            return  # the program reads no more; what it answers counts
        self._is_gone = True
        upstream.abort()

    async def _answer(self, upstream: Upstream) -> None:
        answer = await upstream.answer()
        self.watch.moved()
        self._has_begun = True
        passed = headers.to_browser(_with_length(answer), prefix_of(self.admitted.session_id))
        await self._send({"type": "http.response.start", "status": answer.status, "headers": passed})
        more = True
        while more:
            piece, more = await upstream.piece()
            await self._send({"type": "http.response.body", "body": piece, "more_body": more})
            self.watch.moved()


async def _opened(admitted: Admitted) -> Upstream:
    try:
        return await Upstream.opened(admitted)
    except Unreachable as error:
        log.info("Session %s cannot be reached: %s", admitted.session_id, error)
        raise refusals.unreachable() from error
    except NoMoreConnections as error:
        log.warning("No more connections to sessions can be opened: %s", error)
        raise refusals.portal_busy() from error


def _asked(scope: Scope, origins: Origins, admitted: Admitted) -> Asked:
    target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
    passed = headers.to_program(scope["headers"], origins.scheme, origins.host_of(admitted.session_id))
    try:
        return Asked.of(scope["method"], target, passed, headers.framing(scope["headers"]))
    except ValueError as error:
        message = f"The request cannot be passed on: {error}."
        raise Refusal(400, "request_not_valid", "Bad request", message, "Correct it, and send it again.") from error


def _with_length(answer: Answer) -> headers.Headers:
    """The answer's headers, with a length only where the server is to count by it."""
    if answer.is_chunked or answer.status in _WITHOUT_BODY:
        return [(name, value) for name, value in answer.headers if name != b"content-length"]
    return answer.headers


def _refusal(error: Exception) -> Refusal:
    if isinstance(error, TimeoutError):
        message = "The program of this session did not answer in time."
        remedy = "Load the page again; if that does not help, restart the session."
        return Refusal(504, "session_too_slow", "The session does not answer", message, remedy)
    if isinstance(error, NotHttp):
        message = f"The program of this session answered with no valid HTTP: {error}."
        remedy = "Load the page again; if that does not help, restart the session."
        return Refusal(502, "answer_not_valid", "The session's answer cannot be read", message, remedy)
    return refusals.not_answered()
