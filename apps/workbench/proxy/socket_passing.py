"""Passing one WebSocket to the program of a session: messages in both directions, and how it was closed.

It ends with the sign-in that opened it (`apps.accounts.open_sockets`), and whether the caller may still pass is asked
again every so often. Not here: whether it may be opened (`application`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI

from apps.accounts.open_sockets import SIGNED_OUT, OpenSocket, open_sockets
from apps.accounts.socket_memory import TOO_BIG, TooMuch
from apps.accounts.socket_tasks import first_of
from apps.accounts.websocket_auth import still_signed_in
from apps.workbench.proxy import headers, refusals
from apps.workbench.proxy.contract import Admitted, Refusal, Unknown
from apps.workbench.proxy.gate_connection import NoMoreConnections, Unreachable
from apps.workbench.proxy.http_passing import Receive, Scope, Send
from apps.workbench.proxy.origins import Origins
from apps.workbench.proxy.socket_upstream import SocketUpstream

log = logging.getLogger(__name__)

_TURN = 32
"""Messages that are passed in a row before others have their turn."""
GOING_AWAY, TROUBLE = 1001, 1011
_NEVER_SENT = (1005, 1006, 1015)
"""Codes that say how a connection ended, and that no side may send."""


@dataclass(frozen=True)
class SocketPassing:
    """All WebSockets of one process."""

    origins: Origins
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
                code, reason = await first_of(
                    _to_program(upstream, receive),
                    _to_browser(upstream, send),
                    self._watch(still),
                )
                if code:
                    with contextlib.suppress(OSError):  # the client has gone meanwhile
                        await send({"type": "websocket.close", "code": code, "reason": reason})

            held = OpenSocket({**scope, **admitted.caller}, receive, send)
            await open_sockets().hold(inner, held, still_signed_in)
        finally:
            await upstream.close(GOING_AWAY, "")

    async def _connected(self, admitted: Admitted, scope: Scope) -> SocketUpstream:
        host = self.origins.host_of(admitted.session_id)
        target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
        passed = headers.of_handshake(headers.to_program(scope["headers"], self.origins.scheme, host))
        uri = f"ws://{host}{target.decode('latin-1')}"
        try:
            return await SocketUpstream.opened(admitted, uri, scope["subprotocols"], passed)
        except InvalidStatus as error:
            raise _refused(error.response.status_code) from error
        except NoMoreConnections as error:
            log.warning("No more connections to sessions can be opened: %s", error)
            raise refusals.portal_busy() from error
        except (OSError, InvalidHandshake, InvalidURI, Unreachable) as error:
            log.info("A WebSocket of session %s cannot be opened: %s", admitted.session_id, error)
            raise (refusals.unreachable() if isinstance(error, Unreachable) else refusals.not_answered()) from error

    async def _watch(self, still: Callable[[], Awaitable[object]]) -> tuple[int, str]:
        while True:
            await asyncio.sleep(self.again)
            try:
                await still()
            except Unknown as error:
                log.info("Whether a caller may still pass is not known now: %s", error)
            except Refusal as refusal:
                return (SIGNED_OUT if refusal.status == 401 else GOING_AWAY), ""
            except Exception as error:  # noqa: BLE001 - the database may be away; it must be asked again
                log.warning("Whether a caller may still pass is not known now: %s", error)


async def _to_program(upstream: SocketUpstream, receive: Receive) -> tuple[int, str]:
    while (message := await receive())["type"] != "websocket.disconnect":
        text = message.get("text")
        try:
            await upstream.send(message["bytes"] if text is None else text)
        except TooMuch as error:
            return TOO_BIG, str(error)
        except (ConnectionClosed, OSError):
            await asyncio.Event().wait()  # how it has ended is said by the other direction
    code = message.get("code", 1005)
    with contextlib.suppress(OSError):
        await upstream.say_goodbye(GOING_AWAY if code in _NEVER_SENT else code, message.get("reason") or "")
    return 0, ""


async def _to_browser(upstream: SocketUpstream, send: Send) -> tuple[int, str]:
    number = 0
    try:
        async for message in upstream.messages():
            kind = "text" if isinstance(message, str) else "bytes"
            await send({"type": "websocket.send", kind: message})
            number += 1
            if not number % _TURN:
                await asyncio.sleep(0)
    except TooMuch as error:
        return TOO_BIG, str(error)
    except OSError:
        pass  # the program has broken it, or the client has gone, which then hears no code
    code = upstream.code
    return (1000 if code == 1005 else TROUBLE if code in _NEVER_SENT else code), upstream.reason


def _refused(status: int) -> Refusal:
    status = status if 400 <= status < 600 else 502
    return Refusal(
        status,
        "socket_refused",
        "Not accepted",
        f"The session does not accept this WebSocket ({status}).",
        "Load the page again; if that does not help, restart the session.",
    )
