"""HTTP/1.1 to the program of a session: one connection, on which one request follows another, and those that wait for
the next.

h11 over streams: it reads no more than it is asked for, so a slow reader slows the program and nothing is kept. Not
here: what a request or an answer may say (`headers`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict

import h11

from apps.workbench.proxy.admission import Admitted
from apps.workbench.proxy.gate_connection import streams_through_gate

LONGEST_HEAD = 64 << 10
MOST_HEADERS = 200
_AT_ONCE = 64 << 10
"""Bytes that are read and passed at a time."""
_MOST_PIECES = 32
_MOST_INFORMATION = 8
"""Answers of 1xx before the answer."""
IDLE = 30.0
MOST_IDLE = 16
"""Of one session."""
MOST_IDLE_IN_ALL = 512


class Upstream:
    """One connection. Between two requests it is in an `IdleConnections`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._state = h11.Connection(h11.CLIENT, max_incomplete_event_size=LONGEST_HEAD)
        self.was_used = False

    @classmethod
    async def opened(cls, admitted: Admitted) -> Upstream:
        """Raises: Unreachable."""
        return cls(*await streams_through_gate(admitted.address, admitted.key, _AT_ONCE))

    def begin(self, request: h11.Request, has_body: bool) -> None:
        """Send the head. Never waits: a head is bounded."""
        sent = self._state.send(request) or b""
        if not has_body:
            sent += self._state.send(h11.EndOfMessage()) or b""
        self._writer.write(sent)

    async def send(self, body: bytes, is_last: bool) -> None:
        """Pass a piece of the body on; waits while the program does not read."""
        sent = (self._state.send(h11.Data(data=body)) or b"") if body else b""
        if is_last:
            sent += self._state.send(h11.EndOfMessage()) or b""
        self._writer.write(sent)
        await self._writer.drain()

    async def answer(self) -> h11.Response:
        """The head of the answer.

        Raises:
            h11.RemoteProtocolError: it is none.
            OSError: the connection is over.
        """
        event = await self._next()
        for _ in range(_MOST_INFORMATION):
            if not isinstance(event, h11.InformationalResponse) or event.status_code == 101:
                break
            event = await self._next()
        if not isinstance(event, h11.Response) or not 200 <= event.status_code < 600:
            raise h11.RemoteProtocolError("no answer to what was asked")
        size = sum(len(name) + len(value) for name, value in event.headers)
        if len(event.headers) > MOST_HEADERS or size > LONGEST_HEAD:
            raise h11.RemoteProtocolError(f"more than {MOST_HEADERS} headers, or {LONGEST_HEAD} bytes of them")
        return event

    async def piece(self) -> tuple[bytes, bool]:
        """The next bytes of the answer's body, and whether more follow. Raises as `answer` does."""
        event: object = await self._next()
        if not isinstance(event, h11.Data | h11.EndOfMessage):
            raise h11.RemoteProtocolError("the answer ends before its end")
        pieces: list[bytes] = []
        while isinstance(event, h11.Data) and len(pieces) < _MOST_PIECES:  # as long as it has been read already
            pieces.append(bytes(event.data))
            event = self._state.next_event()
        if isinstance(event, h11.Data):
            pieces.append(bytes(event.data))
            await asyncio.sleep(0)  # many small pieces: others have their turn between them
        return b"".join(pieces), not isinstance(event, h11.EndOfMessage)

    async def _next(self) -> object:
        while (event := self._state.next_event()) is h11.NEED_DATA:
            read = await self._reader.read(_AT_ONCE)
            if not read and self._state.their_state is h11.SEND_RESPONSE:
                raise ConnectionResetError("the program has closed the connection without an answer")
            self._state.receive_data(read)
        return event

    def is_reusable(self) -> bool:
        """Whether both sides have said all, and the connection stays; the next request may then begin."""
        if self._state.our_state is not h11.DONE or self._state.their_state is not h11.DONE:
            return False
        if self._state.trailing_data[0]:
            return False  # an answer that was not asked for must not become that of the next request
        self._state.start_next_cycle()
        self.was_used = True
        return True

    def is_open(self) -> bool:
        return not (self._reader.at_eof() or self._writer.is_closing())

    def abort(self) -> None:
        """Close it at once, whatever is still to be sent."""
        with contextlib.suppress(RuntimeError):
            self._writer.transport.abort()


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
