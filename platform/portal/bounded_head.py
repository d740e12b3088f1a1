"""uvicorn's HTTP protocol with bounds on everything that is not a body: the target of a request, its headers, what
follows its body, how many requests wait behind one another, how long a head takes, and how many connections wait.

The parser keeps a head in memory until it is whole, however long it is, before anything of the application runs. And
what reads a head later takes its size for granted: unquoting a cookie takes a time that grows with its square.
"""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import Any

from django.conf import settings
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from apps.api.addresses import network_of
from apps.api.problems import CONTENT_TYPE, ApiProblem, body_of
from portal.connections import Connections, most_at_once
from portal.one_packet import OnePacket

LONGEST_TARGET = 8 << 10
LONGEST_LOG_TARGET = 256 << 10
"""Where a page of a log begins is one number per task, in the address."""
LONGEST_HEADER = 8 << 10
LONGEST_HEADERS = 32 << 10
MOST_HEADERS = 100
LONGEST_BETWEEN = 16 << 10
"""Bytes of a message, after its head, in a row of which none is of its body: sizes of pieces, and what follows them."""
MOST_WAITING = 8
"""Requests that were sent on one connection before the one in front of them is answered."""
CUT_OFF = "yardmaster.cut_off"
"""An extension of ASGI: its `now` closes the connection before the answer is whole."""
_END = b"\r\n\r\n"
"""Of a head, and of a request without a body."""
_LINGER = 1.0
"""Seconds in which a client may read the answer before the connection is closed under it."""


class _Refused(Exception):
    """The parser shall read no further."""


class BoundedHead(HttpToolsProtocol):
    """Answers 400, 414 or 431 with a problem and closes the connection."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.url = b""
        self._in_head = True
        self._head = self._headers = self._lines = self._between = 0
        self._refusal: ApiProblem | None = None
        self._refused_at_once = getattr(self.app, "refused_at_once", None)
        self._is_answered = False
        """Whether the request that is being read has its answer already, and no cycle."""
        self._in_message = self._is_alone = False
        """Whether a message has begun that is not whole; and whether what has just been read is one whole request
        without a body, which may be answered at once: of several in a row each would hold up other connections."""
        self._due: float | None = None
        """When the next head has to be whole; None while a request is under way."""
        self._unsent = 0
        self._look: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        address = network_of(self.client[0]) if self.client else ""
        _OPEN.add(self, address)
        self._wait_for_head()
        self._look_later(settings.YARDMASTER_HEAD_PATIENCE)
        most = most_at_once(settings.YARDMASTER_CONNECTIONS)
        of_address = min(settings.YARDMASTER_CONNECTIONS_PER_ADDRESS, max(1, most // 2))
        last = None
        if address and not settings.SECURE_PROXY_SSL_HEADER and _OPEN.count(address) > of_address:
            last = _OPEN.longest_waiting(address)
        elif len(self.connections) > most:
            last = _OPEN.longest_waiting()
        if last is not None:
            last.push_out()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._leave()

    def handle_websocket_upgrade(self) -> None:
        self._leave()
        super().handle_websocket_upgrade()

    def push_out(self) -> None:
        """Close it, whatever it still has to send, and count it no longer."""
        self._leave()
        self.connections.discard(self)
        self.transport.abort()

    def cut_off(self) -> None:
        """Close it in the middle of an answer, which its reader then does not take for a whole one."""
        self.transport.close()
        self.loop.call_later(_LINGER, self.transport.abort)

    def data_received(self, data: bytes) -> None:
        if self._refusal is not None:
            self.transport.pause_reading()  # a request that was under way has made it read on
            return
        self._head += len(data)
        self._between += len(data)
        self._is_alone = not self._in_message and data.endswith(_END) and data.count(_END) == 1
        super().data_received(data)
        if self._refusal is not None:
            return
        if self._in_head and self._head - len(self.url) > LONGEST_HEADERS:
            self._refuse(_too_long(431, "headers_too_large", "The head of a request", LONGEST_HEADERS))
        elif not self._in_head and self._between > LONGEST_BETWEEN:
            self._refuse(_no_trailers())

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= MOST_WAITING:
            self._stop(_too_many_waiting())
        super().on_message_begin()
        if self._due is not None:
            self._wait_for_head()
        self._in_head = self._in_message = True
        self._head = self._headers = self._lines = 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        limit = LONGEST_LOG_TARGET if _is_of_logs(self.url) else LONGEST_TARGET
        if len(self.url) > limit:
            self._stop(_too_long(414, "target_too_long", "An address", limit))

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_head:
            self._stop(_no_trailers())
        size = len(name) + len(value) + 4
        self._headers += size
        if size > LONGEST_HEADER:
            self._stop(_too_long(431, "headers_too_large", "A header", LONGEST_HEADER))
        self._lines += 1
        if self._headers > LONGEST_HEADERS or self._lines > MOST_HEADERS:
            what = f"The head of a request, with at most {MOST_HEADERS} headers,"
            self._stop(_too_long(431, "headers_too_large", what, LONGEST_HEADERS))
        if name.lower() == b"cookie":
            self._add_cookies(plain_cookies(value))
        else:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head, self._between = False, 0
        self._due = None
        if (answer := self._refusal_at_once()) is not None:
            self._is_answered = True
            self.transport.write(answer)
            return
        _OPEN.wait_no_more(self)
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is not before and self.scope["method"] != "HEAD":  # its answer would be held, and overtaken
            self.cycle.transport = OnePacket(self.transport, self.loop)  # type: ignore[assignment]  # what it uses of it
        self.scope["extensions"] = {CUT_OFF: {"now": self.cut_off}}

    def _refusal_at_once(self) -> bytes | None:
        """The answer to a request that no application needs to see: where it is the next that the client waits for, and
        the connection stays."""
        is_next = self.cycle is None or self.cycle.response_complete
        if self._refused_at_once is None or not self._is_alone or not is_next:
            return None
        if self.parser.should_upgrade() or not self.parser.should_keep_alive():
            return None
        if self.parser.get_http_version() != "1.1" or self.flow.write_paused:
            return None  # one that does not read its answers waits as any other does
        self.scope["method"] = self.parser.get_method().decode("ascii")
        answer: bytes | None = self._refused_at_once(self.scope, self.url, self.server_state.default_headers)
        return answer

    def on_body(self, body: bytes) -> None:
        self._between = 0
        if self._due is not None:
            self._wait_for_head()  # it has been answered before its body was whole, and may send the rest
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._between = 0
        self._in_message = False
        if self._is_answered:
            self._is_answered = False
            self._wait_for_head()  # in its old place among those that wait
            return
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete:
            self._wait_for_head()
            _OPEN.wait(self)

    def _wait_for_head(self) -> None:
        self._due = self.loop.time() + settings.YARDMASTER_HEAD_PATIENCE

    def _look_later(self, seconds: float) -> None:
        self._look = self.loop.call_later(seconds, self._look_now)

    def _look_now(self) -> None:
        """Close the connection if its head is late. A slow client may take all of its last answer before."""
        patience, now = settings.YARDMASTER_HEAD_PATIENCE, self.loop.time()
        unsent = self.transport.get_write_buffer_size()
        if self._due is not None and now >= self._due and unsent in (0, self._unsent):
            self.push_out()
            return
        self._unsent = unsent
        self._look_later(self._due - now if self._due is not None and self._due > now else patience)

    def _leave(self) -> None:
        _OPEN.remove(self)
        if self._look is not None:
            self._look.cancel()
            self._look = None

    def _add_cookies(self, value: bytes) -> None:
        """As one header, however many were sent: each reader would make something else of several."""
        for place, (name, before) in enumerate(self.headers):
            if name == b"cookie":
                self.headers[place] = (name, before + b"; " + value)
                return
        super().on_header(b"cookie", value)

    def send_400_response(self, msg: str) -> None:
        if self._refusal is None:
            super().send_400_response(msg)

    def _stop(self, problem: ApiProblem) -> None:
        """Refuse from within the parser, so that it leaves the rest of what was read alone. Always raises."""
        self._refuse(problem)
        raise _Refused

    def _refuse(self, problem: ApiProblem) -> None:
        self._refusal = problem
        if self._may_answer():
            self.transport.write(_answer(problem))
        self.pipeline.clear()
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.pause_reading()
        asyncio.get_running_loop().call_later(_LINGER, self.transport.close)

    def _may_answer(self) -> bool:
        """Whether the refusal would be the next answer that the client waits for."""
        if self.cycle is None or self.cycle.response_complete:
            return True
        return not (self._in_head or self.pipeline or self.cycle.response_started)


_OPEN: Connections[BoundedHead] = Connections()


def plain_cookies(header: bytes) -> bytes:
    """The header `Cookie` without cookies that hold a backslash, which is nothing but an escape in a quoted value.

    The portal sets none of them, and Python unquotes them in a time that grows with the square of their length, to
    characters (NUL) that no header may hold and no database takes.
    """
    return b";".join(cookie for cookie in header.split(b";") if b"\\" not in cookie) if b"\\" in header else header


def _is_of_logs(target: bytes) -> bool:
    return target.startswith((b"/api/v1/jobs/", b"/ws/jobs/")) and b"/logs/" in target[:100]


def _answer(problem: ApiProblem) -> bytes:
    body = json.dumps(body_of(problem)).encode()
    head = (
        f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}\r\ncontent-type: {CONTENT_TYPE}\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body


def _too_long(status: int, code: str, what: str, limit: int) -> ApiProblem:
    return ApiProblem(status, code, f"{what} holds at most {limit} bytes here.", remedy="Send a shorter one.")


def _no_trailers() -> ApiProblem:
    message = "A request may carry no headers after its body, and no long descriptions of the pieces of its body."
    return ApiProblem(400, "trailers_refused", message, remedy="Send all headers before the body.")


def _too_many_waiting() -> ApiProblem:
    message = f"At most {MOST_WAITING} requests may wait behind another one on a connection."
    return ApiProblem(400, "too_many_waiting", message, remedy="Wait for an answer before the next request.")
