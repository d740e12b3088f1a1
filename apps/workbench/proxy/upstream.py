"""HTTP/1.1 to the program of a session: one connection, on which one request follows another, and those that wait for
the next.

What was read is parsed when it is asked for, and not much more is read before that: a slow reader slows the program,
and nothing is kept. Not here: what a request or an answer may say (`headers`), and what an answer is (`answer_parser`).
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import defaultdict
from dataclasses import dataclass

from apps.workbench.proxy.answer_parser import Answer, AnswerParser, NotHttp
from apps.workbench.proxy.contract import Admitted
from apps.workbench.proxy.gate_connection import through_gate
from apps.workbench.proxy.headers import Headers

_AT_ONCE = 64 << 10
"""Bytes that are parsed at a time. While more than that wait for it, no more are read."""
_MOST_PIECES = 32
IDLE = 30.0
MOST_IDLE = 16
"""Of one session."""
MOST_IDLE_IN_ALL = 512
_NAME = re.compile(rb"[-!#$%&'*+.^_`|~0-9a-zA-Z]+")
_NOT_IN_VALUES = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_TARGET = re.compile(rb"[!-~]+")


@dataclass(frozen=True)
class Asked:
    """A request without its body. `length`: of the body; None where it is not said before."""

    method: str
    head: bytes
    length: int | None

    @classmethod
    def of(cls, method: str, target: bytes, headers: Headers, framing: Headers) -> Asked:
        """`framing`: see `headers.framing`.

        Raises:
            ValueError: something of it could be taken for something else.
        """
        lines = [b"%s %s HTTP/1.1" % (method.encode(), target)]
        if not _TARGET.fullmatch(target):
            raise ValueError("its address has characters that no address has")
        if sum(name == b"host" for name, _ in headers) != 1:
            raise ValueError("it must have one header Host")
        for name, value in (*headers, *framing):
            if not _NAME.fullmatch(name) or _NOT_IN_VALUES.search(value):
                raise ValueError("a header has characters that no header has")
            lines.append(name + b": " + value)
        is_chunked = bool(framing) and framing[0][0] == b"transfer-encoding"
        return cls(method, b"\r\n".join((*lines, b"\r\n")), None if is_chunked else int((framing or _NO_BODY)[0][1]))

    @property
    def has_body(self) -> bool:
        return self.length != 0


_NO_BODY = [(b"content-length", b"0")]


class Upstream(asyncio.Protocol):
    """One connection. Between two requests it is in an `IdleConnections`."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._parsed = AnswerParser()
        self._left: int | None = 0
        """Bytes of the request's body that are still to be sent; None: some, to the end that is said behind them."""
        self._read = b""
        """What was not parsed yet."""
        self._is_paused = self._has_ended = False
        self._readable: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self.was_used = False

    @classmethod
    async def opened(cls, admitted: Admitted) -> Upstream:
        """Raises: NoMoreConnections, Unreachable."""
        sock = await through_gate(admitted.address, admitted.key)
        try:
            return (await asyncio.get_running_loop().create_connection(cls, sock=sock))[1]
        except BaseException:
            sock.close()
            raise

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._read += data
        if len(self._read) > _AT_ONCE:
            self._is_paused = True
            self._transport.pause_reading()
        _wake(self._readable)

    def eof_received(self) -> None:
        """The transport closes itself then."""

    def connection_lost(self, error: Exception | None) -> None:
        self._has_ended = True
        _wake(self._readable)
        _wake(self._writable)

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        _wake(self._writable)
        self._writable = None

    def begin(self, asked: Asked) -> None:
        """Send the head. Never waits: a head is bounded."""
        self._parsed.begin(is_head=asked.method == "HEAD")
        self._left = asked.length
        self._transport.write(asked.head)

    async def send(self, body: bytes, is_last: bool) -> None:
        """Pass a piece of the body on; waits while the program does not read. Raises `NotHttp` where it is not as long
        as its request has said."""
        if self._left is None:
            sent = b"%x\r\n%s\r\n" % (len(body), body) if body else b""
            if is_last:
                sent, self._left = sent + b"0\r\n\r\n", 0
            self._transport.write(sent)
        else:
            self._left -= len(body)
            if self._left < 0 or (is_last and self._left):
                raise NotHttp("a body of another length than its request has said")
            self._transport.write(body)
        if self._writable is not None:
            await self._writable
        if self._has_ended:
            raise ConnectionResetError("the program has closed the connection")

    async def answer(self) -> Answer:
        """The head of the answer.

        Raises:
            NotHttp: it is none.
            OSError: the connection is over.
        """
        while self._parsed.answer is None:
            await self._go_on()
        return self._parsed.answer

    async def piece(self) -> tuple[bytes, bool]:
        """The next bytes of the answer's body, and whether more follow. Raises as `answer` does."""
        while not (pieces := self._parsed.taken()) and not self._parsed.is_whole:
            await self._go_on()
        if len(pieces) > _MOST_PIECES:
            await asyncio.sleep(0)  # many small ones: others have their turn between them
        return b"".join(pieces), not self._parsed.is_whole

    async def _go_on(self) -> None:
        """Parse some of what has come, once there is some."""
        if not self._read and not self._has_ended:
            self._readable = self._loop.create_future()
            try:
                await self._readable
            finally:
                self._readable = None
        if self._read:
            data, self._read = self._read[:_AT_ONCE], self._read[_AT_ONCE:]
            if self._is_paused and not self._read:
                self._is_paused = False
                self._transport.resume_reading()
            self._parsed.feed(data)
        elif self._has_ended:
            self._parsed.end()

    def rest(self) -> bool:
        """Whether both sides have said all, and the connection stays: the next request may then begin, as long as it is
        `is_open`."""
        self.was_used = True
        return self._left == 0 and self._parsed.is_whole and self._parsed.stays and self.is_open()

    def is_open(self) -> bool:
        """For one that rests. An answer that was not asked for must not become that of the next request."""
        return not (self._has_ended or self._read or self._transport.is_closing())

    def abort(self) -> None:
        """Close it at once, whatever is still to be sent."""
        with contextlib.suppress(RuntimeError):
            self._transport.abort()


def _wake(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)


class IdleConnections:
    """Those that wait for the next request, each of one session, address and key. Of too many in all, the one that has
    waited longest is closed."""

    def __init__(self, most: int = MOST_IDLE_IN_ALL) -> None:
        self._most = most
        self._waiting: defaultdict[tuple[object, ...], list[Upstream]] = defaultdict(list)
        self._ends: dict[Upstream, tuple[tuple[object, ...], asyncio.TimerHandle]] = {}
        """Of all, the longest wait first."""

    def take(self, admitted: Admitted) -> Upstream | None:
        """The one that has waited shortest."""
        while waiting := self._waiting.get(_key_of(admitted)):
            upstream = waiting[-1]
            self._remove(upstream)
            if upstream.is_open():
                return upstream
            upstream.abort()
        return None

    def keep(self, admitted: Admitted, upstream: Upstream) -> None:
        key = _key_of(admitted)
        if len(self._waiting.get(key, ())) >= MOST_IDLE:
            upstream.abort()
            return
        while len(self._ends) >= self._most:
            self._end(next(iter(self._ends)))
        self._waiting[key].append(upstream)
        self._ends[upstream] = (key, asyncio.get_running_loop().call_later(IDLE, self._end, upstream))

    def close(self) -> None:
        """End all."""
        for upstream in tuple(self._ends):
            self._end(upstream)

    def _end(self, upstream: Upstream) -> None:
        self._remove(upstream)
        upstream.abort()

    def _remove(self, upstream: Upstream) -> None:
        key, end = self._ends.pop(upstream)
        end.cancel()
        waiting = self._waiting[key]
        waiting.remove(upstream)
        if not waiting:
            del self._waiting[key]


def _key_of(admitted: Admitted) -> tuple[object, ...]:
    return admitted.session_id, admitted.address, admitted.key
