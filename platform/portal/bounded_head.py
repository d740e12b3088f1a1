"""uvicorn's HTTP protocol with a bound on what comes before a body: the target of a request, and all of its head.

The parser keeps a head in memory until it is whole, however long it is, before anything of the application runs.
"""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from apps.api.problems import CONTENT_TYPE, ApiProblem, body_of

LONGEST_TARGET = 8 << 10
LONGEST_LOG_TARGET = 256 << 10
"""Where a page of a log begins is one number per task, in the address."""
LONGEST_HEAD = 320 << 10
_LINGER = 1.0
"""Seconds in which a client may read the answer before the connection is closed under it."""


class _Refused(Exception):
    """The head is too long."""


class BoundedHead(HttpToolsProtocol):
    """Answers 414 or 431 with a problem and closes the connection."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._in_head = True
        self._head = 0
        self._refusal: ApiProblem | None = None

    def data_received(self, data: bytes) -> None:
        if self._refusal is not None:
            return
        if self._in_head:
            self._head += len(data)
            if self._head > LONGEST_HEAD:
                self._refuse(_too_long(431, "headers_too_large", "The head of a request", LONGEST_HEAD))
                return
        super().data_received(data)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._head = True, 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        limit = LONGEST_LOG_TARGET if _is_of_logs(self.url) else LONGEST_TARGET
        if len(self.url) > limit:
            self._refuse(_too_long(414, "target_too_long", "An address", limit))
            raise _Refused

    def on_headers_complete(self) -> None:
        self._in_head = False
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        if self._refusal is None:
            super().send_400_response(msg)

    def _refuse(self, problem: ApiProblem) -> None:
        self._refusal = problem
        body = json.dumps(body_of(problem)).encode()
        head = (
            f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}\r\ncontent-type: {CONTENT_TYPE}\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.pause_reading()
        asyncio.get_running_loop().call_later(_LINGER, self.transport.close)


def _is_of_logs(target: bytes) -> bool:
    return target.startswith((b"/api/v1/jobs/", b"/ws/jobs/")) and b"/logs/" in target[:100]


def _too_long(status: int, code: str, what: str, limit: int) -> ApiProblem:
    return ApiProblem(status, code, f"{what} holds at most {limit} bytes here.", remedy="Send a shorter one.")
