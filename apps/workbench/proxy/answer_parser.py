"""The answers that a program sends on one connection, parsed by httptools.

It keeps one head and what it was fed of a body, and nothing that is of neither: those bytes are bounded. Not here:
what a header may say (`headers`), and reading (`upstream`).
"""

from __future__ import annotations

from dataclasses import dataclass

import httptools

from apps.workbench.proxy.headers import Headers

LONGEST_HEAD = 64 << 10
"""Bytes of a head; of those that belong to no body in a row, such as sizes of pieces and what follows the last."""
MOST_HEADERS = 200
_MOST_INFORMATION = 8
"""Answers of 1xx before the answer."""


class NotHttp(Exception):
    """What was sent is no answer to what was asked."""


@dataclass(frozen=True)
class Answer:
    """The head of one. Names of headers are in lower case."""

    status: int
    headers: Headers
    is_chunked: bool


class AnswerParser:
    """`begin` before each answer, then `feed` what comes. `answer` is there once its head is whole; `is_whole` once all
    of it is, and `stays` then says whether the connection can have another one."""

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        # With both framings the length is no part of the answer, and is not passed on.
        self._parser.set_dangerous_leniencies(lenient_chunked_length=True)
        self.begin(is_head=False)

    def begin(self, *, is_head: bool) -> None:
        """`is_head`: it answers a HEAD, so that it has no body whatever its headers say."""
        self._is_head = is_head
        self._headers: Headers = []
        self._pieces: list[bytes] = []
        self._information = self._idle = 0
        self._ends_with_connection = False
        self.answer: Answer | None = None
        self.is_whole = self.stays = False

    def feed(self, data: bytes) -> None:
        """Raises: NotHttp."""
        self._idle += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.stays = False
            if not self.is_whole:  # what follows an answer was not asked for, and is not read
                raise error.__context__ if isinstance(error.__context__, NotHttp) else NotHttp(str(error)) from error
        if self._idle > LONGEST_HEAD:
            raise NotHttp(f"more than {LONGEST_HEAD} bytes of a head, or between those of a body")

    def end(self) -> None:
        """The program has closed the connection.

        Raises:
            ConnectionResetError: it has said nothing.
            NotHttp: it has not said all.
        """
        self.stays = False
        if self.answer is None:
            raise ConnectionResetError("the program has closed the connection without an answer")
        if not self.is_whole and not self._ends_with_connection:
            raise NotHttp("the answer ends before its end")
        self.is_whole = True

    def taken(self) -> list[bytes]:
        """What has come of the body since the last time."""
        pieces, self._pieces = self._pieces, []
        return pieces

    def on_message_begin(self) -> None:
        if self.is_whole:
            raise NotHttp("an answer to nothing")

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.answer is not None:
            return  # behind the body
        if len(self._headers) == MOST_HEADERS:
            raise NotHttp(f"more than {MOST_HEADERS} headers")
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        status, headers = self._parser.get_status_code(), self._headers
        self._headers = []
        if 100 <= status < 200 and status != 101 and self._information < _MOST_INFORMATION:
            self._information += 1
            return
        if not 200 <= status < 600:
            raise NotHttp("no answer to what was asked")
        size, has_length, is_chunked = 0, False, False
        for name, value in headers:
            size += len(name) + len(value)
            if name == b"content-length":
                has_length = True
            elif name == b"transfer-encoding":
                if is_chunked or value.strip().lower() != b"chunked":
                    raise NotHttp("a body in a coding that is not known")
                is_chunked = True
        if size > LONGEST_HEAD:
            raise NotHttp(f"more than {LONGEST_HEAD} bytes of headers")
        self._ends_with_connection = not (is_chunked or has_length)
        self.answer = Answer(status, headers, is_chunked)
        if self._is_head:
            self.is_whole = True  # the parser waits for a body: the connection is not used again
        else:
            self.stays = self._parser.should_keep_alive()

    def on_body(self, body: bytes) -> None:
        self._idle = 0
        if not self._is_head:
            self._pieces.append(body)

    def on_message_complete(self) -> None:
        self.is_whole = self.answer is not None
