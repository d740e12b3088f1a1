"""Passing one WebSocket to the program of a session: messages in both directions, and how it was closed.

It ends with the sign-in that opened it (`apps.accounts.open_sockets`), and whether the caller may still pass is asked
again every so often. Not here: whether it may be opened (`application`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI

from apps.accounts.open_sockets import SIGNED_OUT, OpenSocket, open_sockets
from apps.accounts.websocket_auth import still_signed_in
from apps.workbench.proxy import headers
from apps.workbench.proxy.admission import MESSAGE, Admitted, Refusal, Used
from apps.workbench.proxy.gate_connection import Unreachable, through_gate
from apps.workbench.proxy.http_passing import Receive, Scope, Send, unreachable
from apps.workbench.proxy.origins import Origins

log = logging.getLogger(__name__)

LONGEST_MESSAGE = 16 << 20
AGAIN = 60.0
"""Seconds after which a caller is asked about again."""
HANDSHAKE = 20.0
GOING_AWAY, TROUBLE = 1001, 1011
_NEVER_SENT = (1005, 1006, 1015)
"""Codes that say how a connection ended, and that no side may send."""


@dataclass(frozen=True)
class SocketPassing:
    """All WebSockets of one process."""

    origins: Origins
    used: Used
    again: float

    async def __call__(
        self,
        admitted: Admitted,
        scope: Scope,
        receive: Receive,
        send: Send,
        still: Callable[[], Awaitable[object]],
    ) -> None:
        """`still` asks again whether the caller may pass, and raises a `Refusal` once not.

        Raises:
            Refusal: the WebSocket was not accepted yet.
        """
        upstream = await self._connected(admitted, scope)
        try:

            async def inner(_scope: Scope, receive: Receive, send: Send) -> None:
                await receive()
                await send({"type": "websocket.accept", "subprotocol": upstream.subprotocol})
                code, reason = await _first_of(
                    self._to_program(admitted, scope["path"], upstream, receive),
                    _to_browser(upstream, send),
                    self._watch(still),
                )
                if code:
                    with contextlib.suppress(OSError):  # the client has gone meanwhile
                        await send({"type": "websocket.close", "code": code, "reason": reason})

            held = OpenSocket({**scope, **admitted.caller}, receive, send)
            await open_sockets().hold(inner, held, still_signed_in)
        finally:
            await _end(upstream)

    async def _connected(self, admitted: Admitted, scope: Scope) -> ClientConnection:
        host = self.origins.host_of(admitted.session_id)
        target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
        passed = headers.of_handshake(headers.to_program(scope["headers"], self.origins.scheme, host))
        try:
            sock = await through_gate(admitted.address, admitted.key)
            return await connect(
                f"ws://{host}{target.decode('latin-1')}",
                sock=sock,
                subprotocols=scope["subprotocols"] or None,
                additional_headers=[(name.decode("latin-1"), value.decode("latin-1")) for name, value in passed],
                user_agent_header=None,
                compression=None,
                proxy=None,
                open_timeout=HANDSHAKE,
                max_size=LONGEST_MESSAGE,
                max_queue=1,
                write_limit=64 << 10,
            )
        except InvalidStatus as error:
            raise _refused(error.response.status_code) from error
        except (OSError, ValueError, InvalidHandshake, InvalidURI, Unreachable) as error:  # ValueError: a redirect
            log.info("A WebSocket of session %s cannot be opened: %s", admitted.session_id, error)
            raise unreachable() from error

    async def _to_program(
        self, admitted: Admitted, path: str, upstream: ClientConnection, receive: Receive
    ) -> tuple[int, str]:
        counts = admitted.is_use(MESSAGE, path)
        while (message := await receive())["type"] != "websocket.disconnect":
            text = message.get("text")
            try:
                await upstream.send(message["bytes"] if text is None else text)
            except ConnectionClosed:
                await asyncio.Event().wait()  # how it was closed is said by the other direction
            if counts:
                self.used(admitted.session_id)
        code = message.get("code", 1005)
        with contextlib.suppress(ConnectionClosed):
            await _close(upstream, GOING_AWAY if code in _NEVER_SENT else code, message.get("reason") or "")
        return 0, ""

    async def _watch(self, still: Callable[[], Awaitable[object]]) -> tuple[int, str]:
        while True:
            await asyncio.sleep(self.again)
            try:
                await still()
            except Refusal as refusal:
                return (SIGNED_OUT if refusal.status == 401 else GOING_AWAY), ""


async def _to_browser(upstream: ClientConnection, send: Send) -> tuple[int, str]:
    try:
        async for message in upstream:
            kind = "text" if isinstance(message, str) else "bytes"
            await send({"type": "websocket.send", kind: message})
    except ConnectionClosed:
        pass
    except OSError:
        return 0, ""  # the client has gone
    code = upstream.close_code or TROUBLE
    return (1000 if code == 1005 else TROUBLE if code in _NEVER_SENT else code), upstream.close_reason or ""


async def _first_of(*ways: Coroutine[Any, Any, tuple[int, str]]) -> tuple[int, str]:
    """Run all until one ends, and say what it said: how to close; 0 where the client is gone."""
    tasks = [asyncio.create_task(way) for way in ways]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return next(task for task in tasks if task.done()).result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _close(upstream: ClientConnection, code: int, reason: str) -> None:
    """Say goodbye; who does not answer to it is not waited for long."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(2.0):
            await upstream.close(code, reason)


async def _end(upstream: ClientConnection) -> None:
    await _close(upstream, GOING_AWAY, "")
    upstream.transport.abort()


def _refused(status: int) -> Refusal:
    status = status if 400 <= status < 600 else 502
    return Refusal(
        status,
        "socket_refused",
        "Not accepted",
        f"The session does not accept this WebSocket ({status}).",
    )
